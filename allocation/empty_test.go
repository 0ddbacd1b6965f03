package allocation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
)

func TestNothingEligible(t *testing.T) {
	t.Parallel()
	for _, policy := range allPolicies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, allocation.Config{Policy: policy})
			o := allocation.TakeOptions{Key: "k", Target: "t.example"}
			if e := b.empty(o); e.RetryAfter != 0 || e.Pool != b.pool {
				t.Errorf("an empty pool says %+v, want no next instant", e)
			}
			ids := b.fill(2)
			b.must(b.pools.Quarantine(t.Context(), b.pool, ids[0], 90*time.Second))
			b.must(b.pools.Quarantine(t.Context(), b.pool, ids[1], 1500*time.Millisecond))
			if e := b.empty(o); e.RetryAfter != 1500*time.Millisecond {
				t.Errorf("the next chance is in %s, want 1.5s", e.RetryAfter)
			}
			if s := b.state(); s.Eligible != 0 || s.Quarantined != 2 || !s.NextEligible.Equal(b.clock.read().Add(1500*time.Millisecond)) {
				t.Errorf("state %+v", s)
			}
			b.clock.move(1500*time.Millisecond - time.Microsecond)
			if e := b.empty(o); e.RetryAfter != time.Microsecond {
				t.Errorf("the next chance is in %s, want 1µs", e.RetryAfter)
			}
			b.clock.move(time.Microsecond)
			if s := b.state(); s.Eligible != 1 || s.Quarantined != 1 {
				t.Errorf("when the first quarantine ends: %+v", s)
			}
			if a := b.takeFor(o); a.ID != ids[1] {
				t.Errorf("took %s, want %s", a.ID, ids[1])
			}
			if e := b.endpoint(ids[1]); e.State != allocation.Probation {
				t.Errorf("it came back as %s", e.State)
			}
		})
	}
}

// TestManyReturnAtOnce: takes bring back sixteen each, and still find somebody.
func TestManyReturnAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	for _, id := range b.fill(50) {
		b.must(b.pools.Quarantine(t.Context(), b.pool, id, time.Second))
	}
	b.clock.move(time.Second)
	seen := map[string]bool{}
	for range 50 {
		seen[b.take().ID] = true
	}
	if len(seen) != 50 {
		t.Errorf("50 takes gave %d endpoints", len(seen))
	}
	if s := b.state(); s.Eligible != 50 {
		t.Errorf("state %+v", s)
	}
}

func TestTakeErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	if _, err := b.pools.Take(t.Context(), "other", allocation.TakeOptions{}); !errors.Is(err, allocation.ErrUnknownPool) || !strings.Contains(err.Error(), b.pool) {
		t.Errorf("got %v, want an unknown pool and the known ones", err)
	}
	b.fill(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.pools.Take(ctx, b.pool, allocation.TakeOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
	if e := b.list()[0]; e.Count != 0 {
		t.Error("a cancelled take is counted")
	}
	for _, e := range []*allocation.EmptyError{{}, {RetryAfter: time.Second}, {Target: "t", RetryAfter: time.Second}, {Busy: true}} {
		if e.Error() == "" {
			t.Errorf("%+v says nothing", e)
		}
	}
}

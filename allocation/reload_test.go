package allocation_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/allocation"
)

// TestPolicyChangesWhileTakesRun: every take is answered and counted once, whatever the policy is at that moment.
func TestPolicyChangesWhileTakesRun(t *testing.T) {
	t.Parallel()
	const endpoints, workers, takes = 5, 12, 80
	b := newBench(t, allocation.Config{})
	b.fill(endpoints)
	var group sync.WaitGroup
	got := make([]map[string]int64, workers)
	for w := range workers {
		got[w] = map[string]int64{}
		group.Go(func() {
			for range takes {
				a, err := b.pools.Take(t.Context(), b.pool, allocation.TakeOptions{Key: "k"})
				if err != nil {
					t.Error(err)
					return
				}
				got[w][a.ID]++
				if err := b.pools.Report(t.Context(), allocation.Report{Pool: b.pool, ID: a.ID, Lease: a.Lease, Outcome: allocation.OK}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	for i := 0; ; i++ {
		b.must(b.pools.Reload([]allocation.Config{{Name: b.pool, Policy: allPolicies[i%len(allPolicies)], Cap: workers}}))
		select {
		case <-done:
		case <-time.After(time.Millisecond):
			continue
		}
		break
	}
	var sum int64
	for _, e := range b.list() {
		var mine int64
		for w := range workers {
			mine += got[w][e.ID]
		}
		if e.Count != mine || e.InFlight != 0 {
			t.Errorf("%s has count %d and %d leases, and was given %d times", e.ID, e.Count, e.InFlight, mine)
		}
		sum += e.Count
	}
	if sum != workers*takes {
		t.Errorf("%d allocations are counted, want %d", sum, workers*takes)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	b.fill(2)
	b.take()
	err := b.pools.Reload([]allocation.Config{{Name: b.pool, Policy: "best"}, {Name: b.pool, Require: &allocation.Require{MaxLatency: -1}}})
	if err == nil || !strings.Contains(err.Error(), "best") || !strings.Contains(err.Error(), "twice") || !strings.Contains(err.Error(), "max_latency") {
		t.Errorf("got %v, want all three faults", err)
	}
	if c, ok := b.pools.Config(b.pool); !ok || c.Policy != allocation.LeastUsed {
		t.Errorf("after a bad config the pool is %+v", c)
	}
	b.must(b.pools.Reload([]allocation.Config{{Name: "other-" + b.pool}}))
	if _, err := b.pools.Take(t.Context(), b.pool, allocation.TakeOptions{}); !errors.Is(err, allocation.ErrUnknownPool) {
		t.Errorf("the pool that was taken out says %v", err)
	}
	if got := b.pools.Names(); !slices.Equal(got, []string{"other-" + b.pool}) {
		t.Errorf("the pools are %v", got)
	}
	b.must(b.pools.Reload([]allocation.Config{{Name: b.pool, Policy: allocation.NoRepeat, Alone: allocation.AloneStop}}))
	if a := b.take(); a.Count == 0 {
		t.Errorf("took %+v", a)
	}
	var sum int64
	for _, e := range b.list() {
		sum += e.Count
	}
	if sum != 2 {
		t.Errorf("%d allocations are counted, want 2: a pool's records outlive its absence", sum)
	}
}

package allocation_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"

	"github.com/redis/go-redis/v9"
)

// pages walks a pool in pages and checks their sizes.
func (b *bench) pages(limit int, state string) []allocation.Endpoint {
	b.t.Helper()
	var out []allocation.Endpoint
	for o := (allocation.Page{Limit: limit, State: state}); ; {
		p, err := b.pools.ListPage(b.t.Context(), b.pool, o)
		b.must(err)
		if len(p.Endpoints) > limit || p.Next != "" && len(p.Endpoints) != limit {
			b.t.Fatalf("a page of %d has %d", limit, len(p.Endpoints))
		}
		out = append(out, p.Endpoints...)
		if p.Next == "" {
			return out
		}
		o.After = p.Next
	}
}

func shown(list []allocation.Endpoint) []string {
	out := make([]string, len(list))
	for i, e := range list {
		text, _ := json.Marshal(e)
		out[i] = string(text)
	}
	return out
}

// TestPagesAreTheList: together they are what List gives, in its order, for every state and any size of page.
func TestPagesAreTheList(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Require: &whole})
	ids := b.fill(23)
	states := []string{allocation.Candidate, allocation.Active, allocation.Probation, allocation.Quarantined, allocation.AuthFailed, allocation.Disabled}
	for i, id := range ids {
		b.put(id, states[i%len(states)])
	}
	b.tell(ids[1], "t.example", allocation.Ban)
	v := good
	b.judge(ids[0], v)
	for range 9 {
		b.take()
	}
	all := b.list()
	for _, limit := range []int{1, 2, 7, 23, 24, 100} {
		if got := b.pages(limit, ""); !slices.Equal(shown(got), shown(all)) {
			t.Errorf("pages of %d are not the list", limit)
		}
		for _, state := range allocation.States {
			want := slices.DeleteFunc(slices.Clone(all), func(e allocation.Endpoint) bool { return e.State != state })
			if got := b.pages(limit, state); !slices.Equal(shown(got), shown(want)) || len(want) == 0 {
				t.Errorf("pages of %d of %s are %d endpoints, want %d", limit, state, len(got), len(want))
			}
		}
	}
	if _, err := b.pools.ListPage(t.Context(), b.pool, allocation.Page{State: "well"}); err == nil || !strings.Contains(err.Error(), "probation") {
		t.Errorf("got %v, want the states that there are", err)
	}
	if _, err := b.pools.ListPage(t.Context(), "x", allocation.Page{}); !errors.Is(err, allocation.ErrUnknownPool) {
		t.Errorf("got %v", err)
	}
	if _, err := b.pools.Endpoint(t.Context(), b.pool, "x"); !errors.Is(err, allocation.ErrUnknownEndpoint) {
		t.Errorf("got %v", err)
	}
	if e, err := b.pools.Endpoint(t.Context(), b.pool, ids[1]); err != nil || len(e.Bans) != 1 || e.Count+e.Handicap == 0 {
		t.Errorf("got %+v and %v", e, err)
	}
}

// TestPagesOfTenThousand: a page asks for itself alone, not for the pool.
func TestPagesOfTenThousand(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(10_000)
	b.must(b.pools.Quarantine(t.Context(), b.pool, ids[9_990], time.Hour))
	s := &asked{}
	b.rdb.AddHook(s)
	p, err := b.pools.ListPage(t.Context(), b.pool, allocation.Page{After: ids[4_999], Limit: 50})
	b.must(err)
	if len(p.Endpoints) != 50 || p.Endpoints[0].ID != ids[5_000] || p.Next != ids[5_049] {
		t.Errorf("the page is %d from %s, and then %s", len(p.Endpoints), p.Endpoints[0].ID, p.Next)
	}
	if s.fields == 0 || s.fields > 500 {
		t.Errorf("a page of 50 read %d fields", s.fields)
	}
	if got := b.pages(100, allocation.Quarantined); len(got) != 1 || got[0].ID != ids[9_990] {
		t.Errorf("quarantined are %v", got)
	}
}

// TestPagesOfAnOlderVersionsPool: what came in without the indexes is entered.
func TestPagesOfAnOlderVersionsPool(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(30)
	b.must(b.pools.Disable(t.Context(), b.pool, ids[3]))
	k := "fw:{pool:" + b.pool + "}:"
	b.must(b.rdb.Del(t.Context(), k+"names", k+"checks").Err())
	if got := b.pages(7, ""); len(got) != 30 {
		t.Errorf("pages have %d endpoints, want 30", len(got))
	}
	b.must(b.rdb.Del(t.Context(), k+"names", k+"checks").Err())
	if got := b.candidates(100); len(got) != 29 {
		t.Errorf("%d are to be checked, want 29", len(got))
	}
}

// asked counts the fields that HMGET and HSCAN read.
type asked struct{ fields int }

func (s *asked) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (s *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "hmget":
			s.fields += len(cmd.Args()) - 2
		case "hscan":
			s.fields += 1 << 20
		}
		return next(ctx, cmd)
	}
}

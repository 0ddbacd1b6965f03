package quota_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// Four processes, eight workers each, three limits: none is ever passed, and nobody is forgotten.
func TestACrowdNeverPassesALimit(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--save", "")
	limits := []quota.Running{{Name: "quota:q", Limit: 5}, {Name: "host:a", Limit: 3}, {Name: "host:b", Limit: 2}}
	const procs, workers, jobs = 4, 8, 25
	running := make([]atomic.Int64, len(limits))
	peak := make([]atomic.Int64, len(limits))
	var asked, sleepless atomic.Int64
	var mu sync.Mutex
	bells := map[string]chan struct{}{}
	bell := func(holder string) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		if bells[holder] == nil {
			bells[holder] = make(chan struct{}, 1)
		}
		return bells[holder]
	}
	wake := func(next []string) {
		for _, h := range next {
			select {
			case bell(h) <- struct{}{}:
			default:
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for p := range procs {
		rdb := srv.Client()
		t.Cleanup(func() { _ = rdb.Close() })
		l := quota.NewLeases(rdb)
		for w := range workers {
			wg.Go(func() {
				for j := range jobs {
					holder := fmt.Sprint(p, "-", w, "-", j)
					mine := []int{0, 1 + (w+j)%2} // the quota, and one host
					var want []quota.Running
					var names []string
					for _, i := range mine {
						want, names = append(want, limits[i]), append(names, limits[i].Name)
					}
					for {
						asked.Add(1)
						a, err := l.Acquire(ctx, holder, 30*time.Second, want...)
						if err != nil {
							t.Error(err)
							return
						}
						wake(a.Next)
						if a.Held {
							break
						}
						select {
						case <-bell(holder):
						case <-time.After(min(a.RetryAfter, 3*time.Second)):
							sleepless.Add(1) // not named in time: asks by itself
						case <-ctx.Done():
							t.Errorf("%s has waited for a minute: %+v", holder, a)
							return
						}
					}
					for _, i := range mine {
						n := running[i].Add(1)
						for p := peak[i].Load(); n > p && !peak[i].CompareAndSwap(p, n); p = peak[i].Load() {
						}
						if n > limits[i].Limit {
							t.Errorf("%d run at %+v", n, limits[i])
						}
					}
					<-time.After(time.Millisecond) // the work
					for _, i := range mine {
						running[i].Add(-1)
					}
					next, err := l.Release(ctx, holder, names...)
					if err != nil {
						t.Error(err)
						return
					}
					wake(next)
				}
			})
		}
	}
	wg.Wait()
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	for i, r := range limits {
		s, err := quota.NewLeases(rdb).State(ctx, r.Name)
		if err != nil || s.Running != 0 || s.Waiting != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		if peak[i].Load() != r.Limit {
			t.Errorf("%d ran at most at %+v", peak[i].Load(), r)
		}
	}
	t.Logf("asked %.2f times a job; %d of %d had to ask unnamed", float64(asked.Load())/(procs*workers*jobs), sleepless.Load(), procs*workers*jobs)
}

func TestALostReplyTakesOneLease(t *testing.T) {
	t.Parallel()
	rdb, wire := breakable(t)
	l := quota.NewLeases(rdb)
	ctx := context.Background()
	three := quota.Running{Name: "host:a", Limit: 3}
	ask := func(holder string) quota.Acquired {
		t.Helper()
		a, err := l.Acquire(ctx, holder, time.Minute, three, quota.Running{Name: "quota:q"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for i, h := range []string{"a", "b", "c"} {
		wire.Lose(1, "evalsha")
		if a := ask(h); !a.Held || wire.Lost() != i+1 {
			t.Fatalf("%+v", a)
		}
	}
	wire.Lose(1, "evalsha")
	if a := ask("d"); a.Held || a.Position != 1 {
		t.Fatalf("%+v", a)
	}
	wire.Lose(1, "evalsha")
	if next, err := l.Release(ctx, "a", "host:a", "quota:q"); err != nil || !slices.Equal(next, []string{"d"}) {
		t.Fatal(next, err)
	}
	// Nobody knows whether e has it. Released, it has not.
	wire.Lose(1000, "evalsha")
	if a, err := l.Acquire(ctx, "e", time.Minute, three); err == nil || a.Held {
		t.Fatalf("%+v, %v", a, err)
	}
	wire.Lose(0, "")
	if _, err := l.Release(ctx, "e", "host:a"); err != nil {
		t.Fatal(err)
	}
	if s, err := l.State(ctx, "host:a"); err != nil || s.Running != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	wire.Down(true)
	if a, err := l.Acquire(ctx, "f", time.Minute, three); err == nil || a.Held {
		t.Fatalf("without Redis: %+v, %v", a, err)
	}
}

func TestLeasesOutliveAFlushedScriptCache(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--save", "")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	l := quota.NewLeases(rdb)
	ctx := context.Background()
	two := []quota.Running{{Name: "host:a", Limit: 1}, {Name: "quota:q", Limit: 1}}
	for name, call := range map[string]func() error{
		"acquire": func() error { _, err := l.Acquire(ctx, "a", time.Minute, two...); return err },
		"extend":  func() error { return l.Extend(ctx, "a", time.Minute, "host:a", "quota:q") },
		"release": func() error { _, err := l.Release(ctx, "none", "host:a", "quota:q"); return err },
		"leave":   func() error { return l.Leave(ctx, "none", "host:a", "quota:q") },
		"block":   func() error { return l.Block(ctx, "other", time.Second, "why") },
		"unblock": func() error { _, err := l.Unblock(ctx, "other"); return err },
		"state":   func() error { _, err := l.State(ctx, "host:a"); return err },
	} {
		if _, err := l.Acquire(ctx, "a", time.Minute, two...); err != nil {
			t.Fatal(err)
		}
		if err := rdb.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := l.State(ctx, "quota:q"); err != nil || s.Running != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
}

// Limits of one call live on several nodes of a Cluster.
func TestLeasesInACluster(t *testing.T) {
	t.Parallel()
	rdb, nodes, stop := cluster(t)
	g := openGate(t, rdb)
	var all []quota.Running
	var names []string
	for i := range 6 {
		all = append(all, quota.Running{Name: fmt.Sprint("host:", i), Limit: 2})
		names = append(names, all[i].Name)
	}
	g.held("a", all...)
	g.held("b", all[3:]...)
	g.refused("host:3", 1, "c", all...)
	for i, n := range names {
		running, waiting := int64(1), int64(0)
		if i >= 3 {
			running = 2
		}
		if i == 3 {
			waiting = 1
		}
		g.counts(n, running, waiting)
	}
	if err := g.Extend(g.ctx, "a", time.Hour, names...); err != nil {
		t.Fatal(err)
	}
	if next := g.release("b", names...); !slices.Equal(next, []string{"c"}) {
		t.Fatal(next)
	}
	g.held("c", all...)
	if err := g.Leave(g.ctx, "c", names...); err != nil {
		t.Fatal(err)
	}
	if err := g.Block(g.ctx, "host:5", time.Minute, "why"); err != nil {
		t.Fatal(err)
	}
	g.release("a", names...)
	g.refused("host:5", 1, "d", all...)
	if next, err := g.Unblock(g.ctx, "host:5"); err != nil || !slices.Equal(next, []string{"d"}) {
		t.Fatal(next, err)
	}
	used := 0
	for _, n := range nodes {
		keys := n.Keys(g.ctx, "*").Val()
		slots := map[string]int64{}
		for _, key := range keys {
			name, _, _ := strings.Cut(key, "}")
			slot := n.ClusterKeySlot(g.ctx, key).Val()
			if s, ok := slots[name]; ok && s != slot {
				t.Errorf("%s is in slots %d and %d", name, s, slot)
			}
			slots[name] = slot
			if ttl := n.PTTL(g.ctx, key).Val(); ttl <= 0 {
				t.Errorf("%s has no time to live", key)
			}
		}
		used += min(len(keys), 1)
	}
	if used < 2 {
		t.Errorf("all is on %d node", used)
	}
	stop()
	if a, err := g.Acquire(g.ctx, "e", time.Minute, all...); err == nil || a.Held {
		t.Errorf("without nodes: %+v, %v", a, err)
	}
}

// With ten thousand waiting, a call makes as many steps in Redis as with ten.
func TestALongLineCostsNoWalk(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--save", "")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	l := quota.NewLeases(rdb)
	ctx := context.Background()
	two := quota.Running{Name: "host:a", Limit: 2}
	steps := func() map[string]int {
		t.Helper()
		if err := rdb.ConfigResetStat(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if a, err := l.Acquire(ctx, "last", time.Minute, two); err != nil || a.Held {
			t.Fatal(a, err)
		}
		if _, err := l.Release(ctx, "none", "host:a"); err != nil {
			t.Fatal(err)
		}
		if err := l.Leave(ctx, "last", "host:a"); err != nil {
			t.Fatal(err)
		}
		all := map[string]int{}
		for _, line := range strings.Split(rdb.Info(ctx, "commandstats").Val(), "\r\n") {
			if name, rest, ok := strings.Cut(line, ":calls="); ok {
				n, _, _ := strings.Cut(rest, ",")
				all[name], _ = strconv.Atoi(n)
			}
		}
		return all
	}
	fill := func(from, to int) {
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				for i := from + w; i < to; i += 64 {
					if _, err := l.Acquire(ctx, fmt.Sprint("w", i), time.Minute, two); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	fill(0, 12)
	short := steps()
	fill(12, 10_000)
	if long := steps(); fmt.Sprint(long) != fmt.Sprint(short) {
		t.Errorf("12 ask: %v\n10,000 ask: %v", short, long)
	}
	if s, err := l.State(ctx, "host:a"); err != nil || s.Waiting != 9998 || s.LongestWait <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

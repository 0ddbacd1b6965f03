package allocation_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"pgregory.net/rapid"
)

// together lets many goroutines, on two Pools, take n times in all and gives what they got.
func (b *bench) together(c allocation.Config, n int) []allocation.Allocation {
	b.t.Helper()
	both := []*allocation.Pools{b.pools, b.another(c)}
	var mu sync.Mutex
	var got []allocation.Allocation
	var group sync.WaitGroup
	for w := range 10 {
		group.Go(func() {
			for range n / 10 {
				a, err := both[w%2].Take(b.t.Context(), b.pool, allocation.TakeOptions{})
				if err != nil {
					b.t.Error(err)
					return
				}
				mu.Lock()
				got = append(got, a)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return got
}

func TestRandomIsEvenAndIndependent(t *testing.T) {
	t.Parallel()
	const endpoints, takes = 10, 4000
	b := newBench(t, allocation.Config{Policy: allocation.Random})
	ids := b.fill(endpoints)
	seen, repeats, last := map[string]float64{}, 0.0, ""
	for range takes {
		a := b.take()
		seen[a.ID]++
		if a.ID == last {
			repeats++
		}
		last = a.ID
	}
	chi := 0.0
	for _, id := range ids {
		d := seen[id] - takes/endpoints
		chi += d * d / (takes / endpoints)
	}
	if chi > 48 { // nine degrees of freedom: once in four million runs
		t.Errorf("chi squared is %.1f for %v", chi, seen)
	}
	if repeats < 300 || repeats > 500 { // 400 expected, deviation 19
		t.Errorf("%v of %d picks repeat the one before, want about a tenth", repeats, takes)
	}
}

func TestNoRepeat(t *testing.T) {
	t.Parallel()
	c := allocation.Config{Policy: allocation.NoRepeat}
	b := newBench(t, c)
	b.fill(4)
	workers := []*allocation.Pools{b.pools, b.another(c)}
	last, seen := "", map[string]int{}
	for i := range 300 {
		a, err := workers[i%2].Take(t.Context(), b.pool, allocation.TakeOptions{Target: []string{"", "t"}[i%3%2]})
		if err != nil {
			t.Fatal(err)
		}
		if a.ID == last {
			t.Fatalf("pick %d repeats %s", i, last)
		}
		last = a.ID
		seen[a.ID]++
	}
	if len(seen) != 4 || slices.Min([]int{seen[last], 300}) < 40 {
		t.Errorf("picks are %v, want all four, about even", seen)
	}
	// Of two endpoints each must follow the other, whoever asks.
	two := newBench(t, c)
	two.fill(2)
	two.together(c, 200)
	for _, e := range two.list() {
		if e.Count != 100 {
			t.Errorf("%s was taken %d times of 200, want 100", e.ID, e.Count)
		}
	}
}

func TestNoRepeatAlone(t *testing.T) {
	t.Parallel()
	for _, alone := range []string{allocation.AloneReuse, allocation.AloneWait, allocation.AloneStop} {
		t.Run(alone, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, allocation.Config{Policy: allocation.NoRepeat, Alone: alone})
			ids := b.fill(2)
			b.must(b.pools.Quarantine(t.Context(), b.pool, ids[0], time.Minute))
			b.take() // the first of all repeats nothing
			a, err := b.pools.Take(t.Context(), b.pool, allocation.TakeOptions{})
			var empty *allocation.EmptyError
			switch alone {
			case allocation.AloneReuse:
				if err != nil || a.ID != ids[1] {
					t.Errorf("got %s and %v, want %s again", a.ID, err, ids[1])
				}
			case allocation.AloneWait:
				if !errors.As(err, &empty) || empty.RetryAfter != time.Minute {
					t.Errorf("got %v, want to wait until the other is back", err)
				}
			case allocation.AloneStop:
				if !errors.Is(err, allocation.ErrAlone) {
					t.Errorf("got %v, want ErrAlone", err)
				}
			}
			b.must(b.pools.Restore(t.Context(), b.pool, ids[0]))
			if a := b.take(); a.ID != ids[0] {
				t.Errorf("then took %s, want %s", a.ID, ids[0])
			}
		})
	}
}

// TestShuffledModel: members come and go in mid-pass; those who stay are each
// taken once a pass, and nobody twice in a row while there are others.
func TestShuffledModel(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := allocation.Config{Policy: allocation.Shuffled}
		b := benchOn(t, rdb, c)
		workers := []*allocation.Pools{b.pools, b.another(c)}
		n := rapid.IntRange(2, 8).Draw(rt, "endpoints")
		ids := b.fill(n)
		stays := ids[:rapid.IntRange(1, n).Draw(rt, "stay")]
		in := map[string]bool{}
		for _, id := range ids {
			in[id] = true
		}
		taken := map[string]int{}
		last := ""
		for step := range rapid.IntRange(10, 60).Draw(rt, "steps") {
			if len(stays) < n && rapid.IntRange(0, 3).Draw(rt, "change") == 0 {
				id := rapid.SampledFrom(ids[len(stays):]).Draw(rt, "endpoint")
				switch {
				case in[id] && rapid.Bool().Draw(rt, "remove"):
					b.must(b.pools.Remove(t.Context(), b.pool, id))
				case in[id]:
					b.must(b.pools.Quarantine(t.Context(), b.pool, id, time.Hour))
				default:
					b.load(id)
					b.must(b.pools.Restore(t.Context(), b.pool, id))
				}
				in[id] = !in[id]
			}
			a, err := workers[rapid.IntRange(0, 1).Draw(rt, "worker")].Take(t.Context(), b.pool, allocation.TakeOptions{})
			if err != nil {
				rt.Fatal(err)
			}
			others := 0
			for id := range in {
				if in[id] && id != a.ID {
					others++
				}
			}
			if a.ID == last && others == n-1 {
				rt.Fatalf("step %d repeats %s", step, last)
			}
			last = a.ID
			taken[a.ID]++
			low, high := taken[stays[0]], taken[stays[0]]
			for _, id := range stays {
				low, high = min(low, taken[id]), max(high, taken[id])
			}
			if high-low > 1 {
				rt.Fatalf("step %d: of those who stay some were taken %d times, some %d", step, low, high)
			}
		}
	})
}

func TestShuffledPasses(t *testing.T) {
	t.Parallel()
	const endpoints, passes = 6, 30
	c := allocation.Config{Policy: allocation.Shuffled}
	b := newBench(t, c)
	b.fill(endpoints)
	orders, last := map[string]bool{}, ""
	for pass := range passes {
		var order []string
		for range endpoints {
			order = append(order, b.take().ID)
		}
		if order[0] == last {
			t.Errorf("pass %d begins with %s, which ended the one before", pass, last)
		}
		last = order[endpoints-1]
		orders[fmt.Sprint(order)] = true
		slices.Sort(order)
		if len(slices.Compact(order)) != endpoints {
			t.Errorf("pass %d is %v", pass, order)
		}
	}
	if len(orders) < passes/2 {
		t.Errorf("%d passes had %d orders", passes, len(orders))
	}
	seen := map[string]int{}
	for _, a := range b.together(c, endpoints*10) {
		seen[a.ID]++
	}
	for id, n := range seen {
		if n != 10 {
			t.Errorf("%s was taken %d times in 10 passes of many workers", id, n)
		}
	}
}

// TestShuffledAfterABan: one that a target's ban kept out of some passes is served once, not once for each.
func TestShuffledAfterABan(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Policy: allocation.Shuffled})
	ids := b.fill(3)
	b.reportFull(allocation.Report{ID: ids[0], Target: "t.example", Outcome: allocation.Ban})
	for range 10 {
		if a := b.takeFor(allocation.TakeOptions{Target: "t.example"}); a.ID == ids[0] {
			t.Fatal("a banned endpoint is taken")
		}
	}
	b.clock.move(time.Minute)
	last, picks := "", 0
	for range 7 { // the rest of a pass, a whole one, and the beginning of the next
		a := b.takeFor(allocation.TakeOptions{Target: "t.example"})
		if a.ID == last {
			t.Errorf("%s is taken twice in a row", last)
		}
		if last = a.ID; last == ids[0] {
			picks++
		}
	}
	if picks < 2 || picks > 3 {
		t.Errorf("after its ban it took %d of seven picks, want its share", picks)
	}
}

func TestLeastBusyCap(t *testing.T) {
	t.Parallel()
	const endpoints, limit = 3, 4
	c := allocation.Config{Policy: allocation.LeastBusy, Cap: limit, Lease: 10 * time.Second}
	b := newBench(t, c)
	b.fill(endpoints)
	workers := []*allocation.Pools{b.pools, b.another(c)}
	var mu sync.Mutex
	flying, most, refused := map[string]int{}, 0, 0
	var group sync.WaitGroup
	for w := range 20 {
		group.Go(func() {
			p := workers[w%2]
			for range 15 {
				a, err := p.Take(t.Context(), b.pool, allocation.TakeOptions{})
				var empty *allocation.EmptyError
				if errors.As(err, &empty) && empty.Busy {
					mu.Lock()
					refused++
					mu.Unlock()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				// Counted after the take and before the release, so never more than Redis counts.
				mu.Lock()
				flying[a.ID]++
				most = max(most, flying[a.ID])
				mu.Unlock()
				mu.Lock()
				flying[a.ID]--
				mu.Unlock()
				if err := p.Report(t.Context(), allocation.Report{Pool: b.pool, ID: a.ID, Lease: a.Lease, Outcome: allocation.OK}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if most > limit {
		t.Errorf("an endpoint had %d leases, the cap is %d", most, limit)
	}
	for _, e := range b.list() {
		if e.InFlight != 0 {
			t.Errorf("%s has %d leases after all were released", e.ID, e.InFlight)
		}
	}
	// Without releases exactly endpoints × cap are given, evenly.
	for range endpoints * limit {
		b.take()
	}
	for _, e := range b.list() {
		if e.InFlight != limit {
			t.Errorf("%s has %d leases, want %d", e.ID, e.InFlight, limit)
		}
	}
	if e := b.empty(allocation.TakeOptions{}); !e.Busy || e.RetryAfter != 10*time.Second {
		t.Errorf("got %+v, want busy for 10 s", e)
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Policy: allocation.LeastBusy, Cap: 1, Lease: 10 * time.Second})
	ids := b.fill(1)
	abandoned := b.take() // by a worker that was killed
	if abandoned.Lease == "" {
		t.Fatal("no lease is given")
	}
	b.clock.move(10*time.Second - time.Microsecond)
	if e := b.empty(allocation.TakeOptions{}); e.RetryAfter != time.Microsecond {
		t.Errorf("free in %s, want 1µs", e.RetryAfter)
	}
	b.clock.move(time.Microsecond)
	fresh := b.take()
	release := func(token string) {
		t.Helper()
		b.reportFull(allocation.Report{ID: ids[0], Lease: token, Outcome: allocation.Cancelled})
	}
	release(abandoned.Lease)
	b.empty(allocation.TakeOptions{}) // the late release freed nothing
	release("")
	release("another")
	b.empty(allocation.TakeOptions{})
	release(fresh.Lease)
	again := b.take()
	release(fresh.Lease) // twice
	b.empty(allocation.TakeOptions{})

	// An endpoint that leaves and returns is still busy, and its lease still ends.
	b.must(b.pools.Remove(t.Context(), b.pool, ids[0]))
	b.load(ids[0])
	b.empty(allocation.TakeOptions{})
	b.must(b.pools.Remove(t.Context(), b.pool, ids[0]))
	err := b.pools.Report(t.Context(), allocation.Report{Pool: b.pool, ID: ids[0], Lease: again.Lease, Outcome: allocation.OK})
	if !errors.Is(err, allocation.ErrUnknownEndpoint) {
		t.Errorf("got %v, want an unknown endpoint", err)
	}
	b.load(ids[0])
	b.take()
}

func TestSticky(t *testing.T) {
	t.Parallel()
	c := allocation.Config{Policy: allocation.Sticky, Stick: time.Minute}
	b := newBench(t, c)
	b.fill(10)
	other := b.another(c)
	mine := map[string]string{}
	for i := range 60 {
		key := fmt.Sprintf("client %d", i%6)
		a, err := []*allocation.Pools{b.pools, other}[i%2].Take(t.Context(), b.pool, allocation.TakeOptions{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if mine[key] == "" {
			mine[key] = a.ID
		}
		if a.ID != mine[key] {
			t.Fatalf("%s got %s, then %s", key, mine[key], a.ID)
		}
	}
	spread := map[string]bool{}
	for _, id := range mine {
		spread[id] = true
	}
	if len(spread) != 6 { // each new key takes the least used, and none was used twice
		t.Errorf("six keys share %d endpoints", len(spread))
	}
	home := mine["client 0"]
	b.report(home, allocation.Connect)
	moved := b.takeFor(allocation.TakeOptions{Key: "client 0"}).ID
	if moved == home {
		t.Fatal("a quarantined endpoint is taken")
	}
	b.must(b.pools.Restore(t.Context(), b.pool, home))
	if id := b.takeFor(allocation.TakeOptions{Key: "client 0"}).ID; id != moved {
		t.Errorf("moved on from %s to %s, which it had while it was well", moved, id)
	}
	// A key's memory has an end.
	names, err := b.rdb.Keys(t.Context(), "fw:{pool:"+b.pool+"}:sticky:*").Result()
	if err != nil || len(names) != 6 {
		t.Fatalf("%d keys are remembered (%v), want 6", len(names), err)
	}
	for _, name := range names {
		if ttl := b.rdb.PTTL(t.Context(), name).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s ends in %s, want a minute at most", name, ttl)
		}
	}
	// Without a key it is least-used: nobody is remembered.
	seen := map[string]bool{}
	for range 10 {
		seen[b.take().ID] = true
	}
	if len(seen) < 2 {
		t.Error("calls without a key all got the same endpoint")
	}
}

// TestPolicyChange: the pool's records serve any policy, at once.
func TestPolicyChange(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	b.fill(5)
	for range 10 {
		b.take()
	}
	for _, policy := range []string{allocation.Shuffled, allocation.LeastBusy, allocation.NoRepeat, allocation.Random, allocation.Sticky, allocation.LeastUsed} {
		p := b.another(allocation.Config{Policy: policy})
		seen := map[string]bool{}
		for range 10 {
			a, err := p.Take(t.Context(), b.pool, allocation.TakeOptions{})
			if err != nil {
				t.Fatalf("%s: %v", policy, err)
			}
			seen[a.ID] = true
		}
		if len(seen) < 2 {
			t.Errorf("%s gave only %v", policy, seen)
		}
	}
	var sum int64
	for _, e := range b.list() {
		sum += e.Count
	}
	if sum != 70 {
		t.Errorf("%d allocations are counted, want 70", sum)
	}
}

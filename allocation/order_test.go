package allocation_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"feedwarden/allocation"
)

// processes and callers take from one pool at the same time; every pick is then
// looked at in the order in which Redis made it.
const (
	processes = 4
	callersOf = 8
)

// takesOf is how often each caller takes.
func takesOf(t *testing.T) int {
	t.Helper()
	if os.Getenv("SOAK") != "" {
		return 2000
	}
	return 30
}

func asEmpty(err error) (*allocation.EmptyError, bool) {
	var e *allocation.EmptyError
	return e, errors.As(err, &e)
}

// pickOrder gives all picks of a history, one after another.
func pickOrder(t *testing.T, h []event, want int) []string {
	t.Helper()
	var all []string
	batches := 0
	for _, e := range h {
		all = append(all, e.picks...)
		if len(e.picks) > 1 {
			batches++
		}
	}
	if len(all) != want {
		t.Fatalf("the order has %d picks, want %d", len(all), want)
	}
	if batches == 0 {
		t.Error("no call made several takes: the test has no crowd")
	}
	return all
}

// TestLeastUsedFromSeveralProcesses: while nobody comes or goes, no two counts
// differ by more than one after any pick.
func TestLeastUsedFromSeveralProcesses(t *testing.T) {
	t.Parallel()
	for _, endpoints := range []int{7, 100} { // fewer and more than one call's takes
		t.Run(fmt.Sprint(endpoints), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, allocation.Config{Policy: allocation.LeastUsed})
			ids := s.fill(endpoints)
			workers := employ(t, processes, s.orders(callersOf, takesOf(t)))
			work(workers)
			levels := make(map[string]int, endpoints)
			for _, id := range ids {
				levels[id] = 0
			}
			atLow, low := endpoints, 0
			for i, id := range pickOrder(t, s.history(workers), processes*callersOf*takesOf(t)) {
				if levels[id] != low {
					t.Fatalf("pick %d takes %s, which has %d, while others have %d", i, id, levels[id], low)
				}
				levels[id]++
				if atLow--; atLow == 0 {
					low, atLow = low+1, endpoints
				}
			}
			for _, e := range s.list() {
				if e.Count != int64(levels[e.ID]) {
					t.Errorf("%s has count %d, its picks were %d", e.ID, e.Count, levels[e.ID])
				}
			}
		})
	}
}

// TestNoRepeatFromSeveralProcesses: no endpoint follows itself in the order of all processes' picks.
func TestNoRepeatFromSeveralProcesses(t *testing.T) {
	t.Parallel()
	for _, endpoints := range []int{2, 3, 100} {
		t.Run(fmt.Sprint(endpoints), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, allocation.Config{Policy: allocation.NoRepeat})
			s.fill(endpoints)
			workers := employ(t, processes, s.orders(callersOf, takesOf(t)))
			work(workers)
			order := pickOrder(t, s.history(workers), processes*callersOf*takesOf(t))
			for i := 1; i < len(order); i++ {
				if order[i] == order[i-1] {
					t.Fatalf("pick %d repeats %s", i, order[i])
				}
			}
		})
	}
}

// TestShuffledFromSeveralProcesses: while nobody comes or goes, each pass is a
// permutation, and none begins with the end of the one before.
func TestShuffledFromSeveralProcesses(t *testing.T) {
	t.Parallel()
	for _, endpoints := range []int{2, 9, 100} {
		t.Run(fmt.Sprint(endpoints), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, allocation.Config{Policy: allocation.Shuffled})
			s.fill(endpoints)
			workers := employ(t, processes, s.orders(callersOf, takesOf(t)))
			work(workers)
			order := pickOrder(t, s.history(workers), processes*callersOf*takesOf(t))
			orders := map[string]bool{}
			last := ""
			for pass := range slices.Chunk(order, endpoints) {
				if pass[0] == last {
					t.Fatalf("a pass begins with %s, which ended the one before", last)
				}
				last = pass[len(pass)-1]
				orders[fmt.Sprint(pass)] = true
				sorted := slices.Clone(pass)
				slices.Sort(sorted)
				if len(slices.Compact(sorted)) != len(pass) {
					t.Fatalf("a pass is no permutation: %v", pass)
				}
			}
			if passes := len(order) / endpoints; endpoints > 2 && len(orders) < passes*9/10 {
				t.Errorf("%d passes had %d orders", passes, len(orders))
			}
		})
	}
}

// TestShuffledSurvivesComingAndGoing: while several processes take, endpoints are
// removed and come back in mid-pass. Those who stay are still each taken once a
// pass, and while all are in nobody follows himself.
func TestShuffledSurvivesComingAndGoing(t *testing.T) {
	t.Parallel()
	const endpoints, stay = 9, 5
	s := newScene(t, allocation.Config{Policy: allocation.Shuffled})
	ids := s.fill(endpoints)
	workers := employ(t, processes, s.orders(callersOf, 2*takesOf(t)))
	done := make(chan struct{})
	var movers sync.WaitGroup
	movers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			id := ids[stay+i%(endpoints-stay)]
			s.must(s.pools.Remove(t.Context(), s.pool, id))
			s.load(id)
		}
	})
	work(workers)
	close(done)
	movers.Wait()

	out, taken, last, changes := map[string]bool{}, map[string]int{}, "", 0
	stays := ids[:stay]
	for _, e := range s.history(workers) {
		for _, id := range ids[stay:] {
			switch {
			case e.has(id, "remove"):
				out[id], changes = true, changes+1
			case len(e.picks) == 0 && slices.Contains(e.args, id) && out[id]:
				delete(out, id)
			}
		}
		for _, id := range e.picks {
			if out[id] {
				t.Fatalf("took %s, which was removed", id)
			}
			if id == last && len(out) == 0 {
				t.Fatalf("%s follows itself while all are in", id)
			}
			last = id
			taken[id]++
			low, high := taken[stays[0]], taken[stays[0]]
			for _, s := range stays {
				low, high = min(low, taken[s]), max(high, taken[s])
			}
			if high-low > 1 {
				t.Fatalf("of those who stay some were taken %d times, some %d", low, high)
			}
		}
	}
	if changes < 10 {
		t.Errorf("only %d endpoints were removed meanwhile", changes)
	}
	for _, id := range ids[stay:] {
		if taken[id] == 0 {
			t.Errorf("%s came back and was never taken", id)
		}
	}
}

// TestLeastBusyFromSeveralProcesses: in the order of all takes and releases no
// endpoint ever has more leases than its cap, nor more than the least busy by
// two while all are eligible and none is released.
func TestLeastBusyFromSeveralProcesses(t *testing.T) {
	t.Parallel()
	const endpoints, limit = 5, 3
	s := newScene(t, allocation.Config{Policy: allocation.LeastBusy, Cap: limit, Lease: time.Minute})
	ids := s.fill(endpoints)
	o := s.orders(callersOf, takesOf(t))
	o.MayBeOut = true // 32 callers, room for 15
	workers := employ(t, processes, o)
	work(workers)
	flying, most := map[string]int{}, 0
	for _, e := range s.history(workers) {
		for _, id := range e.picks {
			low := limit
			for _, other := range ids {
				low = min(low, flying[other])
			}
			if flying[id] != low {
				t.Fatalf("took %s with %d leases while another has %d", id, flying[id], low)
			}
			flying[id]++
			most = max(most, flying[id])
			if flying[id] > limit {
				t.Fatalf("%s has %d leases, the cap is %d", id, flying[id], limit)
			}
		}
		if slices.Contains(e.args, string(allocation.OK)) {
			i := slices.IndexFunc(e.args, func(w string) bool { return slices.Contains(ids, w) })
			flying[e.args[i]]--
		}
	}
	if most != limit {
		t.Errorf("the most leases were %d: the cap of %d was never felt", most, limit)
	}
	for _, e := range s.list() {
		if e.InFlight != 0 || flying[e.ID] != 0 {
			t.Errorf("%s is left with %d leases, by the order %d", e.ID, e.InFlight, flying[e.ID])
		}
	}
}

// TestLeasesOfAKilledProcess: what a process held when it was killed is free again
// when its leases end, and a release by one of them later frees nothing.
func TestLeasesOfAKilledProcess(t *testing.T) {
	t.Parallel()
	const endpoints, limit, life = 3, 4, 3 * time.Second
	s := newScene(t, allocation.Config{Policy: allocation.LeastBusy, Cap: limit, Lease: life})
	s.fill(endpoints)
	o := s.orders(endpoints*limit, 1)
	o.Holds = true
	w := employ(t, 1, o)[0]
	w.start()
	w.listen(true)
	taken := time.Now()
	if err := w.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if len(w.picks) != endpoints*limit {
		t.Fatalf("the process took %d leases, want %d", len(w.picks), endpoints*limit)
	}
	e := s.empty(allocation.TakeOptions{})
	if !e.Busy || e.RetryAfter <= 0 || e.RetryAfter > life {
		t.Errorf("got %+v, want busy until the leases end", e)
	}
	var fresh []allocation.Allocation
	for len(fresh) < endpoints*limit {
		a, err := s.pools.Take(t.Context(), s.pool, allocation.TakeOptions{})
		if e, ok := asEmpty(err); ok && e.Busy {
			if time.Since(taken) > life+5*time.Second {
				t.Fatalf("%d leases are free after %s", len(fresh), time.Since(taken))
			}
			<-time.After(e.RetryAfter)
			continue
		}
		s.must(err)
		fresh = append(fresh, a)
	}
	for _, old := range w.picks {
		s.reportFull(allocation.Report{ID: old.ID, Lease: old.Lease, Outcome: allocation.Cancelled})
	}
	for _, e := range s.list() {
		if e.InFlight != limit {
			t.Errorf("%s has %d leases after late releases, want %d", e.ID, e.InFlight, limit)
		}
	}
}

// TestStickyFromSeveralProcesses: each key has one endpoint in all processes; when
// that is out, the key has another one, and those of other keys stay.
func TestStickyFromSeveralProcesses(t *testing.T) {
	t.Parallel()
	s := newScene(t, allocation.Config{Policy: allocation.Sticky})
	s.fill(10)
	o := s.orders(callersOf, takesOf(t))
	for i := range 40 {
		o.Keys = append(o.Keys, fmt.Sprintf("client %d", i))
	}
	homes := func() map[string]string {
		workers := employ(t, processes, o)
		work(workers)
		out := map[string]string{}
		for _, w := range workers {
			for _, p := range w.picks {
				if had := out[p.Key]; had != "" && had != p.ID {
					t.Fatalf("%s has %s and %s", p.Key, had, p.ID)
				}
				out[p.Key] = p.ID
			}
		}
		return out
	}
	before := homes()
	gone := before["client 0"]
	s.must(s.pools.Quarantine(t.Context(), s.pool, gone, time.Hour))
	after := homes()
	for key, was := range before {
		switch now := after[key]; {
		case was == gone && now == gone:
			t.Errorf("%s still has %s, which is out", key, gone)
		case was != gone && now != was:
			t.Errorf("%s moved from %s to %s for no reason", key, was, now)
		}
	}
}

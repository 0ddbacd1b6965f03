package allocation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"pgregory.net/rapid"
)

// member is what the model knows of an endpoint.
type member struct {
	count, score int
	until        time.Time // quarantined when not zero
	removed      bool
}

// eligible gives the lowest score and the members that have it.
func eligible(model map[string]*member, now time.Time) (lowest int, ids []string) {
	for id, m := range model {
		if m.removed || m.until.After(now) {
			continue
		}
		if len(ids) == 0 || m.score < lowest {
			lowest, ids = m.score, nil
		}
		if m.score == lowest {
			ids = append(ids, id)
		}
	}
	return lowest, ids
}

// TestLeastUsedModel lets endpoints come, go, return and be taken in any order
// and compares each pick, each count and each score with a plain model.
func TestLeastUsedModel(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		start := rapid.SampledFrom([]string{"floor", "zero", "7"}).Draw(rt, "start")
		c := allocation.Config{Start: start}
		b := benchOn(t, rdb, c)
		workers := []*allocation.Pools{b.pools, b.another(c)}
		model := map[string]*member{}
		names := make([]string, 5)
		for i := range names {
			names[i] = fmt.Sprintf("http://h%d.example:80", i)
		}
		// enter is the model's admit.
		enter := func(id string) {
			m := model[id]
			m.removed, m.until = true, time.Time{}
			lowest, ids := eligible(model, b.clock.read())
			switch {
			case start == "zero":
				m.score = 0
			case start == "7":
				m.score = 7
			case len(ids) > 0:
				m.score = lowest
			}
			m.removed = false
		}
		// due lets the ended quarantines return in the order of their ends, as every call does.
		due := func() {
			var ids []string
			for id, m := range model {
				if !m.until.IsZero() && !m.until.After(b.clock.read()) {
					ids = append(ids, id)
				}
			}
			slices.SortFunc(ids, func(x, y string) int {
				return model[x].until.Compare(model[y].until)*2 + strings.Compare(x, y)
			})
			ends := map[string]time.Time{}
			for _, id := range ids {
				ends[id], model[id].until = model[id].until, b.clock.read().Add(time.Hour)
			}
			for _, id := range ids {
				enter(id)
			}
		}
		var last time.Duration // each quarantine ends at an instant of its own
		pick := func(label string) string { return rapid.SampledFrom(names).Draw(rt, label) }
		known := func(id string) bool { return model[id] != nil && !model[id].removed }
		rt.Repeat(map[string]func(*rapid.T){
			"take": func(rt *rapid.T) {
				due()
				lowest, ids := eligible(model, b.clock.read())
				a, err := workers[rapid.IntRange(0, 1).Draw(rt, "worker")].Take(t.Context(), b.pool, allocation.TakeOptions{})
				if len(ids) == 0 {
					var empty *allocation.EmptyError
					if !errors.As(err, &empty) {
						rt.Fatalf("got %v and %v, want nothing eligible", a.ID, err)
					}
					return
				}
				if err != nil {
					rt.Fatal(err)
				}
				if !slices.Contains(ids, a.ID) {
					rt.Fatalf("took %s, want one of %v with score %d", a.ID, ids, lowest)
				}
				m := model[a.ID]
				m.count, m.score = m.count+1, m.score+1
				if a.Count != int64(m.count) {
					rt.Fatalf("count %d, want %d", a.Count, m.count)
				}
			},
			"import": func(rt *rapid.T) {
				due()
				id := pick("endpoint")
				r := b.load(id)
				if known(id) != (r.Duplicates == 1) || known(id) == (r.Accepted == 1) {
					rt.Fatalf("imported %s: %+v", id, r)
				}
				if !known(id) {
					if model[id] == nil {
						model[id] = &member{}
					}
					// A removed one keeps its count alone: where nobody is eligible it starts there.
					model[id].score = model[id].count
					enter(id)
				}
			},
			"quarantine": func(rt *rapid.T) {
				due()
				id := pick("endpoint")
				last += time.Millisecond
				d := time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds"))*time.Second + last
				err := b.pools.Quarantine(t.Context(), b.pool, id, d)
				if known(id) != (err == nil) || !known(id) && !errors.Is(err, allocation.ErrUnknownEndpoint) {
					rt.Fatalf("quarantine %s: %v", id, err)
				}
				if known(id) {
					model[id].until = b.clock.read().Add(d)
				}
			},
			"restore": func(rt *rapid.T) {
				due()
				id := pick("endpoint")
				if err := b.pools.Restore(t.Context(), b.pool, id); known(id) != (err == nil) {
					rt.Fatalf("restore %s: %v", id, err)
				}
				if known(id) && !model[id].until.IsZero() {
					enter(id)
				}
			},
			"remove": func(rt *rapid.T) {
				due()
				id := pick("endpoint")
				if err := b.pools.Remove(t.Context(), b.pool, id); known(id) != (err == nil) {
					rt.Fatalf("remove %s: %v", id, err)
				}
				if known(id) {
					model[id].removed, model[id].until = true, time.Time{}
				}
			},
			"wait": func(rt *rapid.T) {
				b.clock.move(time.Duration(rapid.IntRange(1, 10).Draw(rt, "seconds")) * time.Second)
			},
			"": func(rt *rapid.T) {
				total := 0
				for _, e := range b.list() {
					m := model[e.ID]
					if m == nil || m.removed {
						rt.Fatalf("%s is listed", e.ID)
					}
					total++
					if e.Count != int64(m.count) {
						rt.Fatalf("%s has count %d, want %d", e.ID, e.Count, m.count)
					}
					serving := m.until.IsZero()
					if serving && e.Count+e.Handicap != int64(m.score) {
						rt.Fatalf("%s has score %d, want %d", e.ID, e.Count+e.Handicap, m.score)
					}
					if out := m.until.After(b.clock.read()); out != (e.State == allocation.Quarantined) {
						rt.Fatalf("%s is %s, want out: %v", e.ID, e.State, out)
					}
				}
				if s := b.state(); s.Total != total {
					rt.Fatalf("state %+v, want %d in all", s, total)
				}
			},
		})
	})
}

// TestLeastUsedLevel takes from many goroutines and two Pools, and looks at the
// counts all the while: no two ever differ by more than one.
func TestLeastUsedLevel(t *testing.T) {
	t.Parallel()
	const endpoints, workers, takes = 7, 16, 60
	c := allocation.Config{}
	b := newBench(t, c)
	b.fill(endpoints)
	both := []*allocation.Pools{b.pools, b.another(c)}
	level := func(when string) {
		all, err := b.rdb.HGetAll(t.Context(), "fw:{pool:"+b.pool+"}:endpoints").Result()
		if err != nil {
			t.Error(err)
		}
		low, high := 1<<30, 0
		for field := range all {
			if strings.HasPrefix(field, "u:") {
				n := 0
				_, _ = fmt.Sscan(all["c:"+field[2:]], &n)
				low, high = min(low, n), max(high, n)
			}
		}
		if high-low > 1 {
			t.Errorf("%s: counts from %d to %d", when, low, high)
		}
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for range takes {
				if _, err := both[w%2].Take(t.Context(), b.pool, allocation.TakeOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			level("meanwhile")
		}
	}
	level("at the end")
	var sum int64
	for _, e := range b.list() {
		sum += e.Count
	}
	if sum != workers*takes {
		t.Errorf("%d allocations are counted, want %d", sum, workers*takes)
	}
}

// TestTiesGoToAll: where members are level, each of them is picked first now and then, by every policy.
func TestTiesGoToAll(t *testing.T) {
	t.Parallel()
	for _, policy := range allPolicies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			first := map[string]bool{}
			for range 60 {
				b := newBench(t, allocation.Config{Policy: policy})
				b.fill(3)
				first[b.takeFor(allocation.TakeOptions{Key: "k"}).ID] = true
			}
			if len(first) != 3 { // each is missed once in 10^10 runs
				t.Errorf("only %v are ever first", first)
			}
		})
	}
}

func TestRoundsOfLeastUsedDiffer(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	b.fill(5)
	orders := map[string]bool{}
	for range 12 {
		var order []string
		for range 5 {
			order = append(order, b.take().ID)
		}
		orders[strings.Join(order, " ")] = true
	}
	if len(orders) < 3 {
		t.Errorf("12 rounds had %d orders", len(orders))
	}
}

// counted gives an endpoint a history without taking it so often.
func (b *bench) counted(n int, ids ...string) {
	b.t.Helper()
	k := "fw:{pool:" + b.pool + "}:"
	pipe := b.rdb.Pipeline()
	for _, id := range ids {
		pipe.HSet(b.t.Context(), k+"endpoints", "c:"+id, n)
		pipe.ZIncrBy(b.t.Context(), k+"ready", float64(n), id)
	}
	_, err := pipe.Exec(b.t.Context())
	b.must(err)
}

func TestRestoredEndpointTakesOnePercentOfTheNextTenThousand(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(100)
	back := ids[42]
	b.must(b.pools.Quarantine(t.Context(), b.pool, back, time.Hour))
	b.counted(10_000, slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == back })...)
	b.must(b.pools.Restore(t.Context(), b.pool, back))
	if e := b.endpoint(back); e.Count != 0 || e.Handicap != 10_000 {
		t.Errorf("back with count %d and handicap %d, want 0 and 10000", e.Count, e.Handicap)
	}
	const takes = 10_000
	var mu sync.Mutex
	got := 0
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for range takes / 20 {
				if b.take().ID == back {
					mu.Lock()
					got++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if got < takes/100-1 || got > takes/100+1 {
		t.Errorf("the restored one took %d of %d picks, want 1 %%", got, takes)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		start string
		run   int   // picks that the returning endpoint takes in a row
		score int64 // after its return
	}{
		{"floor", 1, 50}, {"zero", 50, 0}, {"40", 50, 40},
	} {
		t.Run(c.start, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, allocation.Config{Start: c.start})
			ids := b.fill(3)
			b.counted(50, ids[0], ids[1])
			b.counted(20, ids[2])
			b.must(b.pools.Quarantine(t.Context(), b.pool, ids[2], time.Second))
			b.must(b.pools.Restore(t.Context(), b.pool, ids[2]))
			e := b.endpoint(ids[2])
			if e.Count != 20 || e.Count+e.Handicap != c.score {
				t.Fatalf("back with count %d and score %d, want 20 and %d", e.Count, e.Count+e.Handicap, c.score)
			}
			// Until it is level with the others it is alone at the bottom.
			for range c.run - 1 {
				if a := b.take(); a.ID != ids[2] {
					t.Fatalf("took %s, want %s", a.ID, ids[2])
				}
			}
			seen := map[string]int{}
			for range 9 {
				seen[b.take().ID]++
			}
			if len(seen) != 3 {
				t.Errorf("then took %v, want all three", seen)
			}
		})
	}
}

func TestCountsSurviveRemovalAndReturn(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(2)
	for range 10 {
		b.take()
	}
	b.must(b.pools.Remove(t.Context(), b.pool, ids[0]))
	if l := b.list(); len(l) != 1 || l[0].ID != ids[1] {
		t.Fatalf("listed are %v, want %s alone", l, ids[1])
	}
	for range 10 {
		b.take()
	}
	if r := b.load(ids[0]); r.Accepted != 1 {
		t.Fatalf("the return is %+v, want it accepted", r)
	}
	if e := b.endpoint(ids[0]); e.Count != 5 || e.Handicap != 10 {
		t.Errorf("back with count %d and handicap %d, want 5 and 10", e.Count, e.Handicap)
	}
}

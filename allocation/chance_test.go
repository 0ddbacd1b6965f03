package allocation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/testredis"
)

// chiSquared is the statistic of counts that should all be the same.
func chiSquared(counts []int) float64 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	want, chi := float64(sum)/float64(len(counts)), 0.0
	for _, n := range counts {
		d := float64(n) - want
		chi += d * d / want
	}
	return chi
}

// fixedSeeds makes every script call take the next seed of a list that is the same in every run.
func (p *Pools) fixedSeeds(list uint64) {
	r := rand.New(rand.NewPCG(list, 0))
	p.seed = func() int { return 1 + r.IntN(maxSeed) }
}

// poolOf is a new pool, on a clock that stands still.
func poolOf(t *testing.T, c Config) *Pools {
	t.Helper()
	c.Name = testredis.Name("pool")
	p, err := New(testredis.Client(t), []Config{c}, WithClock(func() time.Time { return time.UnixMicro(1_800_000_000_000_000) }))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fillPool(t *testing.T, p *Pools, n int) map[string]int {
	t.Helper()
	at := make(map[string]int, n)
	var list strings.Builder
	for i := range n {
		id := fmt.Sprintf("http://p%03d.example:8080", i)
		at[id] = i
		list.WriteString(id + "\n")
	}
	if _, err := p.Import(t.Context(), p.Names()[0], strings.NewReader(list.String()), nil); err != nil {
		t.Fatal(err)
	}
	return at
}

// takeMany takes n times in calls of so many takes and gives the picks in order.
func takeMany(t *testing.T, p *Pools, n, together int, o TakeOptions) []string {
	t.Helper()
	b, err := p.pool(p.Names()[0])
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for len(out) < n {
		asked := make([]*ask, min(together, n-len(out)))
		for i := range asked {
			asked[i] = &ask{TakeOptions: o, done: make(chan struct{})}
		}
		p.takeAll(t.Context(), b.Name, asked)
		for _, a := range asked {
			if a.err != nil {
				t.Fatal(a.err)
			}
			out = append(out, a.a.ID)
		}
	}
	return out
}

// TestRandomPassesChiSquared: at a fixed list of seeds the picks are even, and so
// are the pairs of one pick and the next, in calls of one take and of many.
// The limits are those that chance passes once in 100,000 lists.
func TestRandomPassesChiSquared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		endpoints, together int
		barred              bool
		single, pairs       float64
		takes               int
	}{
		{10, 1, false, 38.6, 164, 3000}, // 9 and 99 degrees of freedom
		{10, batch, false, 38.6, 164, 20000},
		{10, batch, true, 38.6, 164, 20000}, // an eleventh is barred from the target
		{100, batch, false, 164, 0, 20000},  // more than are read at once
	} {
		t.Run(fmt.Sprintf("%d in calls of %d, barred %v", c.endpoints, c.together, c.barred), func(t *testing.T) {
			t.Parallel()
			p := poolOf(t, Config{Policy: Random})
			p.fixedSeeds(1)
			n, o := c.endpoints, TakeOptions{}
			if c.barred {
				n++
			}
			at := fillPool(t, p, n)
			if c.barred {
				o.Target = "t.example"
				for id, i := range at {
					if i == n-1 {
						if err := p.Report(t.Context(), Report{Pool: p.Names()[0], ID: id, Target: o.Target, Outcome: Ban}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			single, pairs := make([]int, c.endpoints), make([]int, c.endpoints*c.endpoints)
			last := -1
			for _, id := range takeMany(t, p, c.takes, c.together, o) {
				i := at[id]
				if i >= c.endpoints {
					t.Fatal("a barred endpoint is taken")
				}
				single[i]++
				if last >= 0 {
					pairs[last*c.endpoints+i]++
				}
				last = i
			}
			if chi := chiSquared(single); chi > c.single {
				t.Errorf("chi squared is %.1f, want %.1f at most: %v", chi, c.single, single)
			}
			if chi := chiSquared(pairs); c.pairs > 0 && chi > c.pairs {
				t.Errorf("chi squared of pairs is %.1f, want %.1f at most", chi, c.pairs)
			}
		})
	}
}

// TestTiesFavourNobody: over many new pools each of five equal members is as often
// the first pick, and the first and the last of the round after, as the others.
func TestTiesFavourNobody(t *testing.T) {
	t.Parallel()
	const pools, members = 300, 5
	for _, policy := range []string{LeastUsed, LeastBusy, Sticky} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			first, sixth, last := make([]int, members), make([]int, members), make([]int, members)
			for i := range pools {
				p := poolOf(t, Config{Policy: policy, Cap: 10})
				p.fixedSeeds(uint64(i))
				at := fillPool(t, p, members)
				var picks []string
				for k := range 2 * members {
					// A new key each time: sticky has to assign one.
					picks = append(picks, takeMany(t, p, 1, 1, TakeOptions{Key: fmt.Sprint(k)})...)
				}
				first[at[picks[0]]]++
				sixth[at[picks[members]]]++
				last[at[picks[2*members-1]]]++
			}
			for name, counts := range map[string][]int{"first": first, "first of the next round": sixth, "last of it": last} {
				if chi := chiSquared(counts); chi > 28.5 { // four degrees of freedom: once in 100,000 lists of seeds
					t.Errorf("the %s pick: chi squared is %.1f for %v", name, chi, counts)
				}
			}
		})
	}
}

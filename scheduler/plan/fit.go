package plan

import (
	"context"
	"slices"
	"sort"
	"time"

	"feedwarden/quota"
)

// Fit is how the feeds of a quota could run so that none of their ticks waits.
type Fit struct {
	Found bool
	// Spread: their ticks must not come at once, but be laid evenly over their interval.
	Spread bool
	Feeds  []FitFeed // by name
}

// FitFeed is one feed as it would fit.
type FitFeed struct {
	Name, Group string
	Now, Fits   time.Duration // between ticks
	TTL         time.Duration // the shortest that it would keep then
}

// steps are the intervals that are proposed: what a person would write.
var steps = func() []int64 {
	var out []int64
	add := func(to, by time.Duration) {
		from := time.Duration(0)
		if len(out) > 0 {
			from = micros(out[len(out)-1])
		}
		for d := from + by; d <= to; d += by {
			out = append(out, d.Microseconds())
		}
	}
	add(time.Minute, time.Second)
	add(5*time.Minute, 5*time.Second)
	add(3*time.Hour, time.Minute)
	add(12*time.Hour, 5*time.Minute)
	add(48*time.Hour, 30*time.Minute)
	add(31*24*time.Hour, 6*time.Hour)
	return out
}()

// step is the index of the first proposed interval that is not shorter.
func step(d int64) int {
	return min(sort.Search(len(steps), func(i int) bool { return steps[i] >= d }), len(steps)-1)
}

// fit searches for the least slowing, alike for all feeds, under which nothing
// waits: by halving, since what is slower waits less. Where ticks of one instant
// are what is too much, it also lays them out.
func fit(ctx context.Context, q quota.Config, courses []*course, from, to time.Time) (*Fit, error) {
	base := int64(0) // the interval of the feed that ticks most often
	for _, k := range courses {
		if k.usual > 0 && (base == 0 || k.usual < base) {
			base = k.usual
		}
	}
	if base == 0 {
		return &Fit{}, nil
	}
	var fault error
	for _, spread := range []bool{false, true} {
		slowed := func(i int) []*course { return slower(courses, from, to, base, i, spread) }
		calm := func(i int) bool {
			if fault != nil {
				return true
			}
			ledger, err := quota.NewLedger(q)
			if err != nil {
				fault = err
				return true
			}
			s := newSimulation(ledger, slowed(i), from, to)
			s.calm = true
			fault = s.run(ctx)
			return !s.storm
		}
		low := step(base)
		i := low + sort.Search(len(steps)-low, func(i int) bool { return calm(low + i) })
		if fault != nil {
			return nil, fault
		}
		if i < len(steps) {
			return proposal(courses, slowed(i), spread), nil
		}
	}
	return &Fit{}, nil
}

// slower slows all feeds by the factor that makes base the i-th step.
func slower(courses []*course, from, to time.Time, base int64, i int, spread bool) []*course {
	out := make([]*course, len(courses))
	for n, k := range courses {
		usual := k.usual
		if steps[i] > base {
			usual = steps[step(int64(float64(k.usual)*float64(steps[i])/float64(base)))]
		}
		later := int64(0)
		if spread {
			later = usual / int64(len(courses)) * int64(n)
		}
		out[n] = k.slower(from.UnixMicro(), to.UnixMicro(), max(usual, k.usual), later)
	}
	return out
}

func proposal(courses, slowed []*course, spread bool) *Fit {
	f := &Fit{Found: true, Spread: spread}
	for i, k := range courses {
		f.Feeds = append(f.Feeds, FitFeed{
			Name: k.Name, Group: k.Group, Now: micros(k.usual), Fits: micros(slowed[i].usual),
			TTL: micros(slowed[i].longest),
		})
	}
	slices.SortFunc(f.Feeds, func(a, b FitFeed) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return f
}

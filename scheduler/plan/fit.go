package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"feedwarden/quota"
	"feedwarden/scheduler"
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
	Expression  string        // what to write for it; "" where the schedule stays, or ticks are left out of it
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

// mostFitTicks bounds the ticks of one candidate beyond the span that was asked for.
const mostFitTicks = 500_000

// fit searches for the least slowing, alike for all feeds, under which nothing
// waits: by halving, since what is slower waits less. Where ticks of one instant
// are what is too much, it also lays them out. Each candidate is simulated as
// the scheduler would run it once it stands in the config.
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
		var found []*course
		calm := func(i int) bool {
			if fault != nil {
				return true
			}
			usual := slower(courses, base, i)
			until := reach(q, usual, from, to)
			candidate, err := rewritten(courses, usual, spread, from, until)
			if err != nil {
				fault = err
				return true
			}
			ledger, err := quota.NewLedger(q)
			if err != nil {
				fault = err
				return true
			}
			s := newSimulation(ledger, candidate, from, until)
			s.calm = true
			if fault = s.run(ctx); !s.storm {
				found = candidate
			}
			return !s.storm
		}
		low := step(base)
		i := low + sort.Search(len(steps)-low, func(i int) bool { return calm(low + i) })
		if fault != nil {
			return nil, fault
		}
		if i < len(steps) {
			return proposal(courses, found, spread), nil
		}
	}
	return &Fit{}, nil
}

// slower are the intervals of all feeds, slowed by the factor that makes base
// the i-th step.
func slower(courses []*course, base int64, i int) []int64 {
	out := make([]int64, len(courses))
	for n, k := range courses {
		out[n] = k.usual
		if steps[i] > base && k.usual > 0 {
			out[n] = max(k.usual, steps[step(int64(float64(k.usual)*float64(steps[i])/float64(base)))])
		}
	}
	return out
}

// reach is how far feeds of these intervals are simulated: over the span, and
// over so much that each window is full once and each feed has its turn, since
// an hour without a wait says little of a day's limit.
func reach(q quota.Config, usual []int64, from, to time.Time) time.Time {
	length := time.Duration(0)
	for _, w := range q.Windows {
		if length = max(length, w.Per); w.Calendar != "" {
			length = max(length, 50*time.Hour) // a whole day and the rest of one, the longest too
		}
	}
	pace := 0.0 // ticks a µs
	for _, d := range usual {
		if d > 0 {
			pace += 1 / float64(d)
		}
	}
	length += micros(slices.Max(usual))
	if most := mostFitTicks / pace; float64(length.Microseconds()) > most {
		length = micros(int64(most))
	}
	return from.Add(max(length, to.Sub(from)))
}

// rewritten are the courses of feeds whose config was changed to these intervals.
func rewritten(courses []*course, usual []int64, spread bool, from, to time.Time) ([]*course, error) {
	feeds := make([]Feed, len(courses))
	entries := make([]scheduler.Entry, len(courses))
	for i, k := range courses {
		feeds[i] = k.slowed(usual[i], spread)
		entries[i] = feeds[i].Tick
	}
	tables, err := scheduler.Timetables(entries)
	if err != nil {
		return nil, fmt.Errorf("plan: what would fit: %w", err)
	}
	out := make([]*course, len(courses))
	for i, k := range courses {
		out[i] = newCourse(feeds[i], tables[i], from, to)
		if usual[i] > k.usual && !k.even {
			out[i].thin(usual[i])
		}
		out[i].usual = usual[i]
	}
	return out, nil
}

func proposal(courses, slowed []*course, spread bool) *Fit {
	f := &Fit{Found: true, Spread: spread}
	for i, k := range courses {
		one := FitFeed{Name: k.Name, Group: k.Group, Now: micros(k.usual), Fits: micros(slowed[i].usual), TTL: micros(slowed[i].kept())}
		if now := slowed[i].Tick.Expression; now != k.Tick.Expression {
			one.Expression = now
		}
		f.Feeds = append(f.Feeds, one)
	}
	slices.SortFunc(f.Feeds, func(a, b FitFeed) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

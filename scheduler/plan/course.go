package plan

import (
	"iter"
	"math"
	"slices"
	"time"

	"feedwarden/internal/units"
	"feedwarden/scheduler"
)

// course is one feed and when it is due. Instants are in Unix µs.
type course struct {
	Feed
	ticks         []int64 // in from ≤ t < to
	before, after int64   // the ticks on either side of them; 0: none
	within        int64   // how long a held tick may wait
	first         int64   // nominal instant of the first tick
	usual         int64   // the usual distance of two ticks
	longest       int64   // the longest
	even          bool    // all distances are alike, but for jitter and phase
}

func newCourse(f Feed, t scheduler.Timetable, from, to time.Time) *course {
	k := &course{Feed: f}
	k.Tick = t.Entry()
	k.Cost, k.Pages = max(f.Cost, 1), max(f.Pages, 1)
	if k.Group == "" {
		k.Group = k.Name
	}
	k.within = k.Tick.CatchUp.Within.Microseconds()
	var nominal []int64
	if tick, ok := t.Before(from); ok {
		k.before = tick.FireAt.UnixMicro()
		nominal = append(nominal, tick.Instant.UnixMicro())
	}
	for tick := range t.Between(from, to) {
		if len(k.ticks) == 0 {
			k.first = tick.Instant.UnixMicro()
		}
		k.ticks = append(k.ticks, tick.FireAt.UnixMicro())
		nominal = append(nominal, tick.Instant.UnixMicro())
	}
	if tick, ok := t.After(to); ok {
		k.after = tick.FireAt.UnixMicro()
		nominal = append(nominal, tick.Instant.UnixMicro())
	}
	if gaps := slices.Sorted(distances(nominal)); len(gaps) > 0 {
		k.usual = gaps[len(gaps)/2]
		k.even = gaps[0] == gaps[len(gaps)-1]
	}
	k.measure()
	return k
}

func distances(instants []int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := 1; i < len(instants) && yield(instants[i]-instants[i-1]); i++ {
		}
	}
}

// measure finds the longest distance of two ticks.
func (k *course) measure() {
	k.longest = 0
	last := k.before
	for i := 0; i <= len(k.ticks); i++ {
		t := k.after
		if i < len(k.ticks) {
			t = k.ticks[i]
		}
		if last != 0 && t != 0 {
			k.longest = max(k.longest, t-last)
		}
		last = t
	}
}

// slowed is the feed as its config reads at another usual distance of its ticks:
// an even schedule becomes an @every. Of one with pauses no expression is known;
// thin takes ticks out. spread lays the feeds of its group over that distance.
func (k *course) slowed(usual int64, spread bool) Feed {
	f := k.Feed
	if usual > k.usual && k.even {
		f.Tick.Expression = "@every " + units.FormatDuration(micros(usual))
	}
	if spread && f.Of > 1 {
		f.Tick.Phase, f.Tick.Spread = scheduler.PhaseOf(micros(usual), f.Index, f.Of), 0
	}
	return f
}

// thin leaves out ticks evenly, so that their usual distance becomes this.
func (k *course) thin(usual int64) {
	factor := float64(usual) / float64(k.usual)
	all := k.ticks
	k.ticks = nil
	for i, t := range all {
		if i == 0 || math.Floor(float64(i)/factor) != math.Floor(float64(i-1)/factor) {
			k.ticks = append(k.ticks, t)
		}
	}
	k.measure()
}

// kept is the shortest ttl that the course keeps, whatever its jitter brings.
func (k *course) kept() int64 {
	if k.even {
		return max(k.longest, k.usual+min(k.Tick.Jitter.Microseconds(), k.usual))
	}
	return k.longest
}

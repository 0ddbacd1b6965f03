package plan

import (
	"iter"
	"math"
	"slices"
	"time"

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

// slower is the course at another usual distance: stretched from an instant on
// where it is even, else with ticks left out evenly. later moves it.
func (k *course) slower(from, to, usual, later int64) *course {
	if k.usual == 0 {
		return k
	}
	factor := float64(usual) / float64(k.usual)
	out := *k
	out.ticks, out.before, out.after = nil, 0, k.after
	if k.even {
		// The nominal instants are stretched; phase and jitter stay as they are.
		nominal := func(i int) int64 { return k.first + int64(i)*k.usual }
		move := func(i int, t int64) int64 {
			return from + int64(float64(nominal(i)-from)*factor) + t - nominal(i) + later
		}
		if len(k.ticks) == 0 {
			return &out
		}
		out.after = move(len(k.ticks), k.ticks[len(k.ticks)-1]+k.usual)
		at := move(0, k.ticks[0])
		for at-usual >= from { // what came before the start moves into it
			at -= usual
		}
		for out.before = at - usual; at < min(to, move(0, k.ticks[0])); at += usual {
			out.ticks = append(out.ticks, at)
		}
		for i, t := range k.ticks {
			if t = move(i, t); t >= to {
				out.after = t
				break
			}
			out.ticks = append(out.ticks, t)
		}
	} else {
		out.before = k.before
		for i, t := range k.ticks {
			if i == 0 || math.Floor(float64(i)/factor) != math.Floor(float64(i-1)/factor) {
				if t += later; t < to {
					out.ticks = append(out.ticks, t)
				}
			}
		}
	}
	out.measure()
	out.usual = usual
	return &out
}

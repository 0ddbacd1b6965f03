package scheduler

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"time"
)

// Upcoming is one tick to come.
type Upcoming struct {
	Schedule string    `json:"schedule"`
	Feed     string    `json:"feed"`
	Instant  time.Time `json:"instant"` // nominal, UTC
	FireAt   time.Time `json:"fire_at"` // Instant with the schedule's phase and jitter, UTC
}

// Ahead gives the ticks of entries that are due in from < FireAt ≤ from+span,
// the earliest first, of one instant by name; at most so many. more says that
// there are others. It knows of no pause and of no tick that waits. The error
// is that of NewDispatcher. The work is O(entries + most·log entries).
func Ahead(entries []Entry, from time.Time, span time.Duration, most int) (ticks []Upcoming, more bool, err error) {
	plans, err := plan(entries)
	if err != nil {
		return nil, false, err
	}
	ticks, more = ahead(plans, from.UnixMilli(), from.Add(span).UnixMilli(), most)
	return ticks, more, nil
}

// Ahead is Ahead of the configured schedules.
func (d *Dispatcher) Ahead(from time.Time, span time.Duration, most int) (ticks []Upcoming, more bool) {
	plans, _ := d.snapshot()
	return ahead(plans, from.UnixMilli(), from.Add(span).UnixMilli(), most)
}

func ahead(plans map[string]*planned, from, to int64, most int) (ticks []Upcoming, more bool) {
	line := make(agenda, 0, len(plans))
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		p := plans[name]
		it := &item{plan: p, last: from - p.delay, index: len(line)}
		// Jitter may carry one tick over from.
		if before, ok := p.before(it.last + 1); ok && p.fireAt(before) > from {
			it.last = before - 1
		}
		if it.aim(); it.fire <= to {
			line = append(line, it)
		}
	}
	heap.Init(&line)
	ticks = make([]Upcoming, 0, min(max(most, 0), 1024))
	for len(line) > 0 {
		it := line[0]
		if len(ticks) >= most {
			more = true
			break
		}
		instant, _ := it.plan.after(it.last)
		t := it.plan.tick(instant)
		ticks = append(ticks, Upcoming{Schedule: t.Schedule, Feed: t.Feed, Instant: t.Instant, FireAt: t.FireAt})
		it.last = instant
		if it.aim(); it.fire <= to {
			heap.Fix(&line, 0)
		} else {
			heap.Pop(&line)
		}
	}
	slices.SortStableFunc(ticks, func(a, b Upcoming) int {
		return cmp.Or(a.FireAt.Compare(b.FireAt), cmp.Compare(a.Schedule, b.Schedule))
	})
	return ticks, more
}

package scheduler

import (
	"iter"
	"time"
)

// Timetable is one schedule's ticks by the clock alone: it knows of no pause, no
// misfire and no tick that waits.
type Timetable struct{ plan *planned }

// Timetables reads entries, in their order. The error is that of NewDispatcher.
func Timetables(entries []Entry) ([]Timetable, error) {
	plans, err := plan(entries)
	if err != nil {
		return nil, err
	}
	out := make([]Timetable, len(entries))
	for i, e := range entries {
		out[i] = Timetable{plans[e.Name]}
	}
	return out, nil
}

// Entry is the entry with its defaults filled in.
func (t Timetable) Entry() Entry { return t.plan.Entry }

// Between yields the ticks that are due in from ≤ FireAt < to, in order.
func (t Timetable) Between(from, to time.Time) iter.Seq[Tick] {
	return func(yield func(Tick) bool) {
		low, high := millisUp(from), millisUp(to)
		instant, ok := t.firstDue(low)
		for ok && t.plan.fireAt(instant) < high && yield(t.plan.tick(instant)) {
			instant, ok = t.plan.after(instant)
		}
	}
}

// After is the first tick that is due at or after an instant.
func (t Timetable) After(at time.Time) (Tick, bool) {
	instant, ok := t.firstDue(millisUp(at))
	if !ok {
		return Tick{}, false
	}
	return t.plan.tick(instant), true
}

// Before is the last tick that was due before an instant.
func (t Timetable) Before(at time.Time) (Tick, bool) {
	low := millisUp(at)
	instant, ok := t.plan.before(low - t.plan.delay)
	if ok && t.plan.fireAt(instant) >= low {
		instant, ok = t.plan.before(instant)
	}
	if !ok {
		return Tick{}, false
	}
	return t.plan.tick(instant), true
}

// firstDue is the first nominal instant whose tick is due at or after low.
func (t Timetable) firstDue(low int64) (int64, bool) {
	// Jitter may carry one tick over low.
	if instant, ok := t.plan.before(low - t.plan.delay + 1); ok && t.plan.fireAt(instant) >= low {
		return instant, true
	}
	return t.plan.after(low - t.plan.delay)
}

// millisUp is an instant in Unix milliseconds, rounded up.
func millisUp(t time.Time) int64 {
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

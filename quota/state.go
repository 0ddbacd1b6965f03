package quota

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// State is a quota as it stands, for people to look at.
type State struct {
	Name        string
	Now         time.Time // Redis's clock; all instants are by it
	Windows     []Use
	Remaining   int64     // units that all windows have left, never negative
	Reserve     int64     // how many of them are for Interactive charges alone
	NextRelease time.Time // when a window next counts less; zero when none counts anything
	Scheduled   Line
	Interactive Line
	LongestWait time.Duration // how long ago the longest waiting first asked
	Waiters     []Waiter      // the first of each line, Interactive ones before Scheduled ones

	BlockedUntil time.Time // zero when open
	BlockReason  string

	Seen
}

// Line is how many wait in a class, and for how much.
type Line struct {
	Waiting int64
	Units   int64
}

// Waiter is one place in a line.
type Waiter struct {
	ID       string
	Priority Priority
	Position int64 // 1 = next, Interactive before Scheduled
	Cost     int64
	Promised time.Time
	Since    time.Time // when it first asked
}

// shown is how many waiters of each class a State names.
const shown = 20

// State reads a quota. It charges nothing; waiters whose grace is over go.
func (l *Limiter) State(ctx context.Context, quota string) (State, error) {
	return l.StateTo(ctx, quota, shown)
}

// StateTo is State with so many waiters of each class, at most. It costs Redis
// some two microseconds for each.
func (l *Limiter) StateTo(ctx context.Context, quota string, waiters int) (State, error) {
	b, err := l.find(quota)
	var reply []any
	if err == nil {
		reply, err = stateScript.Run(ctx, l.rdb, b.keys, l.argsWith(b, waiters)...).Slice()
	}
	var s State
	if err == nil {
		s, err = state(b.Config, reply)
	}
	if err != nil {
		return State{}, fmt.Errorf("quota: state %q: %w", quota, scriptError(err))
	}
	return s, nil
}

func state(c Config, reply []any) (State, error) {
	r := reader{rest: reply}
	s := State{Name: c.Name, Reserve: c.Reserve}
	s.Now, s.NextRelease, s.BlockedUntil, s.BlockReason = r.time(), r.time(), r.time(), r.text()
	counters := r.array()
	s.Seen = counters.seen()
	r.err = errors.Join(r.err, counters.done())
	if since := r.time(); !since.IsZero() {
		s.LongestWait = max(s.Now.Sub(since), 0) // the clock may have stepped back
	}
	s.Scheduled = Line{Waiting: r.int(), Units: r.int()}
	s.Interactive = Line{Waiting: r.int(), Units: r.int()}
	spans := r.ints(len(c.Windows))
	s.Windows = uses(c, r.ints(len(c.Windows)), spans)
	s.Remaining = remaining(s.Windows)
	var places [2]int64
	for len(r.rest) > 0 && r.err == nil {
		w := Waiter{Priority: Priority(r.int() - 1), ID: r.text(), Cost: r.int(), Promised: r.time(), Since: r.time()}
		if w.Priority != Scheduled && w.Priority != Interactive {
			return State{}, fmt.Errorf("%w: class %d", errReply, w.Priority)
		}
		places[w.Priority]++
		w.Position = places[w.Priority]
		if w.Priority == Scheduled {
			w.Position += s.Interactive.Waiting
		}
		s.Waiters = append(s.Waiters, w)
	}
	if err := r.done(); err != nil {
		return State{}, err
	}
	return s, nil
}

// remaining is what all windows have left; a limit that was lowered below its use leaves 0.
func remaining(uses []Use) int64 {
	left := int64(MaxLimit)
	for _, u := range uses {
		left = min(left, u.Limit-u.Used)
	}
	return max(left, 0)
}

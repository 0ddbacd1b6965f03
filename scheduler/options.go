package scheduler

import (
	"log/slog"
	"time"
)

// Option changes a Dispatcher's defaults.
type Option func(*Dispatcher)

// WithClock gives the wall clock. Without it Redis's time decides what is
// due, so that hosts whose clocks differ agree.
func WithClock(c Clock) Option {
	return func(d *Dispatcher) { d.clock, d.given = c, true }
}

// WithLogger gives the logger: a line for each tick dispatched, skipped or
// missed. The default is slog.Default.
func WithLogger(l *slog.Logger) Option {
	return func(d *Dispatcher) { d.log = l }
}

// WithConcurrency sets how many enqueues run at a time; the default is 32.
func WithConcurrency(n int) Option {
	return func(d *Dispatcher) { d.workers = max(1, n) }
}

// WithCatchUpCap sets how many missed ticks of one schedule run at most under
// CatchUpAll; the default is 1000.
func WithCatchUpCap(n int) Option {
	return func(d *Dispatcher) { d.catchUpCap = int64(max(1, n)) }
}

const (
	defaultWorkers    = 32
	defaultCatchUpCap = 1000

	// nap is the longest sleep: then the wall clock is read again.
	nap = time.Second
	// grain is the shortest sleep: ticks due within it are worked on together.
	grain = 10 * time.Millisecond
	// stall is how long a dispatcher may be without a look at the clock and still count as up.
	stall = 10 * time.Second
	// handover is how long a tick is left to the dispatcher whose turn it is.
	handover = 500 * time.Millisecond
	// slack is how late a tick may be, while another dispatcher lives, before it counts as missed.
	slack = 5 * time.Second
	// lateAfter is the lateness from which a tick counts as late.
	lateAfter = time.Second
	// overlapPause is how long to wait before a feed's job is asked for again.
	overlapPause = time.Second
)

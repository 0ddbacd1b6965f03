package scheduler

import (
	"context"
	"fmt"
	"time"
)

// Tick is one instant of one schedule, to become one job.
type Tick struct {
	Schedule string
	Feed     string
	Instant  time.Time // nominal: what the expression says, in UTC
	FireAt   time.Time // Instant with the schedule's phase and jitter
	Manual   string    // the ID of the trigger or backfill that asked for it; "" for a tick of the clock
}

// ID names the tick on every replica: "trending-bd@2026-11-30T08:00:00Z", and
// for one asked for by hand "trending-bd@2026-11-30T08:00:00Z~trigger-1f2e3d4c".
func (t Tick) ID() string {
	id := t.Schedule + "@" + t.Instant.UTC().Format(time.RFC3339)
	if t.Manual != "" {
		id += "~" + t.Manual
	}
	return id
}

// Enqueuer turns ticks into jobs.
type Enqueuer interface {
	// EnqueueTick makes a job with the tick's ID. It answers nil too when a
	// job of that ID is there already, and a *FullError when the queue has
	// no room. It must end with its context.
	EnqueueTick(ctx context.Context, t Tick) error
	// Busy tells whether the last tick's job of a feed has not ended, and
	// its ID. A snoozed job has not ended.
	Busy(ctx context.Context, feed string) (jobID string, busy bool, err error)
}

// FullError is an Enqueuer's answer that the queue is at its limit.
type FullError struct {
	Queue      string
	RetryAfter time.Duration // when to ask again; 0 leaves it to the dispatcher
}

func (e *FullError) Error() string {
	return fmt.Sprintf("queue %q is full; ask again in %v", e.Queue, e.RetryAfter)
}

// rest is how long the dispatcher leaves the queue alone.
func (e *FullError) rest() time.Duration {
	if e.RetryAfter <= 0 {
		return time.Second
	}
	return max(250*time.Millisecond, min(e.RetryAfter, 10*time.Second))
}

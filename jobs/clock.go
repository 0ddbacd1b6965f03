package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// clockLimit is how far this machine's clock may be off Redis's: asynq's
	// leases use local time.
	clockLimit = 5 * time.Second
	// clockBack is how near it has to be before jobs are taken again.
	clockBack = 4 * time.Second
	// clockEvery is how often it is looked at.
	clockEvery = 2 * time.Second
	// clockBlur is how slow an answer may be and still say what time it is.
	clockBlur = time.Second
)

// clockFits says whether a worker whose clock is so far off may take jobs;
// taking is whether it does so now.
func clockFits(off time.Duration, taking bool) bool {
	if taking {
		return off.Abs() <= clockLimit
	}
	return off.Abs() <= clockBack
}

// ClockError says that this machine's clock and Redis's differ too much for a
// worker to take jobs.
type ClockError struct{ Off time.Duration }

func (e *ClockError) Error() string {
	way := "ahead of"
	if e.Off < 0 {
		way = "behind"
	}
	return fmt.Sprintf("jobs: this machine's clock is %s %s Redis's; a worker takes jobs only within %s: set the clock (NTP)",
		e.Off.Abs().Round(time.Millisecond), way, clockLimit)
}

// now is Redis's clock, by which all instants are; this machine's where it does not say.
func (c *Client) now(ctx context.Context) time.Time {
	now, err := c.rdb.Time(ctx).Result()
	if err != nil {
		return time.Now()
	}
	return now
}

// clockOffset is how far a clock is ahead of Redis's. sharp is whether the
// answer came fast enough to tell.
func clockOffset(ctx context.Context, rdb redis.UniversalClient, clock func() time.Time) (off time.Duration, sharp bool, err error) {
	begun, before := time.Now(), clock()
	theirs, err := rdb.Time(ctx).Result()
	if err != nil {
		return 0, false, fmt.Errorf("jobs: read Redis's clock: %w", err)
	}
	took := time.Since(begun)
	return before.Round(0).Add(took / 2).Sub(theirs), took < clockBlur, nil
}

// watch looks at the clocks until ctx ends. A clock that went wrong ends the
// taking of jobs, one that is right again begins it.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(w.lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		off, sharp, err := clockOffset(ctx, w.rdb, w.clock)
		if err != nil || !sharp {
			continue // Redis is away or slow; that says nothing of the clocks
		}
		taking := w.taking()
		fits := clockFits(off, taking)
		switch {
		case taking && !fits:
			why := &ClockError{off}
			w.log.Error("worker takes no jobs until its clock is right", "error", why)
			if err := w.close(ctx, why, min(w.cfg.Shutdown, clockGrace)); err != nil {
				w.log.Error("worker did not stop in good order", "error", err)
			}
		case !taking && fits:
			if err := w.open(ctx); err != nil && ctx.Err() == nil {
				w.faults.report("take jobs again", err)
			}
		case !taking:
			w.mu.Lock()
			w.why = &ClockError{off}
			w.mu.Unlock()
		}
	}
}

// clockGrace is how long running jobs may take to end when the clock went
// wrong: asynq stamps their leases by it, and others may think them dead.
const clockGrace = 5 * time.Second

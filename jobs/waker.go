package jobs

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed wake.lua
var wakeSource string

//go:embed result.lua
var resultSource string

var (
	wakeScript   = redis.NewScript(wakeSource)
	resultScript = redis.NewScript(resultSource)
)

const (
	wakeBatch = 200
	// wakeIdle is how long the waker sleeps at most: a promise made meanwhile
	// by another process is found within it, and is rarely nearer.
	wakeIdle = 200 * time.Millisecond
	wakeMin  = 2 * time.Millisecond
)

// wakeLoop releases snoozed jobs of one queue at their promised instants until
// ctx ends. Every worker runs one; the script lets each job go once.
func (w *Worker) wakeLoop(ctx context.Context, queue string) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		wait, err := wakeDue(ctx, w.rdb, queue)
		if err != nil && ctx.Err() == nil {
			w.faults.report("wake snoozed jobs", err)
			wait = time.Second
		}
		timer.Reset(wait)
	}
}

// wakeDue wakes what is due and answers when to ask again.
func wakeDue(ctx context.Context, rdb redis.UniversalClient, queue string) (time.Duration, error) {
	reply, err := wakeScript.Run(ctx, rdb, []string{wakeKey(queue), asynqRetry(queue), asynqScheduled(queue), asynqPending(queue)},
		asynqTaskPrefix(queue), wakeBatch).Int64Slice()
	if err != nil {
		return 0, fmt.Errorf("jobs: wake %q: %w", queue, err)
	}
	if len(reply) != 2 {
		return 0, fmt.Errorf("jobs: wake %q: unexpected reply %v", queue, reply)
	}
	next := time.Duration(reply[1]) * time.Millisecond
	if reply[1] < 0 || next > wakeIdle {
		next = wakeIdle
	}
	return max(next, wakeMin), nil
}

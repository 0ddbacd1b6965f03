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
	// wakeHead is how many woken jobs stand at a queue's head at most.
	wakeHead = 64
	// wakeIdle is how long the waker sleeps at most: a promise made meanwhile
	// by another process is found within it, and is rarely nearer.
	wakeIdle = 200 * time.Millisecond
	wakeMin  = 2 * time.Millisecond
	// wakeCrowded is how long it waits for room at a full head at most.
	wakeCrowded = 25 * time.Millisecond
)

// poke tells this process's wakers that a job has become due.
type poke map[string]chan struct{}

func newPoke() poke {
	p := poke{}
	for _, q := range allQueues {
		p[q] = make(chan struct{}, 1)
	}
	return p
}

func (p poke) queue(name string) {
	select {
	case p[name] <- struct{}{}:
	default:
	}
}

func (p poke) all() {
	for q := range p {
		p.queue(q)
	}
}

// wakeLoop releases snoozed jobs of one queue at their promised instants until
// ctx ends. Every worker runs one; the script lets each job go once.
func (s *shift) wakeLoop(ctx context.Context, queue string) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	crowded := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.handler.poke[queue]:
		}
		wait, moves, err := wakeDue(ctx, s.rdb, queue)
		if crowded++; moves {
			crowded = 0
		}
		wait = max(wait, crowdedWait(crowded))
		if err != nil && ctx.Err() == nil {
			s.faults.report("wake snoozed jobs", err)
			wait = time.Second
		}
		timer.Reset(wait)
	}
}

// crowdedWait is how long to wait with jobs that are due when they found no room at
// their queue's head that often: it is paused, or long jobs hold every slot.
func crowdedWait(times int) time.Duration {
	if times == 0 {
		return 0
	}
	return min(wakeMin<<min(times, 10), wakeCrowded)
}

// wakeDue wakes what is due and answers when to ask again. moves is false where
// something is due and the queue's head is full.
func wakeDue(ctx context.Context, rdb redis.UniversalClient, queue string) (wait time.Duration, moves bool, err error) {
	reply, err := wakeScript.Run(ctx, rdb, []string{wakeKey(queue), asynqRetry(queue), asynqScheduled(queue), asynqPending(queue), wokenKey(queue)},
		asynqTaskPrefix(queue), wakeHead).Int64Slice()
	if err != nil {
		return 0, true, fmt.Errorf("jobs: wake %q: %w", queue, err)
	}
	if len(reply) != 2 {
		return 0, true, fmt.Errorf("jobs: wake %q: unexpected reply %v", queue, reply)
	}
	next := time.Duration(reply[1]) * time.Millisecond
	if reply[1] < 0 || next > wakeIdle {
		next = wakeIdle
	}
	return max(next, wakeMin), reply[0] >= 0, nil
}

// wakeScore is an instant in the wake set: ms since the epoch, to the microsecond.
func wakeScore(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

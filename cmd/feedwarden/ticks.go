package main

import (
	"context"
	"errors"

	"feedwarden/jobs"
	"feedwarden/scheduler"
)

// ticks turns the scheduler's ticks into jobs.
type ticks struct{ *jobs.Client }

func enqueuer(c *jobs.Client) scheduler.Enqueuer { return ticks{c} }

// EnqueueTick enqueues a tick's job under the tick's ID.
func (t ticks) EnqueueTick(ctx context.Context, tick scheduler.Tick) error {
	err := t.Client.EnqueueTick(ctx, tick.Feed, tick.ID(), tick.Instant)
	var full *jobs.FullError
	if errors.As(err, &full) {
		return &scheduler.FullError{Queue: full.Queue, RetryAfter: full.RetryAfter}
	}
	return err
}

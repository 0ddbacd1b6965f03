package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"feedwarden/jobs"
	"feedwarden/scheduler"
)

// ticks turns the scheduler's ticks into jobs.
type ticks struct {
	*jobs.Client
	rdb redis.UniversalClient
}

func enqueuer(c *jobs.Client, rdb redis.UniversalClient) scheduler.Enqueuer { return ticks{c, rdb} }

// EnqueueTick enqueues a tick's job under the tick's ID.
func (t ticks) EnqueueTick(ctx context.Context, tick scheduler.Tick) error {
	if kind, pool, ok := upkeepOf(tick.Schedule); ok {
		return jobs.Upkeep(ctx, t.rdb, kind, pool)
	}
	err := t.Client.EnqueueTick(ctx, tick.Feed, tick.ID(), tick.Instant)
	var full *jobs.FullError
	if errors.As(err, &full) {
		return &scheduler.FullError{Queue: full.Queue, RetryAfter: full.RetryAfter}
	}
	return err
}

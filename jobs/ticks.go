package jobs

import (
	"context"
	"errors"

	"feedwarden/scheduler"
)

// EnqueueTick puts a tick's job into the queue, once: its ID is schedule and
// instant. It is the scheduler's Enqueuer.
func (c *Client) EnqueueTick(ctx context.Context, t scheduler.Tick) error {
	_, err := c.Enqueue(ctx, Spec{Feed: t.Feed, Priority: Background, ID: t.ID(), Tick: t.Instant})
	var full *FullError
	if errors.As(err, &full) {
		return &scheduler.FullError{RetryAfter: full.RetryAfter}
	}
	if err != nil {
		return err
	}
	return c.store.SetTickJob(ctx, t.Feed, t.ID())
}

// Busy says whether the job of a feed's last tick has not ended; a snoozed one
// has not.
func (c *Client) Busy(ctx context.Context, name string) (string, bool, error) {
	h, err := c.store.Head(ctx, name)
	if err != nil {
		return "", false, err
	}
	if h.LastTickJob == "" {
		return "", false, nil
	}
	j, err := c.Get(ctx, h.LastTickJob)
	if errors.Is(err, ErrNoJob) {
		return h.LastTickJob, false, nil
	}
	if err != nil {
		return "", false, err
	}
	return j.ID, !j.State.Ended(), nil
}

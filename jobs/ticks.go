package jobs

import (
	"context"
	"errors"
	"time"
)

// EnqueueTick puts the job of a schedule's tick into the queue, once: id names
// schedule and instant. nil also where it is there already; *FullError.
func (c *Client) EnqueueTick(ctx context.Context, feed, id string, instant time.Time) error {
	if _, err := c.Enqueue(ctx, Spec{Feed: feed, Priority: Background, ID: id, Tick: instant}); err != nil {
		return err
	}
	return c.store.SetTickJob(ctx, feed, id)
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

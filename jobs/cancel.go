package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// EndedError says that a job cannot be cancelled: it has ended.
type EndedError struct {
	ID    string
	State State
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("job %q has ended already: %s", e.ID, e.State)
}

// Cancel ends a job for good. One that runs is told to stop, and its state
// becomes cancelled when it has; one that waits leaves its queue and the
// quota's line at once; so does one whose task a person has archived or deleted.
// Errors: ErrNoJob, *EndedError.
func (c *Client) Cancel(ctx context.Context, id string) (Job, error) {
	j, err := c.Get(ctx, id)
	if err != nil {
		return Job{}, err
	}
	if j.State.Ended() && !j.loose {
		return j, &EndedError{id, j.State}
	}
	// Once its record says so, the rest is done though the caller leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer cancel()
	now := c.now(ctx)
	reply, err := cancelScript.Run(ctx, c.rdb, []string{recordKey(j.ID)}, now.UnixMilli(), endedLife.Milliseconds(), j.Feed, j.Queue).StringSlice()
	if err != nil {
		return Job{}, fmt.Errorf("jobs: cancel %q: %w", id, err)
	}
	if len(reply) != 4 {
		return Job{}, fmt.Errorf("jobs: cancel %q: unexpected reply %q", id, reply)
	}
	what, chargeAs := reply[0], reply[1]
	sent, err := strconv.Atoi(reply[2])
	if err != nil {
		return Job{}, fmt.Errorf("jobs: cancel %q: unexpected reply %q", id, reply)
	}
	switch what {
	case "ended":
		j, err := c.Get(ctx, j.ID)
		if err != nil {
			return Job{}, err
		}
		return j, &EndedError{id, j.State}
	case "running":
		if err := c.rdb.Publish(ctx, cancelTopic, j.ID).Err(); err != nil {
			return Job{}, fmt.Errorf("jobs: cancel %q: %w", id, err)
		}
		return j, nil
	}
	if err := c.deleteTask(ctx, j.Queue, j.ID); err != nil {
		// It began in this moment: its record says cancelled, so the run does nothing.
		c.log.Debug("a cancelled job's task stays until its run has seen the record", "job", j.ID, "feed", j.Feed, "error", err)
	}
	pipe := c.rdb.Pipeline()
	pipe.ZRem(ctx, wakeKey(j.Queue), j.ID)
	pipe.ZAdd(ctx, endedKey, redis.Z{Score: float64(now.UnixMilli()), Member: j.Feed + "\x00" + j.ID})
	pipe.HIncrBy(ctx, countersKey, string(Cancelled), 1)
	if _, err := pipe.Exec(ctx); err != nil {
		return Job{}, fmt.Errorf("jobs: cancel %q: %w", id, err)
	}
	c.leaveLines(ctx, j, chargeAs, sent, reply[3])
	j.State, j.NextAt = Cancelled, nil
	at := now.UTC()
	j.EndedAt = &at
	return j, nil
}

// cancelWithin bounds a cancelling.
const cancelWithin = 10 * time.Second

// deleteTask takes a task out of its queue. Between a run's record, which says
// that it sleeps, and asynq's moving it to where it sleeps, it is still active
// and cannot be deleted; left there, it would hold a place in its queue until
// the instant that was promised to it.
func (c *Client) deleteTask(ctx context.Context, queue, id string) error {
	var err error
	for range 25 {
		err = c.inspector.DeleteTask(queue, id)
		if err == nil || errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
	return err
}

// leaveLines takes a job that has ended out of every line, and wakes those who move
// up. asked is the quota that it asked last, which its feed may have no more.
func (c *Client) leaveLines(ctx context.Context, j Job, chargeAs string, sent int, asked string) {
	if chargeAs == "" {
		return
	}
	var faults []error
	fault := func(err error) { faults = append(faults, err) }
	defer func() {
		if err := errors.Join(faults...); err != nil {
			c.log.Warn("a cancelled job could not leave every line; its place there ends by itself", "job", j.ID, "feed", j.Feed, "error", err)
		}
	}()
	f, src, err := c.catalog.find(j.Feed)
	for _, q := range slices.Compact([]string{asked, f.Quota}) {
		if q == "" {
			continue
		}
		_, err := c.limiter.Refund(ctx, q, chargeID(chargeAs, sent))
		if err == nil {
			err = c.WakeLine(ctx, q)
		}
		if !errors.Is(err, quota.ErrUnknownQuota) {
			fault(err)
		}
	}
	if err != nil {
		return
	}
	fault(c.pacer.refund(ctx, src.Host(), chargeID(chargeAs, sent)))
	fault(c.pacer.refund(ctx, src.Host(), robotsID(chargeAs)))
	if limits := c.cfg.limits(f, src); len(limits) > 0 {
		next, err := vacate(ctx, c.leases, chargeAs, names(limits), true)
		fault(err)
		fault(callUp(ctx, c.rdb, next))
	}
}

// Wait polls a job until it has ended or ctx ends; it answers the last state seen.
func (c *Client) Wait(ctx context.Context, id string) (Job, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last Job
	for {
		j, err := c.Get(ctx, id)
		if err != nil && ctx.Err() == nil {
			return last, err
		}
		if err == nil {
			last = j
		}
		if last.State.Ended() {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-tick.C:
		}
	}
}

package jobs

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
)

//go:embed room.lua
var roomSource string

var roomScript = redis.NewScript(roomSource)

const (
	// placeLife is how long a place in a queue is held for a task that does not
	// come, and enqueueWithin how long its enqueuer may take: much shorter, so
	// that no task comes after its place has ended.
	placeLife     = 30 * time.Second
	enqueueWithin = 10 * time.Second
	// fullRetryAfter is when a queue that was full is worth another try.
	fullRetryAfter = 5 * time.Second
)

// place adds to a batch the taking of a place in a queue; the answer, once the
// batch has run, is nil, a *FullError, or what went wrong.
func place(b *luarun.Batch, queue, id string, limit int64) func([]*redis.Cmd) error {
	i := b.Script(roomScript, []string{placesKey(queue), asynqPending(queue), asynqActive(queue), asynqScheduled(queue), asynqRetry(queue)},
		asynqTaskPrefix(queue), id, limit, placeLife.Milliseconds())
	return func(cmds []*redis.Cmd) error {
		reply, err := cmds[i].Int64Slice()
		if err != nil {
			return fmt.Errorf("jobs: count queue %q: %w", queue, err)
		}
		if len(reply) != 2 {
			return fmt.Errorf("jobs: count queue %q: unexpected reply %v", queue, reply)
		}
		if reply[0] == 0 {
			return &FullError{Queue: queue, Limit: limit, RetryAfter: fullRetryAfter}
		}
		return nil
	}
}

// room takes a place for a task of the ID in its queue; *FullError where the
// queue holds its limit of what waits, runs and sleeps. In the same round trip
// it says whether a job of the ID has begun, and what time it is in Redis.
func (c *Client) room(ctx context.Context, queue, id string) (begun bool, now time.Time, err error) {
	var b luarun.Batch
	taken := place(&b, queue, id, c.cfg.QueueLimits[queue])
	var record *redis.IntCmd
	var clock *redis.TimeCmd
	b.Plain(func(p redis.Pipeliner) {
		// A queue that was deleted is published again; asynq's client does it once a process.
		p.SAdd(ctx, "asynq:queues", queue)
		record = p.Exists(ctx, recordKey(id))
		clock = p.Time(ctx)
	})
	cmds, err := c.desk.Do(ctx, &b)
	if err != nil {
		return false, now, fmt.Errorf("jobs: count queue %q: %w", queue, err)
	}
	if now = clock.Val(); now.IsZero() {
		now = time.Now()
	}
	return record.Val() > 0, now, taken(cmds)
}

// leavePlace gives a place up whose task will not come. One that cannot be
// given up ends by itself.
func (c *Client) leavePlace(ctx context.Context, queue, id, feed string) {
	if err := c.rdb.ZRem(context.WithoutCancel(ctx), placesKey(queue), id).Err(); err != nil {
		c.log.Debug("a place in a queue ends by itself", "queue", queue, "job", id, "feed", feed, "error", err)
	}
}

package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// WakeLine wakes the first jobs in a quota's line before their promised
// instants: units came free that nobody had promised, by a refund, a block
// lifted by hand or a raised limit. Each asks again; one that is granted early
// wakes the next, so the whole line moves as far as there are units.
func (c *Client) WakeLine(ctx context.Context, quota string) error {
	return wakeLine(ctx, c.rdb, c.limiter, quota)
}

func wakeLine(ctx context.Context, rdb redis.UniversalClient, l Limiter, quota string) error {
	s, err := l.State(ctx, quota)
	if err != nil {
		return err
	}
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("jobs: read Redis's clock: %w", err)
	}
	pipe := rdb.Pipeline()
	for i, w := range s.Waiters {
		id, ok := jobOf(w.ID)
		if !ok {
			continue // a script's charge, not a job's
		}
		for _, q := range queues {
			pipe.ZAddXX(ctx, wakeKey(q), redis.Z{Score: wakeScore(now) + float64(i)/1000, Member: id})
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("jobs: wake the line of quota %q: %w", quota, err)
	}
	return nil
}

// early is how much before its promise a grant has to come for the next in line
// to be woken as well.
const early = time.Second

// jobOf is the job that charges or holds under a name; false for a script's.
func jobOf(name string) (id string, ok bool) {
	id, _, ok = strings.Cut(name, "#")
	return id, ok
}

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

// WakeMoved wakes the jobs that sleep in the line of a quota that their feeds have
// no more, since the config has changed. It reads the records of all that sleep.
func (c *Client) WakeMoved(ctx context.Context) error { return wakeMoved(ctx, c.rdb, c.catalog) }

func wakeMoved(ctx context.Context, rdb redis.UniversalClient, cat *Catalog) error {
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("jobs: read Redis's clock: %w", err)
	}
	for _, q := range queues {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			var seen []string // member and score by turns
			if seen, cursor, err = rdb.ZScan(ctx, wakeKey(q), cursor, "", scanPage).Result(); err != nil {
				return fmt.Errorf("jobs: read who sleeps in %q: %w", q, err)
			}
			if err := wakeMovedOf(ctx, rdb, cat, q, seen, now); err != nil {
				return fmt.Errorf("jobs: wake who sleeps in %q: %w", q, err)
			}
		}
	}
	return nil
}

func wakeMovedOf(ctx context.Context, rdb redis.UniversalClient, cat *Catalog, queue string, seen []string, now time.Time) error {
	pipe := rdb.Pipeline()
	var records []*redis.SliceCmd
	for i := 0; i < len(seen); i += 2 {
		records = append(records, pipe.HMGet(ctx, recordKey(seen[i]), "state", "feed", "quota"))
	}
	if len(records) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	wake := rdb.Pipeline()
	for i, r := range records {
		state, _ := r.Val()[0].(string)
		name, _ := r.Val()[1].(string)
		asked, _ := r.Val()[2].(string)
		if f, _, err := cat.find(name); State(state) == Snoozed && asked != "" && (err != nil || f.Quota != asked) {
			wake.ZAddArgs(ctx, wakeKey(queue), redis.ZAddArgs{XX: true, LT: true, Members: []redis.Z{{Score: wakeScore(now), Member: seen[2*i]}}})
		}
	}
	if wake.Len() == 0 {
		return nil
	}
	_, err := wake.Exec(ctx)
	return err
}

// early is how much before its promise a grant has to come for the next in line
// to be woken as well.
const early = time.Second

// jobOf is the job that charges or holds under a name; false for a script's.
func jobOf(name string) (id string, ok bool) {
	id, _, ok = strings.Cut(name, "#")
	return id, ok
}

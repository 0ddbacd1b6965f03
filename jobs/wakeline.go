package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// WakeLine wakes the first jobs in a quota's line before their promised
// instants: units came free that nobody had promised, by a refund, a block
// lifted by hand or a raised limit. Each asks again; one that is granted early
// wakes the next, so the whole line moves as far as there are units.
func (c *Client) WakeLine(ctx context.Context, quota string) error {
	return wakeLine(ctx, c.rdb, c.limiter, quota)
}

// wakeLine wakes the first wokenAtOnce of each class. Where some of them do not
// sleep, it looks further, as far as there are units: whoever comes is granted what is
// free beyond those before it, but a script's charge that is not asked for again, or a
// job whose task a person has deleted, never comes.
func wakeLine(ctx context.Context, rdb redis.UniversalClient, l Limiter, name string) error {
	asleep := map[quota.Priority]int{}
	for seen, look := 0, wokenAtOnce; ; seen, look = look, look*10 {
		s, err := l.StateTo(ctx, name, look)
		if err != nil {
			return err
		}
		further := false
		for _, class := range []quota.Priority{quota.Interactive, quota.Scheduled} {
			ids, more := toWake(s, class, seen)
			n, err := wakeSleepers(ctx, rdb, ids, wokenAtOnce-asleep[class])
			if err != nil {
				return fmt.Errorf("jobs: wake the line of quota %q: %w", name, err)
			}
			asleep[class] += n
			further = further || more && asleep[class] < wokenAtOnce
		}
		if !further || look >= lookMost {
			return nil
		}
	}
}

const (
	// wokenAtOnce is how many of each class are woken, whatever is free: who is
	// promised less than before hears it. Each that is granted early wakes more.
	wokenAtOnce = 20
	// lookMost is how far into a line is looked for those who can come.
	lookMost = 20_000
)

// toWake are the jobs of one class to wake, in order, of those behind the first seen:
// beyond wokenAtOnce only those whose units are free together with the units of all
// before them. more: there may be such that s does not name.
func toWake(s quota.State, class quota.Priority, seen int) (ids []string, more bool) {
	free, waiting := s.Remaining, s.Interactive.Waiting
	if class == quota.Scheduled {
		free, waiting = free-s.Interactive.Units, s.Scheduled.Waiting
	}
	named := 0
	for _, w := range s.Waiters {
		if w.Priority != class {
			continue
		}
		free -= w.Cost
		named++
		if named <= seen || named > wokenAtOnce && free < 0 {
			continue
		}
		if id, ok := jobOf(w.ID); ok { // else a script's charge
			ids = append(ids, id)
		}
	}
	return ids, int64(named) < waiting && free > 0 && s.BlockedUntil.IsZero()
}

// wakeSleepers makes jobs due now that sleep, until about so many have been
// found, and answers how many.
func wakeSleepers(ctx context.Context, rdb redis.UniversalClient, ids []string, enough int) (found int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("read Redis's clock: %w", err)
	}
	for page := range slices.Chunk(ids, wokenAtOnce) {
		if found >= enough {
			break
		}
		n, err := wakePage(ctx, rdb, page, wakeScore(now))
		if err != nil {
			return found, err
		}
		found += n
	}
	return found, nil
}

// wakePage makes jobs due whose tasks sleep, or are about to: between its record, which
// says that it sleeps, and its handler's return a job's task is active.
func wakePage(ctx context.Context, rdb redis.UniversalClient, ids []string, now float64) (found int, err error) {
	look := rdb.Pipeline()
	records, tasks := make([]*redis.StringCmd, len(ids)), make([][]*redis.StringCmd, len(ids))
	for i, id := range ids {
		records[i] = look.HGet(ctx, recordKey(id), "state")
		for _, q := range queues {
			tasks[i] = append(tasks[i], look.HGet(ctx, asynqTaskPrefix(q)+id, "state"))
		}
	}
	if _, err := look.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	wake := rdb.Pipeline()
	for i, id := range ids {
		for j, q := range queues {
			switch task := tasks[i][j].Val(); {
			case task == "retry", task == "scheduled", task == "active" && State(records[i].Val()) == Snoozed:
				wake.ZAddLT(ctx, wakeKey(q), redis.Z{Score: now + float64(i)/1000, Member: id})
				found++
			}
		}
	}
	if found > 0 {
		_, err = wake.Exec(ctx)
	}
	return found, err
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

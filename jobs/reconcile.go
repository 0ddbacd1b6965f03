package jobs

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"
)

//go:embed look.lua
var lookSource string

//go:embed recover.lua
var recoverSource string

//go:embed aside.lua
var asideSource string

var (
	lookScript    = redis.NewScript(lookSource)
	recoverScript = redis.NewScript(recoverSource)
	asideScript   = redis.NewScript(asideSource)
)

const (
	reconcileEvery = 5 * time.Second
	// leaseMargin allows for clocks that differ: asynq's leases are stamped by
	// the worker, and judged here by Redis.
	leaseMargin = 5 * time.Second
	// reconcileLook bounds one pass.
	reconcileLook = 200
	asideKept     = 1000
	asideLife     = 7 * 24 * time.Hour
	asynqLease    = 30 * time.Second
)

// reconcileLoop repairs a queue every few seconds until ctx ends.
func (w *shift) reconcileLoop(ctx context.Context, queue string) {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		rep, err := reconcile(ctx, w.rdb, queue)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.faults.report("repair a queue", err)
		}
		if err := ungroup(w.handler.inspector, queue); err != nil {
			w.faults.report("take groups apart", err)
		}
		if rep.recovered > 0 || rep.aside > 0 {
			w.log.Warn("queue repaired", "queue", queue, "recovered", rep.recovered, "set_aside", rep.aside)
			w.count(ctx, "recovered", rep.recovered)
			w.count(ctx, "set_aside", rep.aside)
		}
		if err := trimEnded(ctx, w.rdb, time.Now()); err != nil && ctx.Err() == nil {
			w.faults.report("trim the list of ended jobs", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// repair is what one pass of the reconciler did.
type repair struct{ recovered, aside int64 }

// reconcile finds what a dead worker left, what asynq cannot read and what it would
// not run, in one queue, and mends it. Several may run at once: each step is a script that
// checks again.
func reconcile(ctx context.Context, rdb redis.UniversalClient, queue string) (repair, error) {
	var rep repair
	prefix, margin := asynqTaskPrefix(queue), int(leaseMargin.Seconds())
	seen, err := lookScript.Run(ctx, rdb,
		[]string{asynqActive(queue), asynqLeases(queue), asynqPending(queue), asynqScheduled(queue), asynqRetry(queue)},
		prefix, margin, reconcileLook, int(asynqLease.Seconds())).StringSlice()
	if err != nil {
		return rep, fmt.Errorf("jobs: look at queue %q: %w", queue, err)
	}
	for i := 0; i+2 < len(seen); i += 3 {
		where, id, msg := seen[i], seen[i+1], seen[i+2]
		why := unreadable([]byte(msg))
		switch {
		case why != "":
			n, err := asideScript.Run(ctx, rdb,
				[]string{asynqActive(queue), asynqLeases(queue), asynqPending(queue), asynqScheduled(queue), asynqRetry(queue), asideKey(queue)},
				prefix, id, msg, why, asideKept, int(asideLife.Seconds())).Int64()
			if err != nil {
				return rep, fmt.Errorf("jobs: set aside %q of queue %q: %w", id, queue, err)
			}
			rep.aside += n
		case where == "lease":
			n, err := recoverScript.Run(ctx, rdb, []string{asynqActive(queue), asynqLeases(queue), asynqPending(queue)}, prefix, id, margin).Int64()
			if err != nil {
				return rep, fmt.Errorf("jobs: recover %q of queue %q: %w", id, queue, err)
			}
			rep.recovered += n
		default:
			if anew, ok := expiring([]byte(msg)); ok {
				if err := rewrite(ctx, rdb, queue, id, msg, string(anew)); err != nil {
					return rep, err
				}
			}
		}
	}
	return rep, nil
}

// reconcileAll repairs a queue until nothing is left to repair.
func reconcileAll(ctx context.Context, rdb redis.UniversalClient, queue string, log *slog.Logger) error {
	for range 1000 {
		rep, err := reconcile(ctx, rdb, queue)
		if err != nil {
			return err
		}
		if rep == (repair{}) {
			return nil
		}
		log.Warn("queue repaired", "queue", queue, "recovered", rep.recovered, "set_aside", rep.aside)
	}
	return nil
}

// unreadable says why asynq could not decode a task's message, or "". asynq
// 0.26 stores a protobuf message; its string fields must be UTF-8.
func unreadable(msg []byte) string {
	if len(msg) == 0 {
		return "its task is gone"
	}
	stringField := map[protowire.Number]bool{1: true, 3: true, 4: true, 7: true, 10: true, 14: true}
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return "its message is not protobuf"
		}
		msg = msg[n:]
		if stringField[num] && typ == protowire.BytesType {
			v, n := protowire.ConsumeBytes(msg)
			if n < 0 || !utf8.Valid(v) {
				return "its message holds a broken text"
			}
		}
		if num == headersField && typ == protowire.BytesType {
			v, n := protowire.ConsumeBytes(msg)
			if n < 0 || !headerReadable(v) {
				return "its message holds a broken header"
			}
		}
		n = protowire.ConsumeFieldValue(num, typ, msg)
		if n < 0 {
			return "its message is cut or broken"
		}
		msg = msg[n:]
	}
	return ""
}

// headersField is a map of texts: each entry a message with key 1 and value 2.
const headersField = 15

func headerReadable(entry []byte) bool {
	for len(entry) > 0 {
		num, typ, n := protowire.ConsumeTag(entry)
		if n < 0 {
			return false
		}
		entry = entry[n:]
		if (num == 1 || num == 2) && typ == protowire.BytesType {
			if v, n := protowire.ConsumeBytes(entry); n < 0 || !utf8.Valid(v) {
				return false
			}
		}
		if n = protowire.ConsumeFieldValue(num, typ, entry); n < 0 {
			return false
		}
		entry = entry[n:]
	}
	return true
}

// trimEnded drops from the list what is older than its record, and the oldest
// beyond the bound.
func trimEnded(ctx context.Context, rdb redis.UniversalClient, now time.Time) error {
	pipe := rdb.Pipeline()
	pipe.ZRemRangeByScore(ctx, endedKey, "-inf", strconv.FormatInt(now.Add(-endedLife).UnixMilli(), 10))
	pipe.ZRemRangeByRank(ctx, endedKey, 0, -endedKept-1)
	_, err := pipe.Exec(ctx)
	return err
}

func (w *Worker) count(ctx context.Context, name string, n int64) {
	if n == 0 {
		return
	}
	if err := w.rdb.HIncrBy(ctx, countersKey, name, n).Err(); err != nil && ctx.Err() == nil {
		w.faults.report("count", err)
	}
}

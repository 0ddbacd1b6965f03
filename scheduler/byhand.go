package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// serveRequests makes jobs of what was asked for by hand, oldest first. A
// request that another dispatcher holds, or that rests, is left for the next
// beat.
func (d *Dispatcher) serveRequests(ctx context.Context) {
	requests, err := d.openRequests(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.counters.faults.Add(1)
			d.log.Warn("scheduler cannot read requests", "error", err)
		}
		return
	}
	plans, _ := d.snapshot()
	for _, r := range requests {
		p := plans[r.schedule]
		if p == nil {
			continue // for a dispatcher that has it
		}
		for more := true; more && ctx.Err() == nil; {
			if more, err = d.serveRound(ctx, p, r); err != nil {
				d.counters.faults.Add(1)
				d.log.Warn("request not served", "schedule", p.Name, "request", r.id, "error", err)
			}
		}
	}
}

type request struct{ id, kind, schedule string }

// openRequests reads all requests, and forgets those whose time is over.
func (d *Dispatcher) openRequests(ctx context.Context) ([]request, error) {
	bounded, cancel := context.WithTimeout(ctx, 2*nap)
	defer cancel()
	ids, err := d.store.rdb.ZRange(bounded, manualKey, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	reads := make([]*redis.SliceCmd, len(ids))
	_, err = d.store.rdb.Pipelined(bounded, func(pipe redis.Pipeliner) error {
		for i, id := range ids {
			reads[i] = pipe.HMGet(bounded, requestKey(id), "kind", "schedule")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	var open []request
	for i, read := range reads {
		kind, _ := read.Val()[0].(string)
		schedule, _ := read.Val()[1].(string)
		if kind == "" {
			if err := d.store.rdb.ZRem(bounded, manualKey, ids[i]).Err(); err != nil {
				return nil, fmt.Errorf("forget request %q: %w", ids[i], err)
			}
			continue
		}
		open = append(open, request{ids[i], kind, schedule})
	}
	return open, nil
}

// serveRound makes the next jobs of one request under one claim. more tells
// that some are left and nothing stands against the next round.
func (d *Dispatcher) serveRound(ctx context.Context, p *planned, r request) (more bool, err error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseMS/2*time.Millisecond)
	defer cancel()
	began := d.clock.Now().Round(0)
	reply, err := run(bounded, takeRequestScript, d.store.rdb, []string{requestKey(r.id)}, []any{d.stamp(), d.store.owner, leaseMS})
	if err != nil {
		return false, fmt.Errorf("claim: %w", err)
	}
	if len(reply) == 1 {
		return false, nil
	}
	v, err := integers(reply, 3)
	if err != nil {
		return false, fmt.Errorf("claim: %w", err)
	}
	next, to, rest, made := v[1], v[2], time.Duration(0), 0
	for made < requestRound && ctx.Err() == nil && bounded.Err() == nil && d.clock.Now().Round(0).Sub(began) < leaseMS/2*time.Millisecond {
		t := Tick{Schedule: p.Name, Feed: p.Feed, Manual: r.id}
		if r.kind == "backfill" {
			instant, ok := p.after(next - 1)
			if !ok || instant > to {
				next = never
				break
			}
			t.Instant, t.FireAt, next = time.UnixMilli(instant).UTC(), time.UnixMilli(instant).UTC(), instant
		} else {
			t.Instant = time.UnixMilli(next).UTC().Truncate(time.Second)
			t.FireAt = t.Instant
		}
		if err = d.enq.EnqueueTick(bounded, t); err != nil {
			rest = requestFault
			if full := (*FullError)(nil); errors.As(err, &full) {
				d.counters.full.Add(1)
				rest, err = full.rest(), nil
			}
			break
		}
		made++
		d.counters.manual.Add(1)
		d.log.Info("tick dispatched", "schedule", p.Name, "feed", p.Feed, "instant", t.Instant, "manual", r.id)
		next++
		if r.kind != "backfill" {
			next = never
			break
		}
	}
	ended, left := next == never || next > to, any(next)
	if ended {
		left = ""
	}
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), leaseMS/2*time.Millisecond)
	defer cancelLast()
	if moveErr := moveRequestScript.Run(last, d.store.rdb, []string{manualKey, requestKey(r.id), stateKey(p.Name)},
		d.stamp(), r.id, d.store.owner, v[1], left, ms(rest), made).Err(); moveErr != nil {
		return false, errors.Join(err, fmt.Errorf("settle: %w", moveErr))
	}
	return !ended && rest == 0, err
}

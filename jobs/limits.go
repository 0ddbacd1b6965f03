package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/jobs/source"
	"feedwarden/quota"
)

// leaseLife is how long a dead worker's leases count as running. A living
// one extends them three times as often.
const leaseLife = 20 * time.Second

// PerHost is what holds for each target host, over all workers.
type PerHost struct {
	Delay   time.Duration // at least so long between the starts of two requests; 0 is none
	Running int64         // jobs at a time; 0 is no limit
}

// The names of running limits and blocks.
func quotaName(quota string) string { return "quota:" + quota }
func hostName(host string) string   { return "host:" + host }
func sourceName(kind string) string { return "source:" + kind }

// limits are the running limits of a feed's jobs. Where no quota can be closed
// when the target says "not now", its host can, so that is asked about though
// nothing limits it.
func (c Config) limits(f Feed, src source.Source) []quota.Running {
	var all []quota.Running
	if f.Quota != "" && f.QuotaRunning > 0 {
		all = append(all, quota.Running{Name: quotaName(f.Quota), Limit: f.QuotaRunning})
	}
	if host := src.Host(); host != "" && (c.PerHost.Running > 0 || f.Quota == "") {
		all = append(all, quota.Running{Name: hostName(host), Limit: c.PerHost.Running})
	}
	if n := c.PerSource[f.Source.Kind]; n > 0 {
		all = append(all, quota.Running{Name: sourceName(f.Source.Kind), Limit: n})
	}
	return all
}

func names(limits []quota.Running) []string {
	out := make([]string, len(limits))
	for i, l := range limits {
		out[i] = l.Name
	}
	return out
}

// enter takes the leases of all running limits, or snoozes with a place in the
// line of the one that is full. A job has its own leases again when it is
// delivered again.
func (h *Handler) enter(ctx context.Context, r *run, log *slog.Logger) error {
	if len(r.limits) == 0 {
		return nil
	}
	a, err := h.leases.Acquire(ctx, r.chargeAs, h.leaseLife, r.limits...)
	if err != nil {
		return err
	}
	h.call(ctx, log, a.Next)
	if a.Held {
		r.held = true
		h.held.add(r)
		return nil
	}
	return &SnoozeError{Until: r.now().Add(a.RetryAfter), Reason: tooMany(ctx, h.leases, a)}
}

// tooMany says in a line which running limit refused.
func tooMany(ctx context.Context, l *quota.Leases, a quota.Acquired) string {
	if a.Reason == quota.ReasonBlocked {
		text := a.Full.Name + " is closed"
		if s, err := l.State(ctx, a.Full.Name); err == nil && !s.BlockedUntil.IsZero() {
			text += fmt.Sprintf(" until %s: %s", s.BlockedUntil.Format(time.RFC3339), s.BlockReason)
		}
		return text
	}
	text := fmt.Sprintf("%s: %d run, which is its limit", a.Full.Name, a.Full.Limit)
	if a.Position > 0 {
		text += fmt.Sprintf(", place %d in the line", a.Position)
	}
	return text
}

// exit gives the leases back, and wakes whose turn it is. A job that ends while
// it stands in a line leaves that.
func (h *Handler) exit(ctx context.Context, r *run, ended bool) {
	if r.delivers() {
		return
	}
	stood := ended && r.Snoozes > 0 // in a line, maybe
	if stood {
		h.unpace(ctx, r, r.chargeID(), h.log)
		h.unpace(ctx, r, r.robotsID(), h.log)
	}
	if len(r.limits) == 0 || !r.held && !stood {
		return
	}
	r.held = false
	h.held.remove(r)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	next, err := vacate(ctx, h.leases, r.chargeAs, names(r.limits), ended)
	if err != nil {
		h.log.Warn("could not give leases back; they end by themselves", "job", r.ID, "feed", r.Feed, "error", err)
	}
	h.call(ctx, h.log, next)
}

// vacate gives back what a holder has, and its places too when it will not
// come back. It answers whose turn it is.
func vacate(ctx context.Context, l *quota.Leases, holder string, names []string, leave bool) ([]string, error) {
	var left error
	if leave {
		left = l.Leave(ctx, holder, names...)
	}
	next, err := l.Release(ctx, holder, names...)
	return next, errors.Join(left, err)
}

// call wakes jobs, given as holders of leases, and this process's waker.
func (h *Handler) call(ctx context.Context, log *slog.Logger, holders []string) {
	if len(holders) == 0 {
		return
	}
	if err := callUp(ctx, h.rdb, holders); err != nil {
		log.Warn("could not wake the next in line", "holders", holders, "error", err)
	}
	h.poke.all()
}

// callUp makes jobs due now, given by the names under which they charge and
// hold. One whose handler has not returned yet is woken when it has.
func callUp(ctx context.Context, rdb redis.UniversalClient, holders []string) error {
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("jobs: read Redis's clock: %w", err)
	}
	pipe := rdb.Pipeline()
	for i, name := range holders {
		id, ok := jobOf(name)
		if !ok {
			continue
		}
		for _, q := range queues {
			pipe.ZAddLT(ctx, wakeKey(q), redis.Z{Score: wakeScore(now) + float64(i)/1000, Member: id})
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("jobs: wake %d jobs: %w", len(holders), err)
	}
	return nil
}

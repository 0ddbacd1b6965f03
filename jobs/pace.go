package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// pacer keeps a delay between the starts of two requests to one host, over all
// workers: each host is a quota of one request in that time.
type pacer struct {
	delay time.Duration // of every host; 0: none but those of their own
	rdb   redis.UniversalClient

	mu      sync.Mutex
	own     map[string]time.Duration // hosts that ask for more
	limiter *quota.Limiter
}

// ownMost bounds the hosts whose own delay is remembered; each of their jobs
// says it again.
const ownMost = 10_000

const (
	// paceGrace is how long a host's line waits for a job that was promised its
	// turn: shorter than a quota's, since it holds all up.
	paceGrace = 5 * time.Second
	// lead is how long after its grant a request may start; hosts are kept
	// apart by so much more.
	lead = 20 * time.Millisecond
)

func newPacer(rdb redis.UniversalClient, delay time.Duration) *pacer {
	return &pacer{delay: delay, rdb: rdb, own: map[string]time.Duration{}}
}

// keep has a host's own delay from now on, where that is the longer one.
func (p *pacer) keep(host string, own time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case own <= p.delay:
		delete(p.own, host)
	case len(p.own) < ownMost || p.own[host] > 0:
		p.own[host] = own
	}
}

// delayOf is the delay between two requests to the host; 0 is none.
func (p *pacer) delayOf(host string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.delay, p.own[host])
}

// of is the limiter, with a quota for that host.
func (p *pacer) of(host string) (*quota.Limiter, string, error) {
	name := hostName(host)
	if len(name) > 100 {
		sum := sha256.Sum256([]byte(host))
		name = hostName(hex.EncodeToString(sum[:16]))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := quota.Config{Name: name, Windows: []quota.Window{{Limit: 1, Per: max(p.delay, p.own[host]) + lead}}, Grace: paceGrace}
	all := []quota.Config{mine}
	if p.limiter != nil {
		if c, ok := p.limiter.Config(name); ok && c.Windows[0].Per == mine.Windows[0].Per {
			return p.limiter, name, nil
		}
		for _, n := range p.limiter.Names() {
			if c, ok := p.limiter.Config(n); ok && n != name {
				all = append(all, c)
			}
		}
	}
	var err error
	if p.limiter == nil {
		p.limiter, err = quota.New(p.rdb, all)
	} else {
		err = p.limiter.Reload(all)
	}
	return p.limiter, name, err
}

// charge asks for a start; At says when it was granted, or is promised.
func (p *pacer) charge(ctx context.Context, host, id string, priority quota.Priority) (quota.Decision, error) {
	l, name, err := p.of(host)
	if err != nil {
		return quota.Decision{}, err
	}
	return l.Charge(ctx, quota.Request{Quota: name, ID: id, Cost: 1, Priority: priority})
}

// refund gives a start back, and the place in the host's line.
func (p *pacer) refund(ctx context.Context, host, id string) error {
	if p.delayOf(host) == 0 {
		return nil
	}
	l, name, err := p.of(host)
	if err != nil {
		return err
	}
	_, err = l.Refund(ctx, name, id)
	return err
}

// pace waits for the job's turn at the host, for a start of that name: for a
// moment in its slot, when nobody needs that, else asleep.
func (h *Handler) pace(ctx context.Context, r *run, start string, log *slog.Logger) error {
	delay := h.pacer.delayOf(r.host)
	if delay == 0 {
		return nil
	}
	for {
		d, err := h.pacer.charge(ctx, r.host, start, r.priority())
		if err == nil && d.Granted && r.now().Sub(d.At) > lead {
			// An earlier run's start, or the answer came late: another may start just now.
			if err = h.pacer.refund(ctx, r.host, start); err == nil {
				d, err = h.pacer.charge(ctx, r.host, start, r.priority())
			}
		}
		switch {
		case err != nil:
			return fmt.Errorf("charge: %w", err)
		case d.Granted:
			r.paced = d.At
			return nil
		case r.wait(ctx, d.At):
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		reason := fmt.Sprintf("host %s: one request in %s", r.host, delay)
		if d.Reason == quota.ReasonBlocked {
			reason = fmt.Sprintf("host %s is closed", r.host)
		}
		if d.Position > 0 {
			reason += fmt.Sprintf(", place %d in the line", d.Position)
		}
		h.forgetCharge(ctx, r, log)
		return &SnoozeError{Until: d.At, Reason: reason}
	}
}

// unpace gives a start back that was not used.
func (h *Handler) unpace(ctx context.Context, r *run, start string, log *slog.Logger) {
	if err := h.pacer.refund(context.WithoutCancel(ctx), r.host, start); err != nil && !errors.Is(err, context.Canceled) {
		log.Warn("could not give back a start", "host", r.host, "error", err)
	}
}

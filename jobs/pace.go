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
// workers: each host is a quota of one request in that time. nil keeps none.
type pacer struct {
	delay time.Duration
	rdb   redis.UniversalClient

	mu      sync.Mutex
	limiter *quota.Limiter
}

const (
	// paceGrace is how long a host's line waits for a job that was promised its
	// turn: shorter than a quota's, since it holds all up.
	paceGrace = 5 * time.Second
	// lead is how long after its grant a request may start; hosts are kept
	// apart by so much more.
	lead = 20 * time.Millisecond
)

func newPacer(rdb redis.UniversalClient, delay time.Duration) *pacer {
	if delay <= 0 {
		return nil
	}
	return &pacer{delay: delay, rdb: rdb}
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
	if p.limiter != nil {
		if _, ok := p.limiter.Config(name); ok {
			return p.limiter, name, nil
		}
	}
	known := map[string]bool{name: true}
	if p.limiter != nil {
		for _, n := range p.limiter.Names() {
			known[n] = true
		}
	}
	var all []quota.Config
	for n := range known {
		all = append(all, quota.Config{Name: n, Windows: []quota.Window{{Limit: 1, Per: p.delay + lead}}, Grace: paceGrace})
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
	if p == nil {
		return nil
	}
	l, name, err := p.of(host)
	if err != nil {
		return err
	}
	_, err = l.Refund(ctx, name, id)
	return err
}

// pace waits for the job's turn at the host: for a moment in its slot, when
// nobody needs that, else asleep.
func (h *Handler) pace(ctx context.Context, r *run, log *slog.Logger) error {
	if h.pacer == nil {
		return nil
	}
	for {
		d, err := h.pacer.charge(ctx, r.host, r.chargeID(), r.priority())
		if err == nil && d.Granted && r.now().Sub(d.At) > lead {
			// An earlier run's start, or the answer came late: another may start just now.
			if err = h.pacer.refund(ctx, r.host, r.chargeID()); err == nil {
				d, err = h.pacer.charge(ctx, r.host, r.chargeID(), r.priority())
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
		reason := fmt.Sprintf("host %s: one request in %s", r.host, h.pacer.delay)
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
func (h *Handler) unpace(ctx context.Context, r *run, log *slog.Logger) {
	if h.pacer == nil {
		return
	}
	if err := h.pacer.refund(context.WithoutCancel(ctx), r.host, r.chargeID()); err != nil && !errors.Is(err, context.Canceled) {
		log.Warn("could not give back a start", "host", r.host, "error", err)
	}
}

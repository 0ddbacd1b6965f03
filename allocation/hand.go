package allocation

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrDuration: a quarantine by hand that is not from 1 ms to a year.
	ErrDuration = errors.New("a quarantine lasts from 1ms to 8760h")
	// ErrHeld: the endpoint is auth_failed or disabled; only Restore or Remove ends that.
	ErrHeld = errors.New("the endpoint is auth_failed or disabled and waits for a restore already")
)

// Quarantine takes an endpoint out for d, from now.
func (p *Pools) Quarantine(ctx context.Context, pool, id string, d time.Duration) error {
	if d < time.Millisecond || d > maxDuration {
		return failed("quarantine", pool, ErrDuration)
	}
	return p.hand(ctx, pool, id, "quarantine", nil, d.Microseconds())
}

// Restore brings an endpoint back, on probation, and lifts its bans; nothing
// when it serves everywhere already.
func (p *Pools) Restore(ctx context.Context, pool, id string) error {
	if _, err := p.pool(pool); err != nil {
		return failed("restore", pool, err)
	}
	now, err := p.now(ctx)
	if err != nil {
		return failed("restore", pool, err)
	}
	names, err := p.targetNames(ctx, pool, now)
	if err != nil {
		return failed("restore", pool, err)
	}
	k := keysOf(pool)
	banned := make([]string, len(names))
	for i, name := range names {
		banned[i] = k.target(name)
	}
	return p.hand(ctx, pool, id, "restore", banned)
}

// Disable takes an endpoint out until Restore.
func (p *Pools) Disable(ctx context.Context, pool, id string) error {
	return p.hand(ctx, pool, id, "disable", nil)
}

// Remove takes an endpoint out of the pool. Its count is kept for its return by
// Import; its health is not.
func (p *Pools) Remove(ctx context.Context, pool, id string) error {
	return p.hand(ctx, pool, id, "remove", nil)
}

func (p *Pools) hand(ctx context.Context, pool, id, verb string, more []string, args ...any) error {
	c, err := p.pool(pool)
	if err != nil {
		return failed(verb, pool, err)
	}
	reply, err := p.run(ctx, handScript, append(keysOf(pool).members("held", "gone"), more...), append([]any{c.start(), id, verb}, args...)...)
	if err != nil {
		return failed(verb, pool, err)
	}
	switch reply {
	case "ok":
		return nil
	case "unknown":
		return failed(verb, pool, fmt.Errorf("%w %q", ErrUnknownEndpoint, id))
	case "held":
		return failed(verb, pool, fmt.Errorf("%q: %w", id, ErrHeld))
	}
	return failed(verb, pool, fmt.Errorf("unexpected reply %v", reply))
}

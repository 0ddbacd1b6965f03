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
	// ErrHeld: the endpoint is auth_failed, disabled or a candidate; a quarantine would bring it back by itself.
	ErrHeld = errors.New("the endpoint is auth_failed, disabled or a candidate, and is out already until a restore or a check")
)

// Quarantine takes an endpoint out for d, from now.
func (p *Pools) Quarantine(ctx context.Context, pool, id string, d time.Duration) error {
	if d < time.Millisecond || d > maxDuration {
		return failed("quarantine", pool, ErrDuration)
	}
	return p.hand(ctx, pool, id, "quarantine", nil, d.Microseconds())
}

// Restore brings an endpoint back, on probation, and lifts its bans; nothing
// when it serves everywhere already. A candidate serves on a person's word until
// its next check.
func (p *Pools) Restore(ctx context.Context, pool, id string) error {
	return p.handAndBans(ctx, pool, id, "restore")
}

// Disable takes an endpoint out until Restore.
func (p *Pools) Disable(ctx context.Context, pool, id string) error {
	return p.hand(ctx, pool, id, "disable", nil)
}

// Remove takes an endpoint out of the pool. Its count is kept for its return by
// Import or Sync; its health is not. Leases that are out end as they would have.
func (p *Pools) Remove(ctx context.Context, pool, id string) error {
	return p.handAndBans(ctx, pool, id, "remove")
}

// handAndBans is hand with the keys of all targets that may have banned the endpoint.
func (p *Pools) handAndBans(ctx context.Context, pool, id, verb string) error {
	if _, err := p.pool(pool); err != nil {
		return failed(verb, pool, err)
	}
	banned, err := p.targetKeys(ctx, pool)
	if err != nil {
		return failed(verb, pool, err)
	}
	return p.hand(ctx, pool, id, verb, banned)
}

func (p *Pools) hand(ctx context.Context, pool, id, verb string, more []string, args ...any) error {
	c, err := p.pool(pool)
	if err != nil {
		return failed(verb, pool, err)
	}
	reply, err := p.run(ctx, handScript, append(keysOf(pool).members("held", "gone", "checks", "names"), more...), append([]any{c.start(), id, verb}, args...)...)
	if err != nil {
		return failed(verb, pool, err)
	}
	switch reply {
	case "ok":
		return nil
	case "unknown":
		return failed(verb, pool, unknownEndpoint(id))
	case "held":
		return failed(verb, pool, fmt.Errorf("%q: %w", id, ErrHeld))
	}
	return failed(verb, pool, fmt.Errorf("unexpected reply %v", reply))
}

package allocation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pools picks endpoints from named pools in Redis. It is safe for concurrent
// use; any number of them, in any number of processes, share the same pools.
type Pools struct {
	rdb   redis.UniversalClient
	pools map[string]Config
	desks map[string]*desk
	clock func() time.Time // nil: Redis's own
}

// An Option changes how New builds.
type Option func(*Pools)

// WithClock makes the scripts take the time from now and not from Redis. For tests.
func WithClock(now func() time.Time) Option { return func(p *Pools) { p.clock = now } }

// New checks the configs and builds Pools on rdb; it does no I/O. The error
// joins everything that is wrong.
func New(rdb redis.UniversalClient, pools []Config, opts ...Option) (*Pools, error) {
	p := &Pools{rdb: rdb, pools: make(map[string]Config, len(pools)), desks: make(map[string]*desk, len(pools))}
	var faults []error
	for _, c := range pools {
		c = c.withDefaults()
		if err := c.faults(); err != nil {
			faults = append(faults, err)
		}
		if _, twice := p.pools[c.Name]; twice {
			faults = append(faults, fmt.Errorf("pool %q: the name is there twice", c.Name))
		}
		p.pools[c.Name] = c
		p.desks[c.Name] = p.newDesk(c)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("allocation: %w", err)
	}
	for _, o := range opts {
		o(p)
	}
	return p, nil
}

// Names gives the pools' names, sorted.
func (p *Pools) Names() []string { return slices.Sorted(maps.Keys(p.pools)) }

// Config gives a pool's config with its defaults filled in.
func (p *Pools) Config(pool string) (Config, bool) {
	c, ok := p.pools[pool]
	return c, ok
}

var (
	// ErrUnknownPool: no pool of that name is configured.
	ErrUnknownPool = errors.New("unknown pool")
	// ErrUnknownEndpoint: the pool has no endpoint of that ID, or no longer.
	ErrUnknownEndpoint = errors.New("unknown endpoint")
)

// pool finds a pool's config.
func (p *Pools) pool(name string) (Config, error) {
	c, ok := p.pools[name]
	if !ok {
		return c, fmt.Errorf("%w: the config has %q", ErrUnknownPool, p.Names())
	}
	return c, nil
}

func (p *Pools) newDesk(c Config) *desk {
	return &desk{
		send: func(ctx context.Context, asked []*ask) { p.takeAll(ctx, c, asked) },
		// When this fails too, the lease ends by itself.
		drop: func(ctx context.Context, a Allocation) {
			_ = p.Report(ctx, Report{Pool: a.Pool, ID: a.ID, Lease: a.Lease, Outcome: Cancelled})
		},
	}
}

// failed adds the call and the pool to an error.
func failed(call, pool string, err error) error {
	return fmt.Errorf("allocation: %s %q: %w", call, pool, err)
}

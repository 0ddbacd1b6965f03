package allocation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pools picks endpoints from named pools in Redis. It is safe for concurrent
// use; any number of them, in any number of processes, share the same pools.
type Pools struct {
	rdb   redis.UniversalClient
	pools atomic.Pointer[map[string]*bound]
	clock func() time.Time // nil: Redis's own
	seed  func() int       // of the scripts' dice, from 1 to maxSeed
}

// bound is a pool's config and what this process needs for its calls.
type bound struct {
	Config
	desk  *desk
	calls *calls
}

// An Option changes how New builds.
type Option func(*Pools)

// WithClock makes the scripts take the time from now and not from Redis. For tests.
func WithClock(now func() time.Time) Option { return func(p *Pools) { p.clock = now } }

// New checks the configs and builds Pools on rdb; it does no I/O. The error
// joins everything that is wrong.
func New(rdb redis.UniversalClient, pools []Config, opts ...Option) (*Pools, error) {
	p := &Pools{rdb: rdb, seed: func() int { return 1 + rand.IntN(maxSeed) }}
	p.pools.Store(&map[string]*bound{})
	if err := p.Reload(pools); err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(p)
	}
	return p, nil
}

// Reload replaces all configs; it does no I/O. What the pools hold in Redis
// stays, and is read by the new policy from the next call on. A changed Require
// reaches those who were judged before it with Fit. On an error nothing changes.
func (p *Pools) Reload(pools []Config) error {
	old := *p.pools.Load()
	next := make(map[string]*bound, len(pools))
	var faults []error
	for _, c := range pools {
		c = c.withDefaults()
		if err := c.faults(); err != nil {
			faults = append(faults, err)
		}
		if _, twice := next[c.Name]; twice {
			faults = append(faults, fmt.Errorf("pool %q: the name is there twice", c.Name))
		}
		b := &bound{Config: c}
		if was, ok := old[c.Name]; ok {
			b.desk, b.calls = was.desk, was.calls
		} else {
			b.desk, b.calls = p.newDesk(c.Name), newCalls()
		}
		next[c.Name] = b
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("allocation: %w", err)
	}
	p.pools.Store(&next)
	return nil
}

// Names gives the pools' names, sorted.
func (p *Pools) Names() []string { return slices.Sorted(maps.Keys(*p.pools.Load())) }

// Config gives a pool's config with its defaults filled in.
func (p *Pools) Config(pool string) (Config, bool) {
	b, ok := (*p.pools.Load())[pool]
	if !ok {
		return Config{}, false
	}
	return b.Config, true
}

var (
	// ErrUnknownPool: no pool of that name is configured.
	ErrUnknownPool = errors.New("unknown pool")
	// ErrUnknownEndpoint: the pool has no endpoint of that ID, or no longer.
	ErrUnknownEndpoint = errors.New("unknown endpoint")
)

// pool finds a pool.
func (p *Pools) pool(name string) (*bound, error) {
	b, ok := (*p.pools.Load())[name]
	if !ok {
		return nil, fmt.Errorf("%w: the config has %q", ErrUnknownPool, p.Names())
	}
	return b, nil
}

func (p *Pools) newDesk(pool string) *desk {
	return &desk{
		// The config may have changed since the take was asked for.
		send: func(ctx context.Context, asked []*ask) { p.takeAll(ctx, pool, asked) },
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

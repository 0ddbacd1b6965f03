package luarun

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// flights is how many round trips may be under way at once: one fills
	// while the other is out.
	flights = 2
	// perFlight bounds one round trip.
	perFlight = 64
	// flightTime bounds how long one may take; its passengers' own contexts
	// may end before.
	flightTime = 10 * time.Second
)

// Desk gathers batches of many callers that ask at the same time into shared
// round trips. A lone caller goes at once. Safe for concurrent use; it keeps
// no goroutine while nobody asks.
type Desk struct {
	rdb redis.UniversalClient

	mu      sync.Mutex
	waiting []*order
	out     int
}

type order struct {
	batch *Batch
	cmds  []*redis.Cmd
	err   error
	done  chan struct{}
}

// NewDesk makes a desk in front of a client.
func NewDesk(rdb redis.UniversalClient) *Desk { return &Desk{rdb: rdb} }

// Do sends a batch with those of others and waits for its replies: one command
// per script, in order; a script's own error is in its command. The error is
// that of ctx, or of the first plain command that failed. When ctx ends first
// the batch may still run, as with any call whose reply is not waited for.
func (d *Desk) Do(ctx context.Context, b *Batch) ([]*redis.Cmd, error) {
	o := &order{batch: b, done: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.waiting = append(d.waiting, o)
	if d.out < flights {
		d.out++
		go d.fly() //nolint:contextcheck // a round trip carries many callers; it outlives the one who began it
	}
	d.mu.Unlock()
	select {
	case <-o.done:
		return o.cmds, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("redis: %w", context.Cause(ctx))
	}
}

// Run sends one script.
func (d *Desk) Run(ctx context.Context, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	var b Batch
	i := b.Script(s, keys, args...)
	cmds, err := d.Do(ctx, &b)
	if err != nil {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	return cmds[i]
}

// fly sends what waits until nothing does.
func (d *Desk) fly() {
	for {
		d.mu.Lock()
		n := min(len(d.waiting), perFlight)
		if n == 0 {
			d.out--
			d.mu.Unlock()
			return
		}
		orders := d.waiting[:n:n]
		d.waiting = d.waiting[n:]
		d.mu.Unlock()
		d.send(orders)
	}
}

// send makes one round trip of many batches.
func (d *Desk) send(orders []*order) {
	ctx, cancel := context.WithTimeout(context.Background(), flightTime)
	defer cancel()
	pipe := d.rdb.Pipeline()
	ends := make([]int, len(orders)) // where an order's plain commands end
	begins := make([]int, len(orders))
	for i, o := range orders {
		o.cmds = o.batch.queue(ctx, pipe)
		begins[i] = pipe.Len()
		for _, f := range o.batch.plain {
			f(pipe)
		}
		ends[i] = pipe.Len()
	}
	all, err := pipe.Exec(ctx)
	for i, o := range orders {
		if err != nil {
			o.err = o.batch.mend(ctx, d.rdb, o.cmds, all[begins[i]:ends[i]])
		}
		close(o.done)
	}
}

package allocation

import (
	"context"
	"runtime"
	"sync"
)

const (
	batch   = 32 // takes in one script call, so that Redis is held for a fraction of a millisecond
	flights = 2  // calls of one pool under way at a time; while they are, further takes gather
)

// A desk serves the takes of one pool. A take that finds the desk free is sent at
// once and alone, by its caller; those that come while calls are under way are sent
// together when one of them ends. So the price of a round trip is shared when there
// is a crowd, and nobody waits for one to form.
type desk struct {
	send func(context.Context, []*ask) // answers every ask
	drop func(context.Context, Allocation)

	mu      sync.Mutex
	queue   []*ask
	flights int
}

// An ask is one take on its way.
type ask struct {
	TakeOptions
	done chan struct{}

	mu   sync.Mutex
	left bool // the caller has gone
	drop func(Allocation)
	a    Allocation
	err  error
}

// take asks for an endpoint and waits for the answer; where others are under way,
// for ctx's end too.
func (d *desk) take(ctx context.Context, t TakeOptions) (Allocation, error) {
	if err := ctx.Err(); err != nil {
		return Allocation{}, err
	}
	// A call that serves several goes on when one of them leaves; the client's time-outs bound it.
	shared := context.WithoutCancel(ctx)
	a := &ask{TakeOptions: t, done: make(chan struct{}), drop: func(a Allocation) { d.drop(shared, a) }}
	d.mu.Lock()
	if d.flights < flights {
		d.flights++
		d.mu.Unlock()
		d.send(ctx, []*ask{a})
		d.land(shared)
		return a.a, a.err
	}
	d.queue = append(d.queue, a)
	d.mu.Unlock()
	select {
	case <-a.done:
		return a.a, a.err
	case <-ctx.Done():
		if a.leave() {
			return Allocation{}, ctx.Err()
		}
		return a.a, a.err
	}
}

// land ends the call of a caller of its own; another goroutine takes over where a queue has formed.
func (d *desk) land(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) > 0 {
		go d.fly(ctx)
		return
	}
	d.flights--
}

// fly sends what is queued until nothing is.
func (d *desk) fly(ctx context.Context) {
	for {
		d.mu.Lock()
		asked := d.next()
		if len(asked) == 0 {
			d.flights--
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		d.send(ctx, asked)
		runtime.Gosched() // of those who were just answered many ask again: they go along
	}
}

// next takes a batch off the queue, without those whose callers have gone.
func (d *desk) next() []*ask {
	var asked []*ask
	for len(d.queue) > 0 && len(asked) < batch {
		a := d.queue[0]
		d.queue[0] = nil
		d.queue = d.queue[1:]
		if !a.gone() {
			asked = append(asked, a)
		}
	}
	if len(d.queue) == 0 {
		d.queue = nil
	}
	return asked
}

func (a *ask) gone() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left
}

// leave tells whether the caller goes without an answer; false: the answer is there.
func (a *ask) leave() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.done:
		return false
	default:
	}
	a.left = true
	return true
}

// answer gives the ask its result, or gives back what nobody waits for any more.
func (a *ask) answer(got Allocation, err error) {
	a.mu.Lock()
	a.a, a.err = got, err
	close(a.done)
	left := a.left
	a.mu.Unlock()
	if left && err == nil && got.Lease != "" {
		a.drop(got)
	}
}

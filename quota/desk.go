package quota

import (
	"context"
	"sync"
)

// flights is how many calls may be under way at a time; while they are, further
// charges gather.
const flights = 2

// A desk serves the charges of a Limiter. One that finds it free is sent at once
// and alone; those that come while calls are under way are sent together when one
// of them ends, as ChargeAll sends them. So a crowd shares the price of a call,
// and nobody waits for a crowd to form.
type desk struct {
	send func(context.Context, []Request) []Answer

	mu    sync.Mutex
	queue []*ask
	out   int
}

// An ask is one charge on its way.
type ask struct {
	Request
	answer Answer
	done   chan struct{}
}

// charge asks and waits for the answer or for ctx's end. A caller that leaves may
// have been charged: asking again with the same ID tells, as after a lost reply.
func (d *desk) charge(ctx context.Context, r Request) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	a := &ask{Request: r, done: make(chan struct{})}
	d.mu.Lock()
	d.queue = append(d.queue, a)
	start := d.out < flights
	if start {
		d.out++
	}
	d.mu.Unlock()
	if start {
		// The call serves others too, and goes on when this caller leaves; the client's time-outs bound it.
		go d.fly(context.WithoutCancel(ctx))
	}
	select {
	case <-a.done:
		return a.answer.Decision, a.answer.Err
	case <-ctx.Done():
		return Decision{}, ctx.Err()
	}
}

// fly sends what waits until nothing does.
func (d *desk) fly(ctx context.Context) {
	for {
		d.mu.Lock()
		n := min(len(d.queue), batch)
		if n == 0 {
			d.out--
			d.queue = nil
			d.mu.Unlock()
			return
		}
		asked := d.queue[:n:n]
		d.queue = d.queue[n:]
		d.mu.Unlock()

		requests := make([]Request, n)
		for i, a := range asked {
			requests[i] = a.Request
		}
		for i, answer := range d.send(ctx, requests) {
			asked[i].answer = answer
			close(asked[i].done)
		}
	}
}

package quota

import (
	"context"
	"sync"
)

// flights is how many calls may be under way at a time; while they are, further
// charges gather.
const flights = 2

// A desk serves what many ask of Redis: the charges of a Limiter, the errands of
// Leases. One that finds it free is sent at once and alone; those that come while
// calls are under way are sent together when one of them ends. So a crowd shares
// the price of a call, and nobody waits for a crowd to form.
type desk[Q, A any] struct {
	send func(context.Context, []Q) []A // answers in the order of what was asked

	mu    sync.Mutex
	queue []*ask[Q, A]
	out   int
}

// An ask is one question on its way.
type ask[Q, A any] struct {
	question Q
	answer   A
	done     chan struct{}
}

// ask waits for the answer or for ctx's end, which is its error. What a caller
// that leaves has asked for may be done all the same: asking again under the same
// name tells, as after a lost reply.
func (d *desk[Q, A]) ask(ctx context.Context, question Q) (answer A, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	a := &ask[Q, A]{question: question, done: make(chan struct{})}
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
		return a.answer, nil
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// fly sends what waits until nothing does.
func (d *desk[Q, A]) fly(ctx context.Context) {
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

		questions := make([]Q, n)
		for i, a := range asked {
			questions[i] = a.question
		}
		for i, answer := range d.send(ctx, questions) {
			asked[i].answer = answer
			close(asked[i].done)
		}
	}
}

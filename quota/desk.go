package quota

import (
	"context"
	"slices"
	"sync"
)

// flights is how many calls may be under way at a time; while they are, further
// charges gather.
const flights = 2

// A desk serves what many ask of Redis: the charges of a Limiter, the errands of
// Leases. Who finds it free makes the call itself, at once and alone; those that
// come while calls are under way wait, and when one ends, the first of them makes
// the next for all. So a crowd shares the price of a call, and nobody waits for a
// crowd to form.
type desk[Q, A any] struct {
	send func(context.Context, []Q) []A // answers in the order of what was asked

	mu    sync.Mutex
	queue []*ask[Q, A]
	out   int
}

// An ask is one question that waits.
type ask[Q, A any] struct {
	question Q
	answer   A
	wake     chan bool // true: make the next call yourself; false: the answer is there
}

// ask gives the answer. Who waits for others leaves at ctx's end, which is the error
// then. What a caller that leaves has asked for may be done all the same: asking
// again under the same name tells, as after a lost reply.
func (d *desk[Q, A]) ask(ctx context.Context, question Q) (answer A, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	d.mu.Lock()
	if d.out < flights {
		d.out++
		d.mu.Unlock()
		defer d.next()
		return d.send(ctx, []Q{question})[0], nil
	}
	a := &ask[Q, A]{question: question, wake: make(chan bool, 1)}
	d.queue = append(d.queue, a)
	d.mu.Unlock()
	select {
	case lead := <-a.wake:
		if lead {
			d.fly(ctx, a)
		}
		return a.answer, nil
	case <-ctx.Done():
		d.leave(ctx, a)
		return answer, ctx.Err()
	}
}

// fly makes a call for the ask that leads and for those that wait.
func (d *desk[Q, A]) fly(ctx context.Context, lead *ask[Q, A]) {
	defer d.next()
	d.mu.Lock()
	n := min(len(d.queue), batch-1)
	asked := append([]*ask[Q, A]{lead}, d.queue[:n]...)
	d.queue = slices.Delete(d.queue, 0, n)
	d.mu.Unlock()
	questions := make([]Q, len(asked))
	for i, a := range asked {
		questions[i] = a.question
	}
	// The call serves others too, and goes on when this caller's context ends; the client's time-outs bound it.
	for i, answer := range d.send(context.WithoutCancel(ctx), questions) {
		asked[i].answer = answer
		if i > 0 {
			asked[i].wake <- false
		}
	}
}

// next ends a call: the first that waits makes the next one.
func (d *desk[Q, A]) next() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		d.out--
		return
	}
	d.queue[0].wake <- true
	d.queue = slices.Delete(d.queue, 0, 1)
}

// leave is for a caller whose context has ended: out of the queue, or where it was
// to make the call, that is made without it.
func (d *desk[Q, A]) leave(ctx context.Context, a *ask[Q, A]) {
	d.mu.Lock()
	if i := slices.Index(d.queue, a); i >= 0 {
		d.queue = slices.Delete(d.queue, i, i+1)
	}
	d.mu.Unlock()
	select {
	case lead := <-a.wake:
		if lead {
			go d.fly(ctx, a)
		}
	default:
	}
}

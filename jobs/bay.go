package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

const (
	// waitMost is how long a run may wait inside its handler in all.
	waitMost = time.Second
	// waitLeast and waitsMost keep a run from asking again and again.
	waitLeast = 20 * time.Millisecond
	waitsMost = 4
)

// bay is the slots of the servers that serve the same queues. A run may wait
// in one for a moment, as long as no other due job needs its slot: while one
// is free, whatever is due is taken.
type bay struct {
	size int

	mu   sync.Mutex
	busy int
	full chan struct{} // closed while no slot is free
}

func newBay(size int) *bay { return &bay{size: size, full: make(chan struct{})} }

func (b *bay) enter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy++
	if b.busy == b.size {
		close(b.full)
	}
}

func (b *bay) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy == b.size {
		b.full = make(chan struct{})
	}
	b.busy--
}

// wait lets d pass. False: the slot is needed, or ctx has ended.
func (b *bay) wait(ctx context.Context, d time.Duration) bool {
	b.mu.Lock()
	full := b.full
	b.mu.Unlock()
	select {
	case <-full:
		return false
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-full:
	case <-ctx.Done():
	}
	return false
}

// docked is the handler as the servers of one bay call it.
type docked struct {
	*Handler
	bay *bay
}

// ProcessTask runs one delivery of one job in a slot of the bay.
func (d docked) ProcessTask(ctx context.Context, t *asynq.Task) error {
	d.bay.enter()
	defer d.bay.leave()
	return d.process(ctx, t, d.bay)
}

// wait lets a run wait until an instant, where that is near and its slot is
// not needed. False: it has not waited, or not long enough.
func (r *run) wait(ctx context.Context, until time.Time) bool {
	d := max(until.Sub(r.now()), waitLeast)
	if r.bay == nil || r.waits == waitsMost || r.waited+d > waitMost {
		return false
	}
	begun := time.Now()
	ok := r.bay.wait(ctx, d)
	r.waited += time.Since(begun)
	if ok {
		r.waits++
	}
	return ok
}

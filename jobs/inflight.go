package jobs

import (
	"context"
	"math/rand/v2"
	"sync"
)

// inFlight knows the runs of this process, so that they can be stopped: all of
// them when the worker takes no more jobs, one when a person cancels it.
type inFlight struct {
	mu      sync.Mutex
	cond    *sync.Cond
	runs    map[string]*flight
	stopped bool
	parked  chan struct{}
}

type flight struct {
	all       *inFlight
	id        string
	cancel    context.CancelFunc
	cancelled bool
	// parked is closed when asynq has given back the tasks of stopped runs.
	parked <-chan struct{}
}

func newInFlight() *inFlight {
	f := &inFlight{runs: map[string]*flight{}, parked: make(chan struct{})}
	f.cond = sync.NewCond(&f.mu)
	return f
}

// start gives a run its context; false when the worker takes none.
func (f *inFlight) start(ctx context.Context, id string) (context.Context, *flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mine := &flight{all: f, id: id, cancel: func() {}, parked: f.parked}
	if f.stopped {
		return ctx, mine, false
	}
	ctx, mine.cancel = context.WithCancel(ctx)
	f.runs[id] = mine
	return ctx, mine, true
}

// end says that a run has ended.
func (m *flight) end() {
	m.cancel()
	f := m.all
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs[m.id] == m {
		delete(f.runs, m.id)
	}
	f.cond.Broadcast()
}

// cancel stops one run, if it is here.
func (f *inFlight) cancel(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.runs[id]; ok {
		r.cancelled = true
		r.cancel()
	}
}

func (f *inFlight) cancelled(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.runs[id]
	return ok && r.cancelled
}

// wait returns when no run is left, or when ctx ends.
func (f *inFlight) wait(ctx context.Context) error {
	wake := context.AfterFunc(ctx, f.cond.Broadcast)
	defer wake()
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.runs) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.cond.Wait()
	}
	return nil
}

// interrupt stops every run and lets none begin.
func (f *inFlight) interrupt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	for _, r := range f.runs {
		r.cancel()
	}
}

func (f *inFlight) interrupted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

// unpark lets the handlers of stopped runs return: asynq has their tasks back.
func (f *inFlight) unpark() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.parked)
	f.parked = make(chan struct{})
}

// open lets runs begin again.
func (f *inFlight) open() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = false
}

func (f *inFlight) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs)
}

// randomSpread keeps jobs that failed together from coming back together.
func randomSpread() float64 { return rand.Float64() }

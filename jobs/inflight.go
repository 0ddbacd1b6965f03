package jobs

import (
	"context"
	"math/rand/v2"
	"sync"
)

// inFlight knows the runs of this process, so that they can be stopped: all of
// them when the worker ends, one when a person cancels it.
type inFlight struct {
	mu      sync.Mutex
	cond    *sync.Cond
	runs    map[string]*flight
	stopped bool
}

type flight struct {
	cancel    context.CancelFunc
	cancelled bool
}

func newInFlight() *inFlight {
	f := &inFlight{runs: map[string]*flight{}}
	f.cond = sync.NewCond(&f.mu)
	return f
}

// start gives a run its context; false when the worker takes none any more.
func (f *inFlight) start(ctx context.Context, id string) (context.Context, func(), bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return ctx, func() {}, false
	}
	ctx, cancel := context.WithCancel(ctx)
	mine := &flight{cancel: cancel}
	f.runs[id] = mine
	return ctx, func() {
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.runs[id] == mine {
			delete(f.runs, id)
		}
		f.cond.Broadcast()
	}, true
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

func (f *inFlight) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs)
}

// randomSpread keeps jobs that failed together from coming back together.
func randomSpread() float64 { return rand.Float64() }

package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// vigils are what readers of feeds without a version wait in: one a feed in
// this process, however many readers come. It ends when it is answered, or
// when the last of them has left.
type vigils struct {
	mu  sync.Mutex
	all map[string]*vigil
}

type vigil struct {
	readers int
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
}

// wait joins the vigil of a key, or begins it with watch.
func (vs *vigils) wait(ctx context.Context, key string, most time.Duration, notReady func(time.Duration, string) error, watch func(context.Context) error) error {
	v := vs.join(ctx, key, watch)
	defer vs.leave(key, v)
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-v.done:
		return v.err
	case <-limit.C:
		return notReady(2*time.Second, fmt.Sprintf("nothing came within %s", most))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (vs *vigils) join(ctx context.Context, key string, watch func(context.Context) error) *vigil {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v := vs.all[key]; v != nil {
		v.readers++
		return v
	}
	if vs.all == nil {
		vs.all = map[string]*vigil{}
	}
	// It is for all who wait, so the first one's leaving does not end it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v := &vigil{readers: 1, cancel: cancel, done: make(chan struct{})}
	vs.all[key] = v
	go func() {
		v.err = watch(ctx)
		vs.drop(key, v)
		close(v.done)
	}()
	return v
}

// drop makes room for another vigil of the key: whoever comes now did not wait in v.
func (vs *vigils) drop(key string, v *vigil) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.all[key] == v {
		delete(vs.all, key)
	}
}

func (vs *vigils) leave(key string, v *vigil) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v.readers--; v.readers > 0 {
		return
	}
	v.cancel()
	if vs.all[key] == v {
		delete(vs.all, key)
	}
}

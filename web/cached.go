package web

import (
	"context"
	"sync"
	"time"
)

// cached is what many viewers look at: read once, shown to all for a moment.
// Those who come while it is being read wait for that reading. A failure is
// kept as well, so that a Redis that hangs is not asked by everybody in turn.
type cached[T any] struct {
	load   func(context.Context) (T, error)
	within time.Duration // how long a reading may take

	mu    sync.Mutex
	at    time.Time
	value T
	err   error
}

// get gives a reading that is no older than age.
func (c *cached[T]) get(ctx context.Context, age time.Duration) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < age {
		return c.value, c.err
	}
	// It is read for all of them, so the first one's leaving does not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.within)
	defer cancel()
	c.value, c.err = c.load(ctx)
	c.at = time.Now()
	return c.value, c.err
}

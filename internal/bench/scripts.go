package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const callers = 64

// loop runs f from some callers for a span and answers calls a second.
func loop(ctx context.Context, span time.Duration, callers int, f func(ctx context.Context, n int64) error) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var n atomic.Int64
	var once sync.Once
	var failed error
	var wg sync.WaitGroup
	begun := time.Now()
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := f(context.WithoutCancel(ctx), n.Add(1)); err != nil {
					once.Do(func() { failed = err; cancel() })
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / time.Since(begun).Seconds(), failed
}

// emptyScript is the floor: what any script costs.
var emptyScript = redis.NewScript("return 1")

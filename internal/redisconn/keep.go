package redisconn

import (
	"context"
	"time"
)

const (
	takeoverGap   = 150 * time.Millisecond // between two tries of a joiner for the owner's lock
	shortestPause = 50 * time.Millisecond  // between two starts of a server that keeps failing
	longestPause  = 5 * time.Second
)

// keep restarts our server when it ends by itself, and takes over when the
// owner that we joined is gone.
func (e *embedded) keep(ctx context.Context) {
	defer close(e.kept)
	gap := time.Duration(0)
	for ctx.Err() == nil {
		if own := e.owned(); own != nil {
			select {
			case <-ctx.Done():
			case <-own.ended():
				gap = restartGap(gap, time.Since(own.record().Started))
				e.log.ErrorContext(ctx, "the embedded redis ended by itself; starting it again", "why", own.why(), "in", gap)
				own.stop() // clears what it left
				pause(ctx, gap)
				e.again(ctx, func() error { return e.serve(ctx, e.lock) })
			}
			continue
		}
		lock, err := tryLock(e.ownerLock())
		if err == nil {
			e.log.WarnContext(ctx, "the owner of the embedded redis is gone; taking over", "data", e.dir)
			e.again(ctx, func() error { return e.serve(ctx, lock) })
			if e.owned() == nil {
				lock.release()
			}
			continue
		}
		pause(ctx, takeoverGap)
	}
}

// restartGap is the pause before a server is started again that lived so long:
// none at first, and longer each time it dies young.
func restartGap(last, lived time.Duration) time.Duration {
	if lived > 2*longestPause {
		return 0
	}
	return min(2*last+shortestPause, longestPause)
}

// again tries until it succeeds or ctx ends, at growing intervals.
func (e *embedded) again(ctx context.Context, try func() error) {
	for gap := shortestPause; ctx.Err() == nil; gap = min(2*gap, longestPause) {
		err := try()
		if err == nil || ctx.Err() != nil {
			return
		}
		e.log.ErrorContext(ctx, "the embedded redis does not start; trying again", "error", err, "data", e.dir)
		pause(ctx, gap)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

package quota

import (
	"context"
	"fmt"
	"time"
)

// WithEdgesAt gives the host's clock, by which the edges of calendar windows are worked out.
func WithEdgesAt(now func() time.Time) Option { return func(s *settings) { s.host = now } }

// Eager makes the next charge try the shortest way first.
func (l *Limiter) Eager(quota string) {
	if b, err := l.find(quota); err == nil {
		b.haste.left.Store(0)
	}
}

// ChargeRaw sends a cost past the checks of the Go side.
func (l *Limiter) ChargeRaw(ctx context.Context, quota, id, cost string) error {
	b, err := l.find(quota)
	if err == nil {
		var hot any
		hot, err = hotScript.Run(ctx, l.rdb, hotKeys(b.keys), l.argsWith(b, id, cost, 1)...).Result()
		if err == nil && hot != "" {
			return fmt.Errorf("granted: %v", hot)
		}
	}
	if err == nil {
		err = chargeScript.Run(ctx, l.rdb, b.keys, l.argsWith(b, id, cost, 1)...).Err()
	}
	if err != nil {
		return scriptError(err)
	}
	return nil
}

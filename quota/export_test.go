package quota

import (
	"context"
	"time"
)

// WithEdgesAt gives the host's clock, by which the edges of calendar windows are worked out.
func WithEdgesAt(now func() time.Time) Option { return func(s *settings) { s.host = now } }

// ChargeRaw sends a cost past the checks of the Go side.
func (l *Limiter) ChargeRaw(ctx context.Context, quota, id, cost string) error {
	b, err := l.find(quota)
	if err == nil {
		err = chargeScript.Run(ctx, l.rdb, b.keys, l.argsWith(b, id, cost, 1)...).Err()
	}
	if err != nil {
		return scriptError(err)
	}
	return nil
}

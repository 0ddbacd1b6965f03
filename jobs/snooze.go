package jobs

import (
	"errors"
	"fmt"
	"time"
)

// SnoozeError is how a handler says: not now, come back at Until. It is no
// failure: no attempt is burnt. Its text is what asynqmon's Retry page shows.
type SnoozeError struct {
	Until  time.Time
	Reason string
}

func (e *SnoozeError) Error() string {
	return fmt.Sprintf("snoozed until %s: %s", e.Until.UTC().Format("2006-01-02T15:04:05.000Z"), e.Reason)
}

// retryError is a real failure with its own backoff.
type retryError struct {
	at  time.Time
	err error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// minSnooze keeps a refusal that names no instant, or one in the past, from
// spinning.
const minSnooze = 100 * time.Millisecond

// fallback is how long after the promised instant asynq's own forwarder would
// release a job whose waker is gone. Its scores are whole seconds, rounded down,
// and it goes by its machine's clock: so much is added that it is never early.
const fallback = clockLimit + 2*time.Second

// retryDelay tells asynq when to release a task: for a snooze somewhat after
// the promised instant, since the waker, which is exact, comes first.
func retryDelay(err error, now time.Time) time.Duration {
	var s *SnoozeError
	var gave *gaveWayError
	if errors.As(err, &gave) {
		s = &gave.SnoozeError
	}
	if s != nil || errors.As(err, &s) {
		return max(s.Until.Sub(now), 0) + fallback
	}
	var r *retryError
	if errors.As(err, &r) {
		return max(r.at.Sub(now), 0) + fallback
	}
	return 5 * time.Second
}

// isFailure tells asynq whether to count: only our own snooze does not.
func isFailure(err error) bool {
	var s *SnoozeError
	var gave *gaveWayError
	return !errors.As(err, &s) && !errors.As(err, &gave)
}

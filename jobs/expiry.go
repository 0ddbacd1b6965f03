package jobs

import (
	"fmt"
	"time"
)

// expiry is the instant from which a job that has sent nothing is not begun any
// more; zero where there is none.
func (r *run) expiry() time.Time { return expiry(r.payload, r.Sent) }

func expiry(p payload, sent int) time.Time {
	if p.ExpiresAt <= 0 || sent > 0 {
		return time.Time{}
	}
	return fromMillis(p.ExpiresAt)
}

// overdue says that a job's expiry has passed by every clock that a worker may
// go by. A worker, which ends it, goes by Redis's.
func overdue(at, now time.Time) bool { return !at.IsZero() && now.Sub(at) > clockLimit }

func notStarted(at time.Time) error {
	return fmt.Errorf("not started by %s", at.UTC().Format(time.RFC3339))
}

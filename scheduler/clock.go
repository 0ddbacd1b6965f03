package scheduler

import "time"

// Clock is the wall clock of a dispatcher.
type Clock interface {
	Now() time.Time
	// Alarm gives a channel that is sent to once the clock reads at.
	Alarm(at time.Time) <-chan time.Time
}

type wallClock struct{}

func (wallClock) Now() time.Time                      { return time.Now() }
func (wallClock) Alarm(at time.Time) <-chan time.Time { return time.After(time.Until(at)) }

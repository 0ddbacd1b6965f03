package web

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Schedules is what the server needs of the scheduler. Its errors may wrap
// ErrUnknownSchedule and *RefusedError.
type Schedules interface {
	// List gives every schedule, in the order in which to show them.
	List(ctx context.Context) ([]ScheduleView, error)
	// Pause stops a schedule's ticks until an instant; the zero time: until Resume.
	Pause(ctx context.Context, name, who string, until time.Time) error
	Resume(ctx context.Context, name, who string) error
	// Trigger asks for one tick now and gives the request's ID. A running
	// scheduler makes the job of it, whose ID is then "SCHEDULE@INSTANT~ID".
	Trigger(ctx context.Context, name, who string) (id string, err error)
}

// ErrUnknownSchedule: no schedule of that name.
var ErrUnknownSchedule = errors.New("no such schedule")

// RefusedError says that something cannot be done for now, such as a trigger
// that finds a full queue.
type RefusedError struct {
	Reason     string
	RetryAfter time.Duration
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s; try again in %s", e.Reason, e.RetryAfter)
}

// ScheduleView is a schedule as people and programs see it.
type ScheduleView struct {
	Name       string `json:"name"`
	Feed       string `json:"feed"`
	Expression string `json:"expression"`
	Timezone   string `json:"timezone"`
	// State is active, paused, or due: a tick waits to become a job.
	State string `json:"state"`
	// NextAt is the next nominal instant; null while paused without an end.
	NextAt *time.Time `json:"next_at"`
	// LastAt is the last nominal instant that was enqueued; null when there was none.
	LastAt *time.Time `json:"last_at"`
	// NextFireAt is NextAt with the schedule's phase and jitter.
	NextFireAt *time.Time `json:"next_fire_at"`
	// LatenessMS is how late the last tick became a job.
	LatenessMS int64 `json:"lateness_ms"`
	// DueAt is the oldest tick that waits, and Hold says why: overlap, full, error.
	DueAt *time.Time `json:"due_at"`
	Hold  string     `json:"hold"`

	Dispatched int64 `json:"dispatched"`
	Skipped    int64 `json:"skipped"`
	Missed     int64 `json:"missed"`

	// PausedBy and PausedUntil say who paused it and until when; "" and null
	// where it is active or waits for a resume.
	PausedBy    string     `json:"paused_by"`
	PausedUntil *time.Time `json:"paused_until"`
	// LastError says why its last tick could not be enqueued; "" when it could.
	LastError string `json:"last_error"`
}

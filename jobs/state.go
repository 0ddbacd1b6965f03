package jobs

import (
	"encoding/json"
	"time"
)

// State is where a job stands.
type State string

// The states of a job.
const (
	Pending   State = "pending"
	Scheduled State = "scheduled"
	Snoozed   State = "snoozed"
	Running   State = "running"
	Retrying  State = "retrying"
	Done      State = "done"
	Failed    State = "failed"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// States lists them all, in the order of a job's life.
var States = []State{Pending, Scheduled, Snoozed, Running, Retrying, Done, Failed, Expired, Cancelled}

// Ended says that nothing more will happen to the job.
func (s State) Ended() bool {
	return s == Done || s == Failed || s == Expired || s == Cancelled
}

// Job is a job as people and programs see it.
type Job struct {
	ID        string     `json:"id"`
	Feed      string     `json:"feed"`
	Queue     string     `json:"queue"`
	State     State      `json:"state"`
	Attempts  int        `json:"attempts"`
	Snoozes   int        `json:"snoozes"`
	Sent      int        `json:"requests_sent"`
	Crashes   int        `json:"crashes"`
	Tick      *string    `json:"tick"`
	NextAt    *time.Time `json:"next_at"`
	LastError string     `json:"last_error"`
	EndedAt   *time.Time `json:"ended_at"`
	// Result is the line that says what a job brought.
	Result json.RawMessage `json:"result,omitempty"`
	// Asked is the ID that was asked for, where the job goes on under another.
	Asked string `json:"asked,omitempty"`

	Params map[string]string `json:"params,omitempty"`

	// loose says that its record lives, and no queue will run it any more.
	loose bool
}

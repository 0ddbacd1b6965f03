package sink

import (
	"fmt"
	"time"
)

// Error is why a delivery did not come about.
type Error struct {
	Kind  string // of the sink
	Place string
	// Permanent says that trying again cannot succeed.
	Permanent bool
	// RetryAfter is what the receiver asked for; 0: nothing.
	RetryAfter time.Duration
	Err        error // holds no secret
}

func (e *Error) Error() string {
	return fmt.Sprintf("sink: %s %s: %v", e.Kind, e.Place, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

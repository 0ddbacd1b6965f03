package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// TaskType is the asynq type of every job that fetches, SinkTaskType of those
// that deliver a version to a sink.
const (
	TaskType     = "feed:fetch"
	SinkTaskType = "sink:deliver"
)

// taskType is the type of the task that carries p.
func (p payload) taskType() string {
	if p.Sink != "" {
		return SinkTaskType
	}
	return TaskType
}

// MaxPayload bounds what a job may carry: asynq rewrites the payloads of
// active tasks every few seconds, so a payload refers and does not contain.
const MaxPayload = 16 << 10

const payloadSchema = 1

// payload is what a task carries. A plain asynq client may write {"feed":…}
// alone. It never holds a secret.
type payload struct {
	Schema    int               `json:"v,omitempty"`
	Feed      string            `json:"feed"`
	Params    map[string]string `json:"params,omitempty"`
	Tick      *time.Time        `json:"tick,omitempty"`
	ExpiresAt int64             `json:"expires_at,omitempty"` // ms since the epoch
	ChargeAs  string            `json:"charge_as,omitempty"`  // the job whose charge IDs a copy continues
	LastTry   bool              `json:"last_try,omitempty"`   // the task that a copy stands for had no retry left

	Sink    string `json:"sink,omitempty"`    // of a delivery: the sink's name
	Version int64  `json:"version,omitempty"` // of a delivery
}

// schemaError says that a newer binary made a payload.
type schemaError struct{ schema int }

func (e *schemaError) Error() string {
	return fmt.Sprintf("payload of schema %d; this binary reads up to %d: upgrade the worker", e.schema, payloadSchema)
}

func (p payload) encode() ([]byte, error) {
	p.Schema = payloadSchema
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("jobs: payload: %w", err)
	}
	if len(b) > MaxPayload {
		return nil, fmt.Errorf("jobs: the job's payload has %d bytes; at most %d go into a queue", len(b), MaxPayload)
	}
	return b, nil
}

func decodePayload(b []byte) (payload, error) {
	var p payload
	if len(b) > MaxPayload {
		return p, fmt.Errorf("payload of %d bytes; at most %d", len(b), MaxPayload)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&p); err != nil {
		return p, fmt.Errorf(`payload is not {"feed":"…"}: %w`, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return p, errors.New(`payload holds more than one {"feed":"…"}`)
	}
	if p.Schema > payloadSchema {
		return p, &schemaError{p.Schema}
	}
	if p.Feed == "" {
		return p, errors.New(`payload names no feed: {"feed":"…"} is wanted`)
	}
	return p, nil
}

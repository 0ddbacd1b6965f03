package jobs

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"
)

// This file is about two things that asynq's own clients can ask for, and of which
// asynq's servers would make a job that never runs: a deadline, which once passed is
// retried to the end without a call of the handler, and a group, which waits for an
// aggregator.

//go:embed rewrite.lua
var rewriteSource string

var rewriteScript = redis.NewScript(rewriteSource)

// Fields of asynq's message.
const (
	typeField     protowire.Number = 1
	payloadField  protowire.Number = 2
	deadlineField protowire.Number = 9 // Unix seconds
)

// expiring is a task's message with its deadline as our own expiry, by which a job
// that has not begun ends as expired. false: it has none, or is no job that fetches.
func expiring(msg []byte) ([]byte, bool) {
	var rest, body []byte
	var kind string
	var deadline uint64
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(num, typ, msg[n:])
		if size < 0 {
			return nil, false
		}
		value := msg[n : n+size]
		switch {
		case num == deadlineField && typ == protowire.VarintType:
			deadline, _ = protowire.ConsumeVarint(value)
		case num == payloadField && typ == protowire.BytesType:
			body, _ = protowire.ConsumeBytes(value)
		default:
			if num == typeField && typ == protowire.BytesType {
				kind, _ = protowire.ConsumeString(value)
			}
			rest = append(rest, msg[:n+size]...)
		}
		msg = msg[n+size:]
	}
	p, err := decodePayload(body)
	if err != nil || kind != TaskType || deadline == 0 || deadline > math.MaxInt64/1000 {
		return nil, false
	}
	if at := int64(deadline) * 1000; p.ExpiresAt == 0 || at < p.ExpiresAt { //nolint:gosec // bounded above
		p.ExpiresAt = at
	}
	if body, err = json.Marshal(p); err != nil { // not encode: it stays a foreign one
		return nil, false
	}
	return protowire.AppendBytes(protowire.AppendTag(rest, payloadField, protowire.BytesType), body), true
}

// rewrite gives a task that is not being run another message, if it has the one that was seen.
func rewrite(ctx context.Context, rdb redis.UniversalClient, queue, id, seen, msg string) error {
	if err := rewriteScript.Run(ctx, rdb, []string{asynqTaskPrefix(queue) + id}, seen, msg).Err(); err != nil {
		return fmt.Errorf("jobs: rewrite %q of queue %q: %w", id, queue, err)
	}
	return nil
}

// ungroup makes the tasks of a queue's groups wait as all others do.
func ungroup(inspector *asynq.Inspector, queue string) error {
	groups, err := inspector.Groups(queue)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return nil
	}
	for _, g := range groups {
		if _, gerr := inspector.RunAllAggregatingTasks(queue, g.Group); gerr != nil {
			err = errors.Join(err, gerr)
		}
	}
	if err != nil {
		return fmt.Errorf("jobs: take apart the groups of queue %q: %w", queue, err)
	}
	return nil
}

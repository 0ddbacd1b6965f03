package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrBehind: the primary lacks what a process wrote to the one before, or to
	// this one before it was restarted.
	ErrBehind = errors.New("this primary lacks what was written before")
	// ErrReplica: the server has become a replica.
	ErrReplica = errors.New("this server is a replica")
)

// RefusedError is what every call that writes gets while nothing may be written.
type RefusedError struct {
	Reason string // for a person, with what to do; holds no secret
	Err    error  // ErrBehind or ErrReplica
	Since  time.Time
}

func (e *RefusedError) Error() string { return "redis: nothing is written: " + e.Reason }
func (e *RefusedError) Unwrap() error { return e.Err }

// WritesRefused tells it from other errors to those who do not know this package.
func (e *RefusedError) WritesRefused() bool { return true }

const acceptAdvice = "bring back a server that has it, or, if the loss is to be borne, run feedwarden doctor --accept-primary"

// behind says what a primary lacks. lost is how much of its last writes the
// process that raised the alarm misses; 0 is all.
func behind(runID string, lost time.Duration, since time.Time) *RefusedError {
	what := "all that a process had written to Redis"
	if lost > 0 {
		what = fmt.Sprintf("the last %s of what a process had written to Redis", lost.Round(time.Millisecond))
	}
	if runID != "" {
		runID = " (run ID " + runID + ")"
	}
	return &RefusedError{
		Reason: fmt.Sprintf("this primary%s lacks %s, so quotas could be overrun and jobs done again; %s", runID, what, acceptAdvice),
		Err:    ErrBehind, Since: since,
	}
}

// readAlarm reads an alarm's text: process and lost milliseconds.
func readAlarm(text string) time.Duration {
	_, ms, _ := strings.Cut(text, " ")
	d, _ := time.ParseDuration(ms + "ms")
	return d
}

// gate is the hook that lets only reads through while there is a refusal.
type gate struct{ refusal *atomic.Pointer[RefusedError] }

func (g gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r := g.refusal.Load(); r != nil && !onlyReads(cmd) {
			cmd.SetErr(r)
			return r
		}
		return next(ctx, cmd)
	}
}

func (g gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if r := g.refusal.Load(); r != nil {
			for _, cmd := range cmds {
				if onlyReads(cmd) {
					continue
				}
				for _, c := range cmds {
					c.SetErr(r)
				}
				return r
			}
		}
		return next(ctx, cmds)
	}
}

// reading are commands that change nothing. A script counts as a write: what it
// does stands only in its text.
var reading = map[string]bool{
	"get": true, "mget": true, "strlen": true, "exists": true, "type": true, "ttl": true, "pttl": true, "scan": true,
	"hget": true, "hmget": true, "hgetall": true, "hlen": true, "hkeys": true, "hexists": true, "hscan": true,
	"zscore": true, "zmscore": true, "zcard": true, "zcount": true, "zrange": true, "zrevrange": true, "zrangebyscore": true, "zrevrangebyscore": true,
	"zrangebylex": true, "zrank": true, "zscan": true,
	"lrange": true, "llen": true, "lindex": true, "smembers": true, "sismember": true, "scard": true, "sscan": true,
	"xrange": true, "xrevrange": true, "xlen": true,
	"ping": true, "time": true, "info": true, "role": true, "dbsize": true, "config get": true, "cluster": true, "command": true, "readonly": true,
	"hello": true, "auth": true, "select": true, "client": true, "multi": true, "exec": true,
}

func onlyReads(cmd redis.Cmder) bool {
	return reading[cmd.Name()] || reading[cmd.FullName()]
}

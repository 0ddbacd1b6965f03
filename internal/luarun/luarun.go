// Package luarun runs Lua scripts by their hash, several in one round trip.
//
// A script cache can be flushed at any time, so every call falls back to the
// source: a script that answered NOSCRIPT has not run, and is sent again whole.
package luarun

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// call is one script with its keys and arguments.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

// Batch collects scripts and plain commands for one round trip. On a Cluster
// go-redis splits it by slot.
type Batch struct {
	calls []call
	plain []func(redis.Pipeliner)
}

// Script adds a script; its reply is at the returned index of
// Desk.Do's answer.
func (b *Batch) Script(s *redis.Script, keys []string, args ...any) int {
	b.calls = append(b.calls, call{s, keys, args})
	return len(b.calls) - 1
}

// Plain adds plain commands, sent after the scripts in the same round trip.
func (b *Batch) Plain(f func(redis.Pipeliner)) { b.plain = append(b.plain, f) }

func (b *Batch) queue(ctx context.Context, pipe redis.Pipeliner) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(b.calls))
	for i, c := range b.calls {
		cmds[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
	}
	return cmds
}

// mend sends again, whole, the scripts that the server did not know, and
// answers the first error of the plain commands.
func (b *Batch) mend(ctx context.Context, rdb redis.UniversalClient, cmds []*redis.Cmd, plain []redis.Cmder) error {
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			c := b.calls[i]
			cmds[i] = c.script.Eval(ctx, rdb, c.keys, c.args...)
		}
	}
	for _, cmd := range plain {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

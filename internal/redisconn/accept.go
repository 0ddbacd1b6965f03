package redisconn

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed accept.lua
var acceptLua string

var acceptScript = redis.NewScript(acceptLua)

// Alarm is the *RefusedError of a Redis where a process has found writes
// missing; nil where none has. It is read whatever the guard.
func (c *Conn) Alarm(ctx context.Context) (*RefusedError, error) {
	r, err := readAlarms(ctx, c.client, guardKeys(c.target.kind))
	if err != nil {
		return nil, fmt.Errorf("redis: read the alarm: %w", err)
	}
	return r, nil
}

func readAlarms(ctx context.Context, rdb redis.UniversalClient, shards []shardKeys) (*RefusedError, error) {
	reads := make([]*redis.StringCmd, len(shards))
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range shards {
			reads[i] = p.Get(ctx, k.alarm())
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	for _, r := range reads {
		if text, err := r.Result(); err == nil {
			return behind("", readAlarm(text), time.Now()), nil
		} else if !errors.Is(err, redis.Nil) {
			return nil, err
		}
	}
	return nil, nil
}

// AcceptPrimary takes this Redis as it is, with what it lacks: every process
// goes on within a second. It says whether there was an alarm.
func (c *Conn) AcceptPrimary(ctx context.Context) (alarm bool, err error) {
	for _, k := range guardKeys(c.target.kind) {
		n, err := acceptScript.Run(ctx, c.client, []string{k.alarm(), k.accepted()}, time.Now().UnixMicro()).Int64()
		if err != nil {
			return alarm, fmt.Errorf("redis: accept the primary: %w", err)
		}
		alarm = alarm || n == 1
	}
	return alarm, nil
}

// enter refuses a Redis where the alarm is raised, and takes the first look.
func (c *Conn) enter(ctx context.Context, probe redis.UniversalClient) error {
	refused, err := readAlarms(ctx, probe, guardKeys(c.target.kind))
	if err != nil {
		if saysRedis(err) {
			c.log.WarnContext(ctx, "redis does not let the guard look; a primary that lost writes is not noticed", "error", err)
			return nil
		}
		problem, advice := explain(err, c.target)
		return &StartError{Where: c.Where(), Problem: problem, Advice: advice, Err: err}
	}
	if refused != nil {
		return &StartError{Where: c.Where(), Problem: "this primary lacks what was written before", Advice: acceptAdvice, Err: refused}
	}
	return nil
}

// memory says whether the server is an embedded miniredis.
func (c *Conn) memory() (Info, bool) {
	if c.embedded == nil {
		return Info{}, false
	}
	rec := c.embedded.record()
	return Info{Server: rec.Server, RunID: rec.RunID, Role: "primary"}, rec.Server == miniredisServer
}

// keepWatch begins to watch.
func (c *Conn) keepWatch(ctx context.Context) {
	w := c.watch
	if w == nil {
		return
	}
	w.rdb = c.plainClient(true)
	bounded, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	_ = w.look(bounded) // what fails is looked at again
	loop, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop, w.done = stop, make(chan struct{})
	go w.run(loop)
}

// end stops the watch.
func (w *watcher) end() {
	if w.stop != nil {
		w.stop()
		<-w.done
		_ = w.rdb.Close()
	}
}

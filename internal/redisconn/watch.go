package redisconn

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed mark.lua
var markLua string

var markScript = redis.NewScript(markLua)

const (
	lookEvery = 500 * time.Millisecond
	lookLimit = 2 * time.Second
	markLife  = 7 * 24 * time.Hour
	// strict is how long no connection is made to a server that was found unfit
	// to be written to: a write that passed the gate before that may still be trying.
	strict = 10 * time.Second
)

// watcher keeps a process from writing where it must not: it knows the primary
// by its run ID, leaves a mark there twice a second, and looks for its last
// mark before anything else is written to a server that it has not met.
type watcher struct {
	log     *slog.Logger
	kind    kind
	process string
	rdb     redis.UniversalClient // passes the gate
	// memory says that the server is a miniredis, whose data lives and dies with its process.
	memory func() (Info, bool)

	seen    atomic.Pointer[Identity]
	refusal atomic.Pointer[RefusedError]

	mu     sync.Mutex // one look at a time
	shards []shard

	stop context.CancelFunc
	done chan struct{}
}

// shard is one place of marks.
type shard struct {
	keys     shardKeys
	mark     int64 // last acknowledged
	accepted int64 // last seen
}

func newWatcher(k kind, memory func() (Info, bool), log *slog.Logger) *watcher {
	w := &watcher{log: log, kind: k, process: rand.Text(), memory: memory}
	for _, keys := range guardKeys(k) {
		w.shards = append(w.shards, shard{keys: keys})
	}
	w.seen.Store(&Identity{})
	return w
}

// run looks until ctx ends.
func (w *watcher) run(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(ctx, lookLimit)
		// A server that does not answer says nothing of its data; calls fail by themselves.
		_ = w.look(bounded)
		cancel()
	}
}

// look asks the server, or a Cluster's primaries, who they are and for the marks.
func (w *watcher) look(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if info, ok := w.memory(); ok {
		w.meet(info)
		return nil
	}
	info, err := askInfo(ctx, w.rdb)
	if err != nil && !saysRedis(err) {
		return err
	}
	return w.judge(ctx, w.rdb, info)
}

// saysRedis tells a server's own refusal from no answer.
func saysRedis(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// scripter is a client or one connection of it.
type scripter interface {
	redis.Scripter
	Pipelined(ctx context.Context, f func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// judge takes up who answered, and settles whether it may be written to.
func (w *watcher) judge(ctx context.Context, rdb scripter, info Info) error {
	if info.Role == "replica" {
		w.meet(info)
		w.refuse(&RefusedError{Reason: "this server is a replica of " + info.primaryAt + "; name the primary in redis.url, or use redis+sentinel://", Err: ErrReplica, Since: time.Now()})
		return nil
	}
	var found *RefusedError
	var faults []error
	next := time.Now().UnixMilli()
	known := w.seen.Load()
	// A run that was a replica meanwhile has taken up another's data; of a Cluster, who is asked here is not told apart.
	same := w.kind != kindCluster && info.RunID != "" && info.RunID == known.RunID && known.Role != "replica"
	for i := range w.shards {
		s := &w.shards[i]
		reply, err := markScript.Run(ctx, rdb, []string{s.keys.mark(w.process), s.keys.alarm(), s.keys.accepted()},
			s.mark, max(next, s.mark+1), markLife.Milliseconds(), s.accepted, w.process, oneIf(same)).Slice()
		var m marked
		if err == nil {
			m, err = readMark(reply)
		}
		if err != nil {
			faults = append(faults, err) // the other primaries of a Cluster are looked at all the same
			continue
		}
		if m.code == 0 {
			if same && m.found < s.mark {
				w.log.Warn("redis was emptied by hand: quotas and lines begin anew", "run_id", info.RunID)
			}
			s.mark, s.accepted = max(next, s.mark+1), max(s.accepted, m.accepted)
		} else {
			found = behind(info.RunID, readAlarm(m.alarm), time.Now())
		}
	}
	err := errors.Join(faults...)
	if err != nil && found == nil {
		return err
	}
	w.meet(info)
	w.refuse(found)
	return err
}

// marked is a reply of mark.lua.
type marked struct {
	code, accepted, found int64
	alarm                 string
}

func readMark(reply []any) (m marked, err error) {
	if len(reply) == 4 {
		var ok [4]bool
		m.code, ok[0] = reply[0].(int64)
		m.accepted, ok[1] = reply[1].(int64)
		m.found, ok[2] = reply[2].(int64)
		m.alarm, ok[3] = reply[3].(string)
		if ok == [4]bool{true, true, true, true} {
			return m, nil
		}
	}
	return m, fmt.Errorf("redis: a mark's reply is %v", reply)
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// meet notes who answered.
func (w *watcher) meet(info Info) {
	old := w.seen.Load()
	id := Identity{Server: info.Server, Version: info.Version, RunID: info.RunID, Role: info.Role, Since: old.Since, Changes: old.Changes}
	switch {
	case info.RunID == "":
		return
	case old.RunID == "":
		id.Since = time.Now()
	case old.RunID != info.RunID:
		id.Since, id.Changes = time.Now(), old.Changes+1
		w.log.Warn("redis primary changed", "run_id", id.RunID, "was", old.RunID, "role", id.Role, "version", id.Version, "changes", id.Changes)
	}
	w.seen.Store(&id)
}

// refuse sets or lifts the refusal.
func (w *watcher) refuse(r *RefusedError) {
	old := w.refusal.Load()
	switch {
	case r != nil && old != nil && errors.Is(r, old.Err):
		return // the same one goes on
	case r != nil:
		w.log.Error("nothing is written to redis", "error", r)
	case old != nil:
		w.log.Warn("redis is written to again", "run_id", w.seen.Load().RunID, "refused_for", time.Since(old.Since).Round(time.Millisecond))
	}
	w.refusal.Store(r)
}

// greet looks at the server behind a new connection before anything goes over
// it. Its errors are dial errors, which go-redis tries again.
func (w *watcher) greet(ctx context.Context, conn *redis.Conn) error {
	if _, ok := w.memory(); ok {
		return nil
	}
	info, err := askInfo(ctx, conn)
	if err != nil {
		if saysRedis(err) {
			return nil // who may not ask is let pass; the loop looks for the marks
		}
		return err
	}
	if info.Role == "replica" && w.kind == kindSentinel {
		return &net.OpError{Op: "dial", Net: "tcp", Err: errReplica}
	}
	if info.RunID != w.seen.Load().RunID || info.Role == "replica" {
		w.mu.Lock()
		if info.RunID != w.seen.Load().RunID || info.Role == "replica" {
			err = w.judge(ctx, conn, info)
		}
		w.mu.Unlock()
		if err != nil && !saysRedis(err) {
			return err
		}
	}
	if r := w.refusal.Load(); r != nil && time.Since(r.Since) < strict {
		return &net.OpError{Op: "dial", Net: "tcp", Err: r}
	}
	return nil
}

// askInfo asks one server, or all primaries of a Cluster.
func askInfo(ctx context.Context, rdb scripter) (Info, error) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return oneInfo(ctx, rdb)
	}
	return infoOf(ctx, cluster)
}

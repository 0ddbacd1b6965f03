package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	joinWait = 20 * time.Second      // for an owner that is just starting
	joinGap  = 25 * time.Millisecond // between two looks at it
)

var errNoServer = errors.New("redis-server is not on PATH")

// server is a Redis that this process runs.
type server interface {
	record() joinRecord
	ended() <-chan struct{} // closed when it is gone, by stop or by itself
	why() string            // after that: what it said last
	stop()                  // ends it and waits, some seconds at most
}

// embedded is this process's part in the server of a data directory: owner or joiner.
type embedded struct {
	dir    string
	server string // what Config.Server asks for
	log    *slog.Logger
	cancel context.CancelFunc // of keep
	kept   chan struct{}      // closed when keep has returned

	mu   sync.Mutex
	own  server     // non-nil while this process runs the server
	lock *fileLock  // non-nil while this process is the owner
	seen joinRecord // the server last met
}

func newEmbedded(dir, server string, log *slog.Logger) (*embedded, error) {
	switch server {
	case "", "auto", redisServer, miniredisServer:
	default:
		return nil, fmt.Errorf("redis: embedded server %q is not known; want auto, redis-server or miniredis", server)
	}
	if dir == "" {
		return nil, errors.New("redis: an embedded redis needs a directory for its data; set redis.data")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("redis: the directory %s: %w", dir, err)
	}
	return &embedded{dir: abs, server: server, log: log}, nil
}

func (e *embedded) joinFile() string  { return filepath.Join(e.dir, "redis.json") }
func (e *embedded) ownerLock() string { return filepath.Join(e.dir, "owner.lock") }

// start becomes the owner, or joins the one there is, and keeps that up until close.
func (e *embedded) start(ctx context.Context) error {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return e.fault(err, "set redis.data to a directory that this user can write")
	}
	wait, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for {
		err := e.enter(wait)
		if err == nil {
			break
		}
		var later *notYetError
		if !errors.As(err, &later) {
			return err
		}
		select {
		case <-wait.Done():
			return e.fault(fmt.Errorf("the process that owns it (pid %d) has no server that answers: %w", signedBy(e.ownerLock()), later.err),
				"wait until it has started, or end it")
		case <-time.After(joinGap):
		}
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel, e.kept = cancel, make(chan struct{})
	go e.keep(background)
	return nil
}

func (e *embedded) fault(err error, advice string) error {
	return &StartError{Where: "embedded in " + e.dir, Problem: flat(err), Advice: advice, Err: err}
}

// notYetError is a try to join that may succeed when made again.
type notYetError struct{ err error }

func (e *notYetError) Error() string { return e.err.Error() }
func (e *notYetError) Unwrap() error { return e.err }

// enter makes one try to own or to join.
func (e *embedded) enter(ctx context.Context) error {
	lock, err := tryLock(e.ownerLock())
	if err == nil {
		err := e.serve(ctx, lock)
		if err == nil {
			return nil
		}
		lock.release()
		if errors.Is(err, errNoServer) {
			return e.fault(err, "install redis-server, or set redis.url to a Redis that runs elsewhere")
		}
		return e.fault(err, "see "+filepath.Join(e.dir, "redis", logName)+", or set redis.data to another directory")
	}
	if !errors.Is(err, errLocked) {
		return e.fault(err, "set redis.data to a directory that this user can write")
	}
	rec, err := readJoinRecord(e.joinFile())
	if err == nil {
		err = rec.alive(ctx)
	}
	if err != nil {
		return &notYetError{err}
	}
	e.meet(rec)
	e.log.InfoContext(ctx, "joined the embedded redis", "server", rec.Server, "data", e.dir, "owner_pid", rec.OwnerPID)
	return nil
}

// serve starts a server under the owner's lock and tells the others.
func (e *embedded) serve(ctx context.Context, lock *fileLock) error {
	lock.sign()
	srv, err := e.run(ctx)
	if err != nil {
		return err
	}
	rec := srv.record()
	if err := rec.write(e.joinFile()); err != nil {
		srv.stop()
		return err
	}
	e.mu.Lock()
	e.own, e.lock, e.seen = srv, lock, rec
	e.mu.Unlock()
	e.log.InfoContext(ctx, "embedded redis runs", "server", rec.Server, "data", e.dir, "server_pid", rec.PID)
	return nil
}

// run starts the kind of server that this machine has.
func (e *embedded) run(ctx context.Context) (server, error) {
	reason := "miniredis was asked for"
	if e.server != miniredisServer {
		bin, err := findServer()
		if err == nil {
			last, _ := readJoinRecord(e.joinFile())
			return startChild(ctx, bin, e.dir, last, needsGuard)
		}
		if e.server == redisServer {
			return nil, err
		}
		reason = err.Error()
	}
	e.log.WarnContext(ctx, "NOTHING IN REDIS OUTLIVES THIS PROCESS: jobs, feeds and quotas are held in memory",
		"reason", reason, "advice", "install redis-server, or set redis.url", "older_data_ignored", e.hasData())
	return startMemory()
}

func (e *embedded) hasData() bool {
	_, err := os.Stat(filepath.Join(e.dir, "redis", "appendonlydir"))
	if errors.Is(err, fs.ErrNotExist) { // where Redis 6 keeps it
		_, err = os.Stat(filepath.Join(e.dir, "redis", "appendonly.aof"))
	}
	return err == nil
}

func (e *embedded) owned() server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.own
}

func (e *embedded) meet(rec joinRecord) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = rec
}

// record is the server last met; zero before that.
func (e *embedded) record() joinRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

func (e *embedded) kind() string { return e.record().Server }

// dial connects to the server that is there now. Its errors are dial errors,
// which go-redis tries again: a takeover is shorter than its retries.
func (e *embedded) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	own := e.owned()
	rec := joinRecord{}
	if own != nil {
		rec = own.record()
	} else {
		var err error
		if rec, err = readJoinRecord(e.joinFile()); err != nil {
			return nil, &net.OpError{Op: "dial", Net: string(kindEmbedded), Err: fmt.Errorf("no process serves %s: %w", e.dir, err)}
		}
	}
	conn, err := rec.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Net: rec.Network, Err: err}
	}
	if own == nil {
		e.meet(rec)
	}
	return conn, nil
}

// close stops our server, if we own one, and lets another process have the
// directory. It may be called at any time, again too, but not beside start.
func (e *embedded) close() {
	if e.cancel == nil {
		return
	}
	e.cancel()
	<-e.kept
	e.cancel = nil
	e.mu.Lock()
	own, lock := e.own, e.lock
	e.own, e.lock = nil, nil
	e.mu.Unlock()
	if own != nil {
		own.stop()
	}
	if lock != nil {
		_ = os.Remove(e.joinFile())
		lock.release()
	}
}

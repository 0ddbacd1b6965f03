package allocation_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"github.com/redis/go-redis/v9"
)

// losing is a way to Redis that loses the reply of a script call when it is told
// to: Redis has made the call, and the client sends it again.
type losing struct {
	armed, lost atomic.Int64
}

type losingConn struct {
	net.Conn
	of   *losing
	lose atomic.Bool
}

func (c *losingConn) Write(b []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(b), []byte("evalsha")) && c.of.armed.CompareAndSwap(1, 0) {
		c.lose.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *losingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.lose.CompareAndSwap(true, false) {
		c.of.lost.Add(1)
		_ = c.Close()
		return 0, errors.New("connection reset by a test")
	}
	return n, err
}

// losingBench is a bench on a server of its own, over a way that loses replies.
func losingBench(t *testing.T, c allocation.Config) (*bench, *losing) {
	t.Helper()
	srv := testredis.Own(t, "--save", "", "--appendonly", "no")
	l := &losing{}
	rdb := redis.NewClient(&redis.Options{
		Network: "unix", Addr: srv.Socket(), MaxRetries: 3, MinRetryBackoff: time.Millisecond,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &losingConn{Conn: conn, of: l}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return benchOn(t, rdb, c), l
}

// lose makes a call whose reply is lost once.
func (l *losing) lose(t *testing.T, call func()) {
	t.Helper()
	was := l.lost.Load()
	l.armed.Store(1)
	call()
	if l.lost.Load() != was+1 {
		t.Fatal("no reply was lost")
	}
}

// TestTakeWhoseReplyIsLostCountsOnce: the client asks again, and is told what it was given.
func TestTakeWhoseReplyIsLostCountsOnce(t *testing.T) {
	t.Parallel()
	for _, policy := range allPolicies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b, l := losingBench(t, allocation.Config{Policy: policy, Cap: 2})
			b.load("http://u:canary-31cc@a.example:80\nhttp://u:canary-31cc@b.example:80\nc.example:80")
			o := allocation.TakeOptions{Key: "k", Target: "t.example"}
			b.takeFor(o) // the script is known to the server from here on
			var a allocation.Allocation
			l.lose(t, func() { a = b.takeFor(o) })
			var sum, flying int64
			for _, e := range b.list() {
				sum, flying = sum+e.Count, flying+e.InFlight
				if e.ID == a.ID && (e.Count != a.Count || a.URL.Host != e.Host) {
					t.Errorf("took %+v, and it is %+v", a, e)
				}
			}
			if sum != 2 {
				t.Errorf("%d allocations are counted, want 2", sum)
			}
			if policy == allocation.LeastBusy {
				if flying != 2 || a.Lease == "" {
					t.Errorf("%d leases are out, and this one is %q", flying, a.Lease)
				}
				b.reportFull(allocation.Report{ID: a.ID, Lease: a.Lease, Outcome: allocation.OK})
				if e := b.endpoint(a.ID); e.InFlight != 0 {
					t.Errorf("the lease that was told of twice is not released: %+v", e)
				}
			}
			// Nothing eligible is told again too, and what is kept holds no password and ends.
			names, err := b.rdb.Keys(t.Context(), "fw:{pool:"+b.pool+"}:call:*").Result()
			b.must(err)
			for _, k := range names {
				text := b.rdb.Get(t.Context(), k).Val()
				if ttl := b.rdb.PTTL(t.Context(), k).Val(); ttl <= 0 || ttl > time.Minute || bytes.Contains([]byte(text), []byte("canary")) {
					t.Errorf("%s is %q for %s", k, text, ttl)
				}
			}
			if len(names) == 0 || len(names) > 2 {
				t.Errorf("%d replies are kept, want one for each call under way at a time", len(names))
			}
			for _, e := range b.list() {
				b.must(b.pools.Quarantine(t.Context(), b.pool, e.ID, time.Minute))
			}
			l.lose(t, func() {
				if e := b.empty(o); e.RetryAfter != time.Minute {
					t.Errorf("got %+v", e)
				}
			})
		})
	}
}

// TestReportWhoseReplyIsLostCountsOnce: one failure is one failure, one success takes one strike back.
func TestReportWhoseReplyIsLostCountsOnce(t *testing.T) {
	t.Parallel()
	b, l := losingBench(t, allocation.Config{Gateway: true})
	id := b.fill(1)[0]
	b.report(id, allocation.OK)
	for i := range 3 {
		if e := b.endpoint(id); e.State != allocation.Active {
			t.Fatalf("after %d failures it is %s, want three in a row to count", i, e.State)
		}
		l.lose(t, func() { b.report(id, allocation.Reset) })
	}
	if e := b.endpoint(id); e.State != allocation.Quarantined || e.Strikes != 1 {
		t.Fatalf("after three failures it is %+v", e)
	}
	for range 2 { // three strikes in all
		b.must(b.pools.Restore(t.Context(), b.pool, id))
		for range 3 {
			b.report(id, allocation.Reset)
		}
	}
	b.must(b.pools.Restore(t.Context(), b.pool, id))
	l.lose(t, func() { b.report(id, allocation.OK) })
	if e := b.endpoint(id); e.Strikes != 2 {
		t.Errorf("one success has left %d strikes of 3, want 2", e.Strikes)
	}
	l.lose(t, func() {
		_, err := b.pools.Judge(t.Context(), b.pool, id, allocation.Verdict{OK: true})
		b.must(err)
	})
	if e := b.endpoint(id); e.Strikes != 1 {
		t.Errorf("one check has left %d strikes of 2, want 1", e.Strikes)
	}
}

// TestOvertakenCallIsNotMade: a call that was given up and reaches Redis after a later one does nothing.
func TestOvertakenCallIsNotMade(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	b.fill(1)
	s := &spyArgs{}
	b.rdb.AddHook(s)
	b.take()
	late := s.last
	b.take()
	if err := b.rdb.Do(t.Context(), late...).Err(); err == nil {
		t.Error("the late call was made")
	}
	if e := b.list()[0]; e.Count != 2 {
		t.Errorf("count %d, want 2", e.Count)
	}
}

// spyArgs keeps the arguments of the last script call.
type spyArgs struct{ last []any }

func (s *spyArgs) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *spyArgs) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (s *spyArgs) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" || cmd.Name() == "eval" {
			s.last = cmd.Args()
		}
		return next(ctx, cmd)
	}
}

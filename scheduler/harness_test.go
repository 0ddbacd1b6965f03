package scheduler

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/internal/testredis"

	"github.com/redis/go-redis/v9"
)

// fakeClock moves only by Advance.
type fakeClock struct {
	mu      sync.Mutex
	now     time.Time
	waiting []waiter
	alarms  int // how many were ever set
}

type waiter struct {
	at time.Time
	ch chan time.Time
}

func newClock(t testing.TB, at string) *fakeClock {
	t.Helper()
	now, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeClock{now: now}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Alarm(at time.Time) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarms++
	ch := make(chan time.Time, 1)
	if !at.After(c.now) {
		ch <- c.now
		return ch
	}
	c.waiting = append(c.waiting, waiter{at, ch})
	return ch
}

// Advance moves the clock, and says how many alarms were set so far and
// whether some went off.
func (c *fakeClock) Advance(d time.Duration) (alarms int, rang bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	before := len(c.waiting)
	c.waiting = slices.DeleteFunc(c.waiting, func(w waiter) bool {
		if w.at.After(c.now) {
			return false
		}
		w.ch <- c.now
		return true
	})
	return c.alarms, len(c.waiting) < before
}

// followed waits until somebody has set an alarm again, a moment at most: who
// waited for the one that went off may have ended.
func (c *fakeClock) followed(alarms int) {
	for deadline := time.Now().Add(100 * time.Millisecond); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		c.mu.Lock()
		again := c.alarms > alarms
		c.mu.Unlock()
		if again {
			return
		}
	}
}

// queue is an Enqueuer that remembers jobs by their ID.
type queue struct {
	mu     sync.Mutex
	jobs   []string       // IDs in order
	asked  map[string]int // how often each ID came
	open   map[string]string
	before func(t Tick) error // refuses, when not nil
	after  func(t Tick) error // the job is there; the answer is this
	onBusy func(feed string)
}

func newQueue() *queue { return &queue{asked: map[string]int{}, open: map[string]string{}} }

func (q *queue) EnqueueTick(ctx context.Context, t Tick) error {
	q.mu.Lock()
	before, after := q.before, q.after
	q.mu.Unlock()
	if before != nil {
		if err := before(t); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	if q.asked[t.ID()]++; q.asked[t.ID()] == 1 {
		q.jobs = append(q.jobs, t.ID())
	}
	q.mu.Unlock()
	if after != nil {
		return after(t)
	}
	return nil
}

func (q *queue) Busy(_ context.Context, feed string) (string, bool, error) {
	q.mu.Lock()
	on := q.onBusy
	id, ok := q.open[feed]
	q.mu.Unlock()
	if on != nil {
		on(feed)
	}
	return id, ok, nil
}

func (q *queue) setBusy(feed, id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if id == "" {
		delete(q.open, feed)
	} else {
		q.open[feed] = id
	}
}

func (q *queue) set(f func(q *queue)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(q)
}

// has gives the instants of a schedule's jobs, sorted, as UTC times.
func (q *queue) has(name string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []string
	for _, id := range q.jobs {
		if len(id) > len(name) && id[:len(name)+1] == name+"@" {
			out = append(out, id[len(name)+1:])
		}
	}
	slices.Sort(out)
	return out
}

func (q *queue) doubled() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []string
	for id, n := range q.asked {
		if n > 1 {
			out = append(out, id)
		}
	}
	return out
}

var databases atomic.Int64

// freshRedis gives an empty database of the shared server. The keys that all
// dispatchers share would mix tests otherwise.
func freshRedis(t testing.TB) *redis.Client {
	t.Helper()
	shared := testredis.Client(t).Options()
	rdb := redis.NewClient(&redis.Options{Network: shared.Network, Addr: shared.Addr, PoolSize: 32, DB: int(1 + databases.Add(1)%15)})
	t.Cleanup(func() { _ = rdb.Close() })
	if err := rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return rdb
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newDispatcher(t testing.TB, rdb redis.UniversalClient, clock Clock, q Enqueuer, entries ...Entry) *Dispatcher {
	t.Helper()
	d, err := NewDispatcher(rdb, entries, q, WithClock(clock), WithLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// start runs d until stop, and waits until it has taken up its schedules.
func start(t testing.TB, d *Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("Run does not end")
			}
		})
	}
	t.Cleanup(stop)
	plans, _ := d.snapshot()
	for name, p := range plans {
		eventually(t, "schedule "+name+" is taken up", func() bool {
			return d.store.rdb.HGet(context.Background(), stateKey(name), "last:"+revisionText(p.revision)).Val() != ""
		})
	}
	eventually(t, "the dispatcher beats", func() bool { return d.Stats().Peers > 0 })
	return stop
}

// eventually polls until ok, half a minute at most.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventuallyWithin(t, 30*time.Second, what, ok)
}

func eventuallyWithin(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", limit, what)
		case <-tick.C:
		}
	}
}

// pump moves the clock in small steps, by total or until ok, with a moment of
// real time between the steps so that the loops follow.
func pump(t testing.TB, clock *fakeClock, step time.Duration, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		if ok() {
			return true
		}
		if alarms, rang := clock.Advance(step); rang {
			clock.followed(alarms) // or the steps add up to a stall
		}
		return false
	})
}

// patiently is eventually, for what needs the clock to go on a little: a
// dispatcher that found a claim taken looks again a moment later.
func patiently(t testing.TB, clock *fakeClock, what string, ok func() bool) {
	t.Helper()
	moved := time.Now()
	eventually(t, what, func() bool {
		if time.Since(moved) > 50*time.Millisecond {
			clock.Advance(50 * time.Millisecond)
			moved = time.Now()
		}
		return ok()
	})
}

// settledTo waits until every tick of d's schedule up to at is settled.
func settledTo(t testing.TB, d *Dispatcher, name string, at time.Time) {
	t.Helper()
	p, err := d.configured("test", name)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := p.before(at.UnixMilli() + 1)
	patiently(t, d.clock.(*fakeClock), name+" is settled up to "+at.String(), func() bool {
		last, _ := d.store.rdb.HGet(context.Background(), stateKey(name), "last:"+revisionText(p.revision)).Int64()
		return last >= want
	})
}

func listed(t testing.TB, d *Dispatcher, name string) State {
	t.Helper()
	states, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%q is not listed", name)
	return State{}
}

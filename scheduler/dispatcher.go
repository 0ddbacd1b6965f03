package scheduler

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrUnknownSchedule is wrapped by calls that name a schedule that is
	// not configured here.
	ErrUnknownSchedule = errors.New("no such schedule")
	// ErrRunning is what a second Run of one Dispatcher gives.
	ErrRunning = errors.New("scheduler: it runs already")
)

// Dispatcher makes jobs of ticks while Run runs; its other methods read and
// change the schedules' state from any process.
type Dispatcher struct {
	enq        Enqueuer
	log        *slog.Logger
	clock      Clock
	given      bool // the clock was given, and Redis's is not asked
	workers    int
	catchUpCap int64
	store      store
	counters   counters
	wake       chan struct{} // the entries have changed

	mu      sync.Mutex
	plans   map[string]*planned
	edition int // counts the calls of Reload
	running bool
}

// NewDispatcher checks the entries and does no I/O. The error joins an
// *EntryError for each fault. enq may be nil where Run is not called.
func NewDispatcher(rdb redis.UniversalClient, entries []Entry, enq Enqueuer, opts ...Option) (*Dispatcher, error) {
	plans, err := plan(entries)
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{
		enq: enq, log: slog.Default(), clock: wallClock{}, workers: defaultWorkers, catchUpCap: defaultCatchUpCap,
		wake: make(chan struct{}, 1), plans: plans,
	}
	for _, o := range opts {
		o(d)
	}
	d.store = store{rdb: rdb, owner: token(), now: d.stamp}
	return d, nil
}

// Reload takes new entries in the place of the old ones. A schedule that is
// the same goes on; one whose expression, zone or @every phase changed is a
// new revision, which has missed nothing. On an error the old ones stay.
func (d *Dispatcher) Reload(entries []Entry) error {
	plans, err := plan(entries)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.plans = plans
	d.edition++
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return nil
}

// Run dispatches until ctx ends, and waits for what is under way, five
// seconds at most. While Redis or the Enqueuer fails it tries again. The
// error says that it could not begin.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.enq == nil {
		return errors.New("scheduler: run: an Enqueuer is needed")
	}
	d.mu.Lock()
	if d.running {
		d.mu.Unlock()
		return ErrRunning
	}
	d.running = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.running = false
		d.mu.Unlock()
	}()
	newLoop(d).run(ctx)
	return nil
}

// stamp is the now that scripts are given.
func (d *Dispatcher) stamp() string {
	if !d.given {
		return ""
	}
	return strconv.FormatInt(d.clock.Now().UnixMilli(), 10)
}

// configured is the plan of a schedule, or ErrUnknownSchedule.
func (d *Dispatcher) configured(call, name string) (*planned, error) {
	d.mu.Lock()
	p := d.plans[name]
	d.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("scheduler: %s %q: %w", call, name, ErrUnknownSchedule)
	}
	return p, nil
}

func (d *Dispatcher) snapshot() (map[string]*planned, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.plans, d.edition
}

// token is sixteen random hex digits.
func token() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// ms is a duration in milliseconds, rounded up.
func ms(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

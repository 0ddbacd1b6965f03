package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Leases limit how many work at a time, over all processes on a Redis. A limit
// has a name, and gives out leases that end by Redis's clock: one whose holder
// died is free again then. Leases hold no state of their own and may be used by
// many goroutines, which share calls when there is a crowd of them.
type Leases struct {
	settings
	rdb  redis.UniversalClient
	desk *desk[errand, outcome]
}

// Running is a limit: at most so many at a time under a name.
type Running struct {
	Name  string // 1 to 300 bytes without blanks and braces
	Limit int64  // 0: no limit; only a block is respected
}

// Acquired is the answer to Acquire.
type Acquired struct {
	Held bool // all leases are held

	Full       Running       // the first limit that refused; zero when held
	RetryAfter time.Duration // whole milliseconds, rounded up; 0 only when held
	Position   int64         // place in that limit's line, 1 = next; 0 when held, or when the line is full
	Reason     string        // of a refusal: ReasonRunning, ReasonBlocked; else ""

	// Next are holders whose turn has come, as Release gives them: what this call took of one
	// limit and gave back when another refused was theirs, or they were dropped before their time.
	Next []string
}

// ReasonRunning says that as many run as may.
const ReasonRunning = "running"

// ErrHolder is returned for a holder's name that is empty, too long or not printable.
var ErrHolder = errors.New("holder must be 1 to 200 printable ASCII bytes")

// ErrNotHeld is returned by Extend for a lease that has ended: others may have it.
var ErrNotHeld = errors.New("the lease is not held; it has ended or was never given")

const (
	minLease = time.Millisecond
	maxLease = 24 * time.Hour
)

// NewLeases makes Leases. It does no I/O.
func NewLeases(rdb redis.UniversalClient, opts ...Option) *Leases {
	l := &Leases{rdb: rdb, settings: settle(opts)}
	l.desk = &desk[errand, outcome]{send: l.send}
	return l
}

// Acquire takes a lease of each limit for ttl (1 ms to 24 h), or of none. holder
// names one piece of work; the same holder again has the same leases, extended,
// so a lost reply is safe. Refused, it has a place in the line of the first limit
// that is full: first come, first served. RetryAfter is when leases will have
// ended for this place if nobody releases or extends any, a day at most; it may
// come sooner when it is named by Release. Not back within 30 s after either, the
// place is lost. Who has its turn at one limit and is refused by another keeps
// its place there for when it comes back, and holds up nobody meanwhile.
//
// Limits come with each call: the latest one holds for all. An error may mean
// that leases were taken: ask again, or Release them.
func (l *Leases) Acquire(ctx context.Context, holder string, ttl time.Duration, limits ...Running) (Acquired, error) {
	o, err := l.run(ctx, errand{op: opAcquire, holder: holder, ttl: ttl, limits: limits})
	if err != nil {
		return Acquired{}, fmt.Errorf("quota: acquire %s: %w", list(limits), err)
	}
	a := Acquired{Held: true, Next: o.next}
	if i := o.refused(); i >= 0 {
		t := o.turns[i]
		a.Held, a.Full, a.RetryAfter, a.Position, a.Reason = false, limits[i], wholeMillis(t.wait), t.position, t.reason
	}
	return a, nil
}

// Extend makes leases end no sooner than ttl from now. Its error is ErrNotHeld
// where one has ended; that one is not taken again.
func (l *Leases) Extend(ctx context.Context, holder string, ttl time.Duration, names ...string) error {
	limits := named(names)
	o, err := l.run(ctx, errand{op: opExtend, holder: holder, ttl: ttl, limits: limits})
	if err == nil {
		if i := o.refused(); i >= 0 {
			err = fmt.Errorf("%q: %w", names[i], ErrNotHeld)
		}
	}
	if err != nil {
		return fmt.Errorf("quota: extend %s: %w", list(limits), err)
	}
	return nil
}

// Release gives leases back. It does nothing to a lease that the holder has lost.
// next are the first in line whose turn has come, for a caller that can wake them;
// one that does not come within 2 s is named again by a later call.
func (l *Leases) Release(ctx context.Context, holder string, names ...string) (next []string, err error) {
	o, err := l.run(ctx, errand{op: opRelease, holder: holder, limits: named(names)})
	if err != nil {
		return nil, fmt.Errorf("quota: release %s: %w", list(named(names)), err)
	}
	return o.next, nil
}

// Leave takes a holder out of the lines. What it holds stays held. Who comes next
// is named by the next Release; one of this very holder will do.
func (l *Leases) Leave(ctx context.Context, holder string, names ...string) error {
	if _, err := l.run(ctx, errand{op: opLeave, holder: holder, limits: named(names)}); err != nil {
		return fmt.Errorf("quota: leave %s: %w", list(named(names)), err)
	}
	return nil
}

func (l *Leases) run(ctx context.Context, e errand) (outcome, error) {
	if err := l.check(e); err != nil {
		return outcome{}, err
	}
	o, err := l.desk.ask(ctx, e)
	if err == nil {
		err = o.err
	}
	return o, err
}

// check is all that can be said of an errand without Redis.
func (l *Leases) check(e errand) error {
	if err := l.fault(); err != nil {
		return err
	}
	if !validID(e.holder) {
		return ErrHolder
	}
	if (e.op == opAcquire || e.op == opExtend) && (e.ttl < minLease || e.ttl > maxLease) {
		return fmt.Errorf("for %s: a lease lasts from %s to %s", e.ttl, minLease, maxLease)
	}
	for _, r := range e.limits {
		if err := checkRunning(r); err != nil {
			return err
		}
	}
	return nil
}

func checkRunning(r Running) error {
	if r.Name == "" || len(r.Name) > 300 || strings.ContainsFunc(r.Name, func(c rune) bool { return c <= ' ' || c == '{' || c == '}' || c == 0x7f }) {
		return fmt.Errorf("name %q: it must have 1 to 300 bytes, without blanks and braces", r.Name)
	}
	if r.Limit < 0 || r.Limit > MaxLimit {
		return fmt.Errorf("limit %d of %q: it must be from 0, which is none, to %d", r.Limit, r.Name, int64(MaxLimit))
	}
	return nil
}

func named(names []string) []Running {
	limits := make([]Running, len(names))
	for i, n := range names {
		limits[i].Name = n
	}
	return limits
}

func list(limits []Running) string {
	var names []string
	for _, r := range limits {
		names = append(names, fmt.Sprintf("%q", r.Name))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

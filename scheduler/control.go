package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	mostRequests   = 100             // triggers and backfills open at a time
	mostBackfilled = 1000            // ticks of one backfill
	requestTTL     = 7 * day * 1000  // ms; one that no scheduler could serve is let go
	requestRound   = 32              // ticks made under one claim of a request
	requestFault   = 5 * time.Second // rest after an Enqueuer's error
)

// ErrNotPaused is what Resume gives for a schedule that is not paused.
var ErrNotPaused = errors.New("it is not paused")

// ErrRange says that no backfill is made of a range.
var ErrRange = errors.New("1 to 1000 ticks of the past are wanted")

// ErrTooManyRequests says that 100 triggers and backfills are open already.
var ErrTooManyRequests = errors.New("100 triggers and backfills are open already; try again when some have ended")

// Pause keeps a schedule's ticks from running until until; the zero time is
// an open end. The ticks in between count as skipped, and are not caught up.
// by says who asks, for List.
func (d *Dispatcher) Pause(ctx context.Context, name string, until time.Time, by string) error {
	end := int64(0)
	if !until.IsZero() {
		end = until.UnixMilli()
	}
	done, err := d.pause(ctx, "pause", name, end, by)
	if err == nil && !done {
		return fmt.Errorf("scheduler: pause %q: until %s is not in the future", name, until.Format(time.RFC3339))
	}
	return err
}

// Resume ends a pause now. The error wraps ErrNotPaused where there is none.
func (d *Dispatcher) Resume(ctx context.Context, name, by string) error {
	done, err := d.pause(ctx, "resume", name, 0, by)
	if err == nil && !done {
		return fmt.Errorf("scheduler: resume %q: %w", name, ErrNotPaused)
	}
	return err
}

func (d *Dispatcher) pause(ctx context.Context, call, name string, until int64, by string) (bool, error) {
	p, err := d.configured(call, name)
	if err != nil {
		return false, err
	}
	n, err := pauseScript.Run(ctx, d.store.rdb, []string{stateKey(name)},
		d.stamp(), call, until, by, p.keep(d.clock.Now().UnixMilli())).Int64()
	if err != nil {
		return false, fmt.Errorf("scheduler: %s %q: %w", call, name, err)
	}
	return n == 1, nil
}

// Trigger asks for one tick now, whatever the clock, pause and overlap say.
// A running dispatcher makes its job within about a second. The ID is the
// tick's Manual.
func (d *Dispatcher) Trigger(ctx context.Context, name, by string) (id string, err error) {
	p, err := d.configured("trigger", name)
	if err != nil {
		return "", err
	}
	return d.request(ctx, p, "trigger", "", "", by)
}

// Backfill asks for the schedule's ticks in from ≤ t ≤ to, of the past, once
// more; at most 1000. Running dispatchers make their jobs in order, as fast
// as the queue takes them, whatever overlap says. ticks is their number.
func (d *Dispatcher) Backfill(ctx context.Context, name string, from, to time.Time, by string) (id string, ticks int, err error) {
	p, err := d.configured("backfill", name)
	if err != nil {
		return "", 0, err
	}
	fail := func(format string, args ...any) (string, int, error) {
		return "", 0, fmt.Errorf("scheduler: backfill %q: %s: %w", name, fmt.Sprintf(format, args...), ErrRange)
	}
	switch {
	case to.Before(from):
		return fail("to (%s) is before from (%s)", to.Format(time.RFC3339), from.Format(time.RFC3339))
	case to.After(d.clock.Now()):
		return fail("to (%s) is in the future; the schedule itself sees to what comes", to.Format(time.RFC3339))
	}
	p.schedule.Between(from, to.Add(time.Nanosecond), func(time.Time) bool {
		ticks++
		return ticks <= mostBackfilled
	})
	switch {
	case ticks == 0:
		return fail("no tick lies between %s and %s", from.Format(time.RFC3339), to.Format(time.RFC3339))
	case ticks > mostBackfilled:
		return fail("more than %d ticks lie between %s and %s", mostBackfilled, from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	id, err = d.request(ctx, p, "backfill", from.UnixMilli()+ms(time.Duration(from.Nanosecond()%1e6)), to.UnixMilli(), by)
	return id, ticks, err
}

func (d *Dispatcher) request(ctx context.Context, p *planned, kind string, from, to any, by string) (string, error) {
	id := kind + "-" + token()[:8]
	n, err := requestScript.Run(ctx, d.store.rdb, []string{manualKey, requestKey(id), stateKey(p.Name)},
		d.stamp(), id, kind, p.Name, from, to, by, mostRequests, int64(requestTTL), p.keep(d.clock.Now().UnixMilli())).Int64()
	if err != nil {
		return "", fmt.Errorf("scheduler: %s %q: %w", kind, p.Name, err)
	}
	if n == 0 {
		return "", fmt.Errorf("scheduler: %s %q: %w", kind, p.Name, ErrTooManyRequests)
	}
	return id, nil
}

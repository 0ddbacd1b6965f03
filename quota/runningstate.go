package quota

import (
	"context"
	"fmt"
	"time"
)

// RunningState is a running limit as it stands.
type RunningState struct {
	Name        string
	Now         time.Time // Redis's clock; all instants are by it
	Running     int64     // leases held
	Limit       int64     // as last asked with; 0 when there is none, or nobody asked for 30 days
	Waiting     int64     // places in line
	NextExpiry  time.Time // when a lease next ends by itself; zero when none is held
	LongestWait time.Duration

	BlockedUntil time.Time // zero when open
	BlockReason  string
	Blocks       int64 // how often it was blocked
}

// State reads a running limit. What has ended goes.
func (l *Leases) State(ctx context.Context, name string) (RunningState, error) {
	var s RunningState
	err := l.checkName(name)
	if err == nil {
		var reply []any
		if reply, err = runningStateScript.Run(ctx, l.rdb, runningKeys(l.prefix, name), l.instant(), leaseGrace.Microseconds()).Slice(); err == nil {
			s, err = runningState(name, reply)
		}
	}
	if err != nil {
		return RunningState{}, fmt.Errorf("quota: running state %q: %w", name, err)
	}
	return s, nil
}

func runningState(name string, reply []any) (RunningState, error) {
	r := reader{rest: reply}
	s := RunningState{Name: name, Now: r.time(), Running: r.int(), Limit: r.int(), Waiting: r.int(), NextExpiry: r.time()}
	if since := r.time(); !since.IsZero() {
		s.LongestWait = max(s.Now.Sub(since), 0)
	}
	s.BlockedUntil, s.BlockReason, s.Blocks = r.time(), r.text(), r.int()
	return s, r.done()
}

// Block gives no leases under a name for d, because of reason (shown to people;
// cut at 200 bytes). Of two blocks the one that ends later holds. Who runs goes
// on; who asks meanwhile gets a place in the line.
func (l *Leases) Block(ctx context.Context, name string, d time.Duration, reason string) error {
	err := l.checkName(name)
	switch {
	case err != nil:
	case d < time.Microsecond || d > maxPer:
		err = errBlock(d)
	default:
		_, err = l.shut(ctx, name, d.Microseconds(), shortReason(reason))
	}
	if err != nil {
		return fmt.Errorf("quota: block %q: %w", name, err)
	}
	return nil
}

// Unblock opens a name again. next are those in line whose turn has come.
func (l *Leases) Unblock(ctx context.Context, name string) (next []string, err error) {
	if err = l.checkName(name); err == nil {
		next, err = l.shut(ctx, name, 0, "")
	}
	if err != nil {
		return nil, fmt.Errorf("quota: unblock %q: %w", name, err)
	}
	return next, nil
}

func (l *Leases) shut(ctx context.Context, name string, micros int64, reason string) ([]string, error) {
	return shutScript.Run(ctx, l.rdb, runningKeys(l.prefix, name), l.instant(), leaseGrace.Microseconds(), micros, reason).StringSlice()
}

func (l *Leases) checkName(name string) error {
	if err := l.fault(); err != nil {
		return err
	}
	return checkRunning(Running{Name: name})
}

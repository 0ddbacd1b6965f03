package quota

import (
	"errors"
	"fmt"
	"time"
)

// Ledger is one quota in memory: the same decisions as a Limiter's, by the time
// that the caller gives. It shows what a quota would do before anything runs.
// A call takes O(log n) in log and line; a refund, a leave from mid-line and a
// grace that has passed take O(n). Not for use by several goroutines at once.
type Ledger struct {
	cfg Config
	s   sheet
}

// NewLedger makes an empty Ledger. Its error joins every fault of the quota.
func NewLedger(c Config) (*Ledger, error) {
	l := &Ledger{}
	return l, l.Configure(c)
}

// Configure changes limits, windows, reserve and grace. Log and line stay.
func (l *Ledger) Configure(c Config) error {
	if err := c.faults(); err != nil {
		return err
	}
	l.cfg = c.withDefaults()
	return nil
}

// Charge answers as Limiter.Charge would at now. r.Quota is not looked at.
func (l *Ledger) Charge(now time.Time, r Request) (Decision, error) {
	if err := r.check(l.cfg); err != nil {
		var never *ImpossibleError
		if errors.As(err, &never) {
			l.Leave(r.ID)
		}
		return Decision{}, fmt.Errorf("quota: charge %q: %w", l.cfg.Name, err)
	}
	at := now.UnixMicro()
	if l.s.remembered(l.cfg, at, r.ID) == nil {
		l.sweep(at)
		for class := range l.s.lines {
			line := &l.s.lines[class]
			if i := line.find(r.ID); i >= 0 && (line.places[i].cost != r.Cost || Priority(class) != r.Priority) {
				line.leave(i)
			}
		}
	}
	v := decide(l.cfg, &l.s, at, r)
	line := &l.s.lines[r.Priority]
	switch {
	case v.stamp > 0:
		if v.mine >= 0 {
			line.leave(v.mine)
		}
		l.s.grant(r.ID, r.Cost, v.stamp)
		l.s.trim(at - (l.cfg.keep() + margin).Microseconds())
	case v.place != nil && v.mine >= 0:
		line.promise(v.mine, v.place)
	case v.place != nil:
		line.join(*v.place)
	}
	return v.Decision, nil
}

// Refund gives back what an ID was charged, and how much that was, and takes it
// out of the line.
func (l *Ledger) Refund(now time.Time, id string) int64 {
	l.Leave(id)
	at := now.UnixMicro()
	e := l.s.remembered(l.cfg, at, id)
	if e == nil {
		return 0
	}
	l.s.refund(e)
	for _, w := range l.cfg.Windows {
		if start, _ := l.s.span(w, at); e.stamp >= start {
			return e.cost
		}
	}
	return 0
}

// Leave takes an ID out of the line.
func (l *Ledger) Leave(id string) {
	for class := range l.s.lines {
		if i := l.s.lines[class].find(id); i >= 0 {
			l.s.lines[class].leave(i)
		}
	}
}

// Block closes the quota until now+d at least.
func (l *Ledger) Block(now time.Time, d time.Duration) {
	l.s.closed = max(l.s.closed, now.Add(d).UnixMicro())
}

// Unblock opens it again.
func (l *Ledger) Unblock() { l.s.closed = 0 }

// Windows is what each window counts at now.
func (l *Ledger) Windows(now time.Time) []Use { return l.s.uses(l.cfg, now.UnixMicro()) }

// Line is how many wait in a class at now, and for how much.
func (l *Ledger) Line(now time.Time, p Priority) (Line, error) {
	if p != Scheduled && p != Interactive {
		return Line{}, errors.New("quota: line: priority must be Scheduled or Interactive")
	}
	l.sweep(now.UnixMicro())
	line := &l.s.lines[p]
	return Line{Waiting: int64(len(line.places)), Units: line.units(len(line.places))}, nil
}

func (l *Ledger) sweep(now int64) {
	for class := range l.s.lines {
		l.s.lines[class].sweep(now)
	}
}

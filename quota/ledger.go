package quota

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Ledger is one quota in memory: the same decisions as a Limiter's, by the time
// that the caller gives. It shows what a quota would do before anything runs.
// Each call takes time in proportion to the log and the line. Not for use by
// several goroutines at once.
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
			l.s.lines[class] = slices.DeleteFunc(l.s.lines[class], func(p place) bool {
				return p.id == r.ID && (p.cost != r.Cost || Priority(class) != r.Priority)
			})
		}
	}
	v := decide(l.cfg, &l.s, at, r)
	line := &l.s.lines[r.Priority]
	switch {
	case v.stamp > 0:
		if v.mine >= 0 {
			*line = slices.Delete(*line, v.mine, v.mine+1)
		}
		l.s.log = append(l.s.log, entry{id: r.ID, cost: r.Cost, stamp: v.stamp})
		l.trim(at)
	case v.place != nil && v.mine >= 0:
		(*line)[v.mine] = *v.place
	case v.place != nil:
		*line = append(*line, *v.place)
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
	e.refunded = true
	for _, w := range l.cfg.Windows {
		if start, _ := span(w, at); e.stamp >= start {
			return e.cost
		}
	}
	return 0
}

// Leave takes an ID out of the line.
func (l *Ledger) Leave(id string) {
	for class := range l.s.lines {
		l.s.lines[class] = slices.DeleteFunc(l.s.lines[class], func(p place) bool { return p.id == id })
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
	return Line{Waiting: int64(len(l.s.lines[p])), Units: units(l.s.lines[p])}, nil
}

func (l *Ledger) sweep(now int64) {
	for class := range l.s.lines {
		l.s.lines[class] = slices.DeleteFunc(l.s.lines[class], func(p place) bool { return p.deadline <= now })
	}
}

func (l *Ledger) trim(now int64) {
	n, old := 0, now-(l.cfg.keep()+margin).Microseconds()
	for n < len(l.s.log)-1 && l.s.log[n].stamp <= old {
		n++
	}
	l.s.log = slices.Delete(l.s.log, 0, n)
}

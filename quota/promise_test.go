package quota_test

import (
	"fmt"
	"time"

	"feedwarden/quota"
)

// promises are those given to waiters that have not come back, and whether they
// still bind: a promise may move when somebody before it is late, when
// interactive charges come in before a scheduled one, and when a person changes
// limits, closes the quota or sets the clock. What is promised then counts on the
// promises before it, and binds only if all of them do.
type promises map[string]*promise

type promise struct {
	quota.Request
	at    time.Time
	until time.Time
	seq   int // order of asking
	binds bool
}

// told notes an answer to r, given at now with a new grant or a refusal, and says
// what is wrong with it.
func (ps promises) told(r quota.Request, d quota.Decision, now time.Time, grace time.Duration) error {
	ps.drop(now)
	before := ps[r.ID]
	if before != nil && (before.Cost != r.Cost || before.Priority != r.Priority) {
		before = nil // it asks for something else: a newcomer
		delete(ps, r.ID)
	}
	if d.Granted {
		if before != nil && d.At.After(before.at) {
			ps.loosen(before.goesBefore) // it came late: those behind it may have to wait
		}
		delete(ps, r.ID)
		if before == nil && r.Priority == quota.Interactive {
			ps.loosen(func(p *promise) bool { return p.Priority == quota.Scheduled })
		}
		return nil
	}
	if before != nil && before.binds && !ps.lateBefore(before, now) {
		if !now.Before(before.at) {
			return fmt.Errorf("%s was promised %s, came at %s, and was refused: %+v", r.ID, before.at, now, d)
		}
		if d.At.After(before.at) {
			return fmt.Errorf("%s was promised %s, and now %s", r.ID, before.at, d.At)
		}
	}
	if d.Position == 0 {
		return nil
	}
	if before == nil && r.Priority == quota.Interactive {
		ps.loosen(func(p *promise) bool { return p.Priority == quota.Scheduled })
	}
	p := &promise{Request: r, at: d.At, until: d.At.Add(grace), binds: true}
	if before != nil {
		p.seq = before.seq
	} else {
		for _, o := range ps {
			p.seq = max(p.seq, o.seq+1)
		}
	}
	for _, o := range ps {
		if o.ID != r.ID && o.goesBefore(p) && !o.binds {
			p.binds = false
		}
	}
	ps[r.ID] = p
	return nil
}

func (p *promise) goesBefore(o *promise) bool {
	if p.Priority != o.Priority {
		return p.Priority == quota.Interactive
	}
	return p.seq < o.seq
}

// drop forgets those whose grace is over.
func (ps promises) drop(now time.Time) {
	for id, p := range ps {
		if !now.Before(p.until) {
			delete(ps, id)
		}
	}
}

// lateBefore says whether somebody that goes before p should have come.
func (ps promises) lateBefore(p *promise, now time.Time) bool {
	for _, o := range ps {
		if o != p && o.goesBefore(p) && !o.at.After(now) {
			return true
		}
	}
	return false
}

func (ps promises) loosen(which func(*promise) bool) {
	for _, p := range ps {
		if which == nil || which(p) {
			p.binds = false
		}
	}
}

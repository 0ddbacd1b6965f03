package quota

import (
	"slices"
	"time"
)

// This file is the limiter's one decision, without Redis: what charge.lua
// answers, worked out by plain sums and walks. Instants are in µs.

// sheet is a quota's whole state.
type sheet struct {
	log    []entry    // by stamp, which rise
	lines  [2][]place // by class, in order of asking
	closed int64      // blocked until; 0 when open
}

// entry is a grant. Refunded, it counts nothing and its ID is free again.
type entry struct {
	id          string
	cost, stamp int64
	refunded    bool
}

// place is a waiter.
type place struct {
	id                       string
	cost                     int64
	promise, deadline, since int64
}

// verdict is a decision and what is to be written for it.
type verdict struct {
	Decision
	stamp int64 // of the grant; 0 when nothing new was granted
	place *place
	mine  int // index of the asking waiter in its line, or -1
}

// decide answers one request. It changes nothing. The sheet must hold no waiter
// whose deadline has passed, and none of this ID with another cost or class.
func decide(c Config, s *sheet, now int64, r Request) verdict {
	v := verdict{Decision: Decision{ID: r.ID, Cost: r.Cost}, mine: -1}
	if e := s.remembered(c, now, r.ID); e != nil {
		v.Granted, v.Cost, v.At = true, e.cost, instant(e.stamp)
		v.Windows = s.uses(c, now)
		return v
	}
	line := s.lines[r.Priority]
	ahead := line // those of its class before it
	if i := slices.IndexFunc(line, func(p place) bool { return p.id == r.ID }); i >= 0 {
		v.mine, ahead = i, line[:i]
	}
	before := slices.Clone(ahead) // all that are granted before it, in that order
	if r.Priority == Scheduled {
		before = append(slices.Clone(s.lines[Interactive]), ahead...)
	}
	waiting := units(before)

	fits := s.closed <= now && (v.mine >= 0 || len(line) == 0)
	v.Reason = ReasonLine
	v.Windows = s.uses(c, now)
	for i, u := range v.Windows {
		reserve := c.held(c.Windows[i], r.Priority)
		room := u.Limit - u.Used - r.Cost
		if room < 0 {
			v.Reason = ReasonWindow
		} else if room < reserve && v.Reason == ReasonLine {
			v.Reason = ReasonReserve
		}
		fits = fits && room-reserve >= waiting
	}
	if fits {
		v.Granted, v.Reason = true, ""
		v.stamp = max(now, s.last()+1)
		v.At = instant(v.stamp)
		for i := range v.Windows {
			v.Windows[i].Used += r.Cost
		}
		return v
	}
	if s.closed > now {
		v.Reason = ReasonBlocked
	}
	at := max(now+1, s.last()+1, s.closed)
	if len(ahead) > 0 {
		at = max(at, ahead[len(ahead)-1].promise+1)
	}
	for _, w := range c.Windows {
		at = max(at, s.room(w, now, before, r.Cost+c.held(w, r.Priority)))
	}
	v.At, v.RetryAfter = instant(at), wholeMillis(at-now)
	v.place = &place{id: r.ID, cost: r.Cost, promise: at, deadline: at + c.Grace.Microseconds(), since: now}
	var sooner int64 // those of the class that goes first
	if r.Priority == Scheduled {
		sooner = int64(len(s.lines[Interactive]))
	}
	switch {
	case v.mine >= 0:
		v.place.since = line[v.mine].since
		v.Position = int64(v.mine) + 1 + sooner
	case r.NoLine:
		v.place = nil
	default:
		v.Position = int64(len(line)) + 1 + sooner
	}
	return v
}

// room is the instant at which a window has room for cost, once those before
// have been granted, each at its promise; 0 when it has it now.
func (s *sheet) room(w Window, now int64, before []place, cost int64) int64 {
	start, _ := span(w, now)
	var counted []entry
	for _, e := range s.log {
		if e.stamp >= start && !e.refunded {
			counted = append(counted, e)
		}
	}
	for _, p := range before {
		counted = append(counted, entry{cost: p.cost, stamp: max(now, p.promise)})
	}
	need := cost - w.Limit
	for _, e := range counted {
		need += e.cost
	}
	for _, e := range counted {
		if need <= 0 {
			break
		}
		if need -= e.cost; need <= 0 {
			return release(w, e.stamp)
		}
	}
	return 0
}

// uses is what each window counts at now.
func (s *sheet) uses(c Config, now int64) []Use {
	uses := make([]Use, len(c.Windows))
	for i, w := range c.Windows {
		start, length := span(w, now)
		uses[i] = Use{Limit: w.Limit, Per: time.Duration(length) * time.Microsecond, Calendar: w.Calendar}
		for _, e := range s.log {
			if e.stamp >= start && !e.refunded {
				uses[i].Used += e.cost
			}
		}
	}
	return uses
}

// remembered is the charge of an ID, or nil.
func (s *sheet) remembered(c Config, now int64, id string) *entry {
	for i := len(s.log) - 1; i >= 0; i-- {
		e := &s.log[i]
		if e.id != id {
			continue
		}
		if e.refunded || e.stamp+c.keep().Microseconds() <= now {
			return nil
		}
		return e
	}
	return nil
}

func (s *sheet) last() int64 {
	if len(s.log) == 0 {
		return 0
	}
	return s.log[len(s.log)-1].stamp
}

func units(places []place) (sum int64) {
	for _, p := range places {
		sum += p.cost
	}
	return sum
}

// span is the first stamp that a window counts at now, and its length.
func span(w Window, now int64) (start, length int64) {
	if w.Calendar == "" {
		per := w.Per.Microseconds()
		return now - per + 1, per
	}
	edges := dayEdges(w.Location, instant(now), 0, 2)
	return edges[0].UnixMicro(), edges[1].UnixMicro() - edges[0].UnixMicro()
}

// release is the instant at which an entry leaves a window.
func release(w Window, stamp int64) int64 {
	if w.Calendar == "" {
		return stamp + w.Per.Microseconds()
	}
	return dayEdges(w.Location, instant(stamp), 0, 2)[1].UnixMicro()
}

func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

package quota

// This file is the limiter's one decision, without Redis: what charge.lua
// answers. Instants are in µs.

// verdict is a decision and what is to be written for it.
type verdict struct {
	Decision
	stamp int64 // of the grant; 0 when nothing new was granted
	place *place
	mine  int // index of the asking waiter in its line, or -1
}

// sleeps tells those whose promises are of one instant, and follow each other by µs,
// from one that was promised later than need be by now.
const sleeps = 1_000_000

// decide answers one request. It changes nothing. The sheet must hold no waiter
// whose deadline has passed, and none of this ID with another cost or class.
func decide(c Config, s *sheet, now int64, r Request) verdict {
	v := verdict{Decision: Decision{ID: r.ID, Cost: r.Cost}, mine: -1}
	if e := s.remembered(c, now, r.ID); e != nil {
		v.Granted, v.Cost, v.At = true, e.cost, instant(e.stamp)
		v.Windows = s.uses(c, now)
		return v
	}
	line := &s.lines[r.Priority]
	before := len(line.places) // how many of its class are before it
	if v.mine = line.find(r.ID); v.mine >= 0 {
		before = v.mine
	}
	a := ahead{interactive: before}
	if r.Priority == Scheduled {
		a = ahead{interactive: len(s.lines[Interactive].places), scheduled: before}
	}
	waiting := s.waiting(a)

	fits := s.closed <= now && (v.mine >= 0 || len(line.places) == 0)
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
	told, alone := max(now+1, s.last()+1, s.closed), true
	for _, w := range c.Windows {
		need := r.Cost + c.held(w, r.Priority)
		told = max(told, s.room(w, now, a, need))
		alone = alone && waiting+need <= w.Limit
	}
	at := told
	if before > 0 {
		at = max(at, line.places[before-1].follows+1)
	}
	if r.Priority == Scheduled && a.interactive > 0 {
		at = max(at, s.lines[Interactive].places[a.interactive-1].follows+1)
	}
	if !alone || at <= told+sleeps || v.mine < 0 && r.NoLine {
		told = at
	}
	v.At, v.RetryAfter = instant(told), wholeMillis(told-now)
	v.place = &place{id: r.ID, cost: r.Cost, promise: told, follows: at, deadline: told + c.Grace.Microseconds(), since: now}
	switch {
	case v.mine < 0 && r.NoLine:
		v.place = nil
		return v
	case v.mine >= 0:
		v.place.since = line.places[v.mine].since
	}
	v.Position = int64(a.interactive+a.scheduled) + 1
	return v
}

package scheduler

import (
	"fmt"
	"math"
	"time"
)

// horizon is how far a search looks, in seconds: the Gregorian calendar and
// every zone's rule repeat after 400 years, so what does not come within
// them never comes.
const horizon = 401 * 366 * day

// Next is the first instant of the schedule strictly after after, in the
// schedule's zone; false when there is none up to the end of year 9999.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	u, _, ok := s.next(after.Unix() + 1)
	return time.Unix(u, 0).In(s.loc), ok
}

// Prev is the last instant of the schedule strictly before before, in the
// schedule's zone; false when there is none from year 1 on.
func (s *Schedule) Prev(before time.Time) (time.Time, bool) {
	u := before.Unix()
	if before.Nanosecond() == 0 {
		u--
	}
	u, _, ok := s.previous(u)
	return time.Unix(u, 0).In(s.loc), ok
}

// Between yields the schedule's instants from ≤ t < to in order, until yield
// returns false.
func (s *Schedule) Between(from, to time.Time, yield func(time.Time) bool) {
	low := from.Unix()
	if from.Nanosecond() > 0 {
		low++
	}
	for {
		u, _, ok := s.next(low)
		if !ok {
			return
		}
		t := time.Unix(u, 0).In(s.loc)
		if !t.Before(to) || !yield(t) {
			return
		}
		low = u + 1
	}
}

// NextInstants gives n instants of expr strictly after from, written in RFC
// 3339 with the offset of the schedule's zone: zone (a name of the tz
// database, "" for UTC), unless expr carries a prefix of its own. Fewer than
// n come only at the end of year 9999. The error is an *ExpressionError, or
// wraps ErrZone.
func NextInstants(expr, zone string, from time.Time, n int) ([]string, error) {
	if n < 0 {
		return nil, fmt.Errorf("scheduler: %d instants were asked for; 0 or more are wanted", n)
	}
	loc, err := LoadZone(zone)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	s, err := Parse(expr, loc)
	if err != nil {
		return nil, err
	}
	var out []string
	for t := from; len(out) < n; {
		next, ok := s.Next(t)
		if !ok {
			break
		}
		text, ok := rfc3339(next)
		if !ok {
			break
		}
		out = append(out, text)
		t = next
	}
	return out, nil
}

// rfc3339 is an instant as RFC 3339 can write it: to an offset that holds a
// fraction of a minute, as clocks had before there were zones, it takes the
// nearest, and there is no year of five digits.
func rfc3339(t time.Time) (text string, ok bool) {
	if _, offset := t.Zone(); offset%60 != 0 {
		t = t.In(time.FixedZone("", int(math.Round(float64(offset)/60))*60))
	}
	return t.Format(time.RFC3339), t.Year() <= 9999
}

// next is the first instant ≥ low in Unix seconds. steps counts the months
// and zone spans that were looked at, which is all the work there is.
func (s *Schedule) next(low int64) (u int64, steps int, ok bool) {
	if low > maxUnix {
		return 0, 0, false
	}
	low = max(low, minUnix)
	switch {
	case s.every > 0:
		u, steps, ok = low+floorMod(s.phase-low, s.every), 1, true
	case s.fields.follows:
		u, steps, ok = s.nextFollowing(low)
	default:
		u, steps, ok = s.nextFixed(low)
	}
	return u, steps, ok && u <= maxUnix
}

// previous is the last instant ≤ high in Unix seconds.
func (s *Schedule) previous(high int64) (u int64, steps int, ok bool) {
	if high < minUnix {
		return 0, 0, false
	}
	high = min(high, maxUnix)
	switch {
	case s.every > 0:
		u, steps, ok = high-floorMod(high-s.phase, s.every), 1, true
	case s.fields.follows:
		u, steps, ok = s.previousFollowing(high)
	default:
		u, steps, ok = s.previousFixed(high)
	}
	return u, steps, ok && u >= minUnix
}

// nextFollowing looks for a clock that reads a named time, span by span: a
// gap has no readings, an overlap has them twice.
func (s *Schedule) nextFollowing(low int64) (int64, int, bool) {
	steps := 0
	stop := min(low+horizon, maxUnix)
	for u := low; u <= stop; {
		sp := spanAt(s.loc, u)
		last := min(sp.end-1, stop)
		civil, months, ok := s.fields.next(u+sp.offset, last+sp.offset)
		steps += 1 + months
		if ok {
			return civil - sp.offset, steps, true
		}
		u = last + 1
	}
	return 0, steps, false
}

func (s *Schedule) previousFollowing(high int64) (int64, int, bool) {
	steps := 0
	stop := max(high-horizon, minUnix)
	for u := high; u >= stop; {
		sp := spanAt(s.loc, u)
		first := max(sp.start, stop)
		civil, months, ok := s.fields.previous(u+sp.offset, first+sp.offset)
		steps += 1 + months
		if ok {
			return civil - sp.offset, steps, true
		}
		u = first - 1
	}
	return 0, steps, false
}

// nextFixed takes the first named time that the clock had not yet reached
// before low, and gives the instant at which it does. So a time in a gap
// comes just after it, and one that is shown twice comes once.
func (s *Schedule) nextFixed(low int64) (int64, int, bool) {
	steps := 0
	from := reached(s.loc, low-1) + 1
	for limit := from + horizon; from <= limit; {
		civil, months, ok := s.fields.next(from, limit)
		steps += 1 + months
		if !ok {
			break
		}
		at := arrival(s.loc, civil)
		if !s.onSkippedDate(civil, at) {
			return at, steps, true
		}
		from = civil - floorMod(civil, day) + day
	}
	return 0, steps, false
}

func (s *Schedule) previousFixed(high int64) (int64, int, bool) {
	steps := 0
	from := reached(s.loc, high)
	for limit := from - horizon; from >= limit; {
		civil, months, ok := s.fields.previous(from, limit)
		steps += 1 + months
		if !ok {
			break
		}
		at := arrival(s.loc, civil)
		if !s.onSkippedDate(civil, at) {
			return at, steps, true
		}
		from = civil - floorMod(civil, day) - 1
	}
	return 0, steps, false
}

// onSkippedDate tells whether civil, whose arrival is at, lies on a date that
// the zone left out. Most times are shown by the clock, which settles it.
func (s *Schedule) onSkippedDate(civil, at int64) bool {
	midnight := civil - floorMod(civil, day)
	if at+spanAt(s.loc, at).offset < midnight+day {
		return false
	}
	return skipped(s.loc, midnight)
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

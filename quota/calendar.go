package quota

import (
	"sync"
	"time"
)

// calendar gives the edges of a zone's days around an instant. Go knows the
// zones; which of the edges count is chosen by Redis's clock.
type calendar struct {
	zone *time.Location

	mu       sync.Mutex
	from, to time.Time // text is right for instants from ≤ t < to
	text     string
}

// How many days before and after today are given. So much may the clocks differ.
const (
	daysBefore = 2
	daysAfter  = 9
)

// edges are midnights around t as scripts take them: how many, and each in µs, rising.
func (c *calendar) edges(t time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == "" || t.Before(c.from) || !t.Before(c.to) {
		all := dayEdges(c.zone, t, daysBefore, daysAfter)
		numbers := packed(nil, int64(len(all)))
		for i, e := range all {
			numbers = packed(numbers, e.UnixMicro())
			if !e.After(t) {
				c.from, c.to = e, all[i+1]
			}
		}
		c.text = string(numbers)
	}
	return c.text
}

// Day is the day of a zone that an instant lies in, from ≤ t < to, as a calendar
// window counts it.
func Day(zone *time.Location, t time.Time) (from, to time.Time) {
	edges := dayEdges(zone, t, 0, 2)
	return edges[0], edges[1]
}

// dayEdges are the first instants of the days around t in a zone, from before
// days ago to after days ahead. A date that the zone skipped has none.
func dayEdges(zone *time.Location, t time.Time, before, after int) []time.Time {
	y, m, d := t.In(zone).Date()
	var edges []time.Time
	for i := -before; i <= after; i++ {
		e := dayStart(zone, y, m, d+i)
		if len(edges) == 0 || e.After(edges[len(edges)-1]) {
			edges = append(edges, e)
		}
	}
	return edges
}

// dayStart is the first instant of a date, also where midnight itself is skipped
// or comes twice: the instant at which the local date becomes that date or later.
func dayStart(zone *time.Location, year int, month time.Month, day int) time.Time {
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	reached := func(sec int64) bool {
		y, m, d := time.Unix(sec, 0).In(zone).Date()
		return !time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(date)
	}
	// No zone is more than 26 h from UTC, so the edge lies between.
	lo, hi := date.Add(-26*time.Hour).Unix(), date.Add(50*time.Hour).Unix()
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; reached(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return time.Unix(hi, 0)
}

package plan

import (
	"cmp"
	"slices"
	"time"

	"feedwarden/quota"
)

// Quota is what its feeds ask of it and what it gives.
type Quota struct {
	Name    string
	Zone    *time.Location // of the hours
	Feeds   int
	Ticks   int
	Refused int // ticks that waited for a second or more
	Skipped int // ticks whose feed's last job was still waiting

	Needed, Granted int64 // units; needed is what all ticks would take
	Hours           []Hour
	Windows         []Window
	// Pace is the units an hour that it can give for ever, to scheduled jobs.
	Pace float64

	// When nobody got a unit though somebody asked: how often, the first time
	// and the longest.
	DryTimes    int
	First, Most Dry
	Fit         *Fit // nil: nothing waits
}

// Hour is an hour of the zone's clock, or the part of it that lies in the span.
type Hour struct {
	Start, End      time.Time
	Needed, Granted int64
}

// Window is one limit, and its fullest stretch.
type Window struct {
	Limit           int64
	Per             time.Duration // 0 with Calendar
	Calendar        string
	Reserve         int64 // what of the limit schedules do not get
	Needed, Granted Full
}

// Full is the most that lies in one window.
type Full struct {
	Units    int64
	From, To time.Time // zero where there is nothing
}

// Dry is a stretch without a grant, from the first refusal on.
type Dry struct{ From, Until time.Time }

func summarize(q quota.Config, s *simulation, zone *time.Location) Quota {
	out := Quota{Name: q.Name, Zone: cmp.Or(zone, time.UTC), Feeds: len(s.courses), DryTimes: s.dry.times}
	for _, w := range slices.Backward(q.Windows) {
		if w.Location != nil {
			out.Zone = w.Location
		}
	}
	if s.dry.times > 0 {
		out.First = Dry{instant(s.dry.first.from), instant(s.dry.first.to)}
		out.Most = Dry{instant(s.dry.longest.from), instant(s.dry.longest.to)}
	}
	needs := make([]grant, len(s.ticks))
	for i, t := range s.ticks {
		k := s.courses[t.feed]
		needs[i] = grant{t.at, k.Cost * int64(k.Pages)}
		out.Needed += needs[i].cost
	}
	for _, g := range s.grants {
		out.Granted += g.cost
	}
	out.Hours = hours(out.Zone, instant(s.from), instant(s.to))
	fill(out.Hours, needs, func(h *Hour) *int64 { return &h.Needed })
	fill(out.Hours, s.grants, func(h *Hour) *int64 { return &h.Granted })
	for i, w := range q.Windows {
		var kept int64
		if q.Reserve < w.Limit {
			kept = q.Reserve
		}
		out.Windows = append(out.Windows, Window{
			Limit: w.Limit, Per: w.Per, Calendar: w.Calendar, Reserve: kept, Needed: fullest(w, needs), Granted: fullest(w, s.grants),
		})
		per := cmp.Or(w.Per, 24*time.Hour)
		if pace := float64(w.Limit-kept) * float64(time.Hour) / float64(per); i == 0 || pace < out.Pace {
			out.Pace = pace
		}
	}
	return out
}

// hours cuts a span at the full hours of a zone's clock.
func hours(zone *time.Location, from, to time.Time) []Hour {
	var out []Hour
	for at := from.In(zone); at.Before(to); {
		next := at.Add(time.Hour - time.Duration(at.Minute())*time.Minute - time.Duration(at.Second())*time.Second - time.Duration(at.Nanosecond()))
		if next.After(to) {
			next = to.In(zone)
		}
		out = append(out, Hour{Start: at, End: next})
		at = next
	}
	return out
}

// fill adds units to their hours; both are in order.
func fill(hours []Hour, units []grant, field func(*Hour) *int64) {
	i := 0
	for _, u := range units {
		for i < len(hours)-1 && u.at >= hours[i].End.UnixMicro() {
			i++
		}
		*field(&hours[i]) += u.cost
	}
}

// fullest is the window that holds most; units are in order.
func fullest(w quota.Window, units []grant) (most Full) {
	if w.Calendar != "" {
		var day Full
		for _, u := range units {
			if at := instant(u.at); !at.Before(day.To) {
				day = Full{}
				day.From, day.To = quota.Day(w.Location, at)
			}
			if day.Units += u.cost; day.Units > most.Units {
				most = day
			}
		}
		return most
	}
	var sum int64
	first, per := 0, w.Per.Microseconds()
	for _, u := range units {
		sum += u.cost
		for ; units[first].at <= u.at-per; first++ {
			sum -= units[first].cost
		}
		if sum > most.Units {
			// The window that ends with this unit; its first instant counts no more.
			most = Full{Units: sum, From: instant(u.at - per), To: instant(u.at)}
		}
	}
	return most
}

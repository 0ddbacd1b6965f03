package quota

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The sheet's sums, worked out by walks over all of log and line.

func plainUsed(s *sheet, w Window, now int64) (sum int64) {
	start, _ := s.span(w, now)
	for _, e := range s.log {
		if e.stamp >= start && !e.refunded {
			sum += e.cost
		}
	}
	return sum
}

func plainRoom(s *sheet, w Window, now int64, before []place, cost int64) int64 {
	start, _ := s.span(w, now)
	var counted []entry
	for _, e := range s.log {
		if e.stamp >= start && !e.refunded {
			counted = append(counted, e)
		}
	}
	for _, p := range before {
		counted = append(counted, entry{cost: p.cost, stamp: max(now, p.follows)})
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
			return s.release(w, e.stamp)
		}
	}
	return 0
}

func plainRemembered(s *sheet, c Config, now int64, id string) (stamp int64) {
	for _, e := range slices.Backward(s.log) {
		if e.id == id {
			if e.refunded || e.stamp+c.keep().Microseconds() <= now {
				return 0
			}
			return e.stamp
		}
	}
	return 0
}

func TestTheSheetsRunningTotalsAreWhatWalksOverItSay(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("noon", 12*3600)
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.Int64Range(5, 40).Draw(rt, "limit")
		c := Config{Name: "q", Grace: time.Second, Windows: []Window{
			{Limit: limit, Per: 10 * time.Second}, {Limit: 3 * limit, Calendar: "day", Location: zone},
		}}
		l, err := NewLedger(c)
		if err != nil {
			rt.Fatal(err)
		}
		now := time.Date(2026, 11, 30, 11, 59, 0, 0, time.UTC)
		id := func() string { return fmt.Sprint("id", rapid.IntRange(0, 25).Draw(rt, "id")) }
		for range rapid.IntRange(5, 80).Draw(rt, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Microsecond, 300 * time.Millisecond, 3 * time.Second, 30 * time.Hour}).Draw(rt, "by"))
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				l.Refund(now, id())
			case 1:
				l.Leave(id())
			default:
				_, err := l.Charge(now, Request{ID: id(), Cost: rapid.Int64Range(1, 5).Draw(rt, "cost"), Priority: Priority(rapid.IntRange(0, 1).Draw(rt, "class"))})
				if err != nil {
					rt.Fatal(err)
				}
			}
			s, at := &l.s, now.UnixMicro()
			l.sweep(at)
			inter, sched := s.lines[Interactive].places, s.lines[Scheduled].places
			a := ahead{rapid.IntRange(0, len(inter)).Draw(rt, "interactive"), rapid.IntRange(0, len(sched)).Draw(rt, "scheduled")}
			before := slices.Concat(inter[:a.interactive], sched[:a.scheduled])
			var units int64
			for _, p := range before {
				units += p.cost
			}
			if got := s.waiting(a); got != units {
				rt.Fatalf("%d units wait ahead, want %d", got, units)
			}
			cost := rapid.Int64Range(1, 5).Draw(rt, "asked")
			for i, w := range c.Windows {
				if got, want := s.uses(c, at)[i].Used, plainUsed(s, w, at); got != want {
					rt.Fatalf("window %d uses %d, want %d", i, got, want)
				}
				if got, want := s.room(w, at, a, cost), plainRoom(s, w, at, before, cost); got != want {
					rt.Fatalf("window %d has room at %d, want %d", i, got, want)
				}
			}
			some := id()
			var stamp int64
			if e := s.remembered(c, at, some); e != nil {
				stamp = e.stamp
			}
			if want := plainRemembered(s, c, at, some); stamp != want {
				rt.Fatalf("%s is remembered from %d, want %d", some, stamp, want)
			}
			for class := range s.lines {
				for i, p := range s.lines[class].places {
					if got := s.lines[class].find(p.id); got != i {
						rt.Fatalf("%s is at %d, want %d", p.id, got, i)
					}
					if p.deadline <= at || p.deadline < s.lines[class].due {
						rt.Fatalf("a place whose deadline has passed, or one missed: %+v, due %d", p, s.lines[class].due)
					}
				}
			}
		}
	})
}

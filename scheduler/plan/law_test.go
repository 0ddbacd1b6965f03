package plan

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"feedwarden/quota"
	"feedwarden/scheduler"
)

// Whatever is planned: in no window do grants add up to more than the limit, and
// each unit is somebody's.
func TestPlannedGrantsKeepTheLawAndAddUp(t *testing.T) {
	t.Parallel()
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		q := quota.Config{Name: "q", Windows: []quota.Window{{
			Limit: rapid.Int64Range(10, 200).Draw(rt, "limit"),
			Per:   rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour}).Draw(rt, "per"),
		}}}
		if rapid.Bool().Draw(rt, "a day too") {
			q.Windows = append(q.Windows, quota.Window{Limit: rapid.Int64Range(10, 500).Draw(rt, "day"), Calendar: "day", Location: la})
		}
		from := rapid.SampledFrom([]time.Time{
			time.Date(2026, 3, 7, 13, 7, 0, 0, la), time.Date(2026, 10, 31, 22, 0, 0, 0, la), time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		}).Draw(rt, "from")
		to := from.Add(time.Duration(rapid.IntRange(1, 40).Draw(rt, "hours")) * time.Hour)
		var entries []scheduler.Entry
		var feeds []Feed
		for i := range rapid.IntRange(1, 8).Draw(rt, "feeds") {
			e := scheduler.Entry{
				Name:       fmt.Sprint("f", i),
				Expression: rapid.SampledFrom([]string{"*/15 * * * *", "@every 7m", "30 2 * * *", "5,35 6-22 * * *"}).Draw(rt, "expression"),
				Timezone:   rapid.SampledFrom([]string{"UTC", "America/Los_Angeles"}).Draw(rt, "zone"),
				Jitter:     rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(rt, "jitter"),
				Overlap:    rapid.SampledFrom([]string{"skip", "queue-one", "allow"}).Draw(rt, "overlap"),
			}
			entries = append(entries, e)
			feeds = append(feeds, Feed{
				Name: e.Name, Tick: e, Quota: "q", Cost: rapid.Int64Range(1, 10).Draw(rt, "cost"), Pages: rapid.IntRange(0, 3).Draw(rt, "pages"), TTL: time.Hour,
				MaxSnooze: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "max snooze"), Expires: rapid.SampledFrom([]time.Duration{0, 30 * time.Minute}).Draw(rt, "expires"),
			})
		}
		tables, err := scheduler.Timetables(entries)
		if err != nil {
			rt.Fatal(err)
		}
		var courses []*course
		for i, f := range feeds {
			courses = append(courses, newCourse(f, tables[i], from, to))
		}
		ledger, err := quota.NewLedger(q)
		if err != nil {
			rt.Fatal(err)
		}
		s := newSimulation(ledger, courses, from, to)
		if err := s.run(t.Context()); err != nil {
			rt.Fatal(err)
		}
		for _, w := range q.Windows {
			// Every window that ends with a grant, by a walk.
			for i, last := range s.grants {
				var sum int64
				for _, g := range s.grants[:i+1] {
					in := g.at > last.at-w.Per.Microseconds()
					if w.Calendar != "" {
						in = instant(g.at).In(la).Format(time.DateOnly) == instant(last.at).In(la).Format(time.DateOnly)
					}
					if in {
						sum += g.cost
					}
				}
				if sum > w.Limit {
					rt.Fatalf("%d units in a window of %d", sum, w.Limit)
				}
			}
		}
		out := summarize(q, s, time.UTC)
		var hourly, needed, byFeed, jobs int64
		for i, h := range out.Hours {
			hourly, needed = hourly+h.Granted, needed+h.Needed
			if h.Granted < 0 || !h.End.After(h.Start) || i > 0 && !h.Start.Equal(out.Hours[i-1].End) {
				rt.Fatalf("hours %+v", out.Hours)
			}
		}
		for i, k := range courses {
			o := k.outlook(&s.tracks[i])
			byFeed += o.Granted
			jobs += o.Needed
			if s.tracks[i].live != 0 || s.tracks[i].held != 0 {
				rt.Fatalf("jobs without an end: %+v", s.tracks[i])
			}
			if o.Granted > o.Needed {
				rt.Fatalf("%d units granted of %d needed", o.Granted, o.Needed)
			}
		}
		if out.Granted != hourly || out.Granted != byFeed || out.Needed != needed || out.Needed != jobs {
			rt.Fatalf("granted %d, by hours %d, by feeds %d; needed %d, by hours %d, by feeds %d", out.Granted, hourly, byFeed, out.Needed, needed, jobs)
		}
		for i, w := range out.Windows {
			if w.Granted.Units > q.Windows[i].Limit || w.Granted.Units > out.Granted || w.Needed.Units > out.Needed {
				rt.Fatalf("the fullest window %+v of %+v", w, out)
			}
		}
	})
}

func BenchmarkWeekOf80FeedsEveryMinute(b *testing.B) {
	c := Config{Quotas: []quota.Config{{Name: "q", Windows: []quota.Window{{Limit: 10_000, Per: 24 * time.Hour}, {Limit: 300, Per: time.Minute}}}}}
	for i := range 80 {
		e := scheduler.Entry{Name: fmt.Sprint("f", i), Expression: "* * * * *", Jitter: 20 * time.Second}
		c.Feeds = append(c.Feeds, Feed{Name: e.Name, Tick: e, Quota: "q", Cost: 1, TTL: 20 * time.Minute})
	}
	for b.Loop() {
		r, err := Run(b.Context(), c, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), 7*24*time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Quotas[0].Ticks), "ticks/op")
	}
}

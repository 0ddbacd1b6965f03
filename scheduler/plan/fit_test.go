package plan_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"feedwarden/quota"
	"feedwarden/scheduler"
	"feedwarden/scheduler/plan"
)

// drawQuota makes a quota that some of the drawn feeds are too much for.
func drawQuota(t *rapid.T, la *time.Location) quota.Config {
	q := quota.Config{Name: "youtube", Windows: []quota.Window{{
		Limit: rapid.SampledFrom([]int64{20, 50, 100, 300}).Draw(t, "limit"),
		Per:   rapid.SampledFrom([]time.Duration{time.Minute, 90 * time.Second, 10 * time.Minute, time.Hour, dayLong}).Draw(t, "per"),
	}}}
	switch rapid.IntRange(0, 3).Draw(t, "second window") {
	case 0:
		q.Windows = append(q.Windows, quota.Window{Limit: rapid.Int64Range(100, 500).Draw(t, "day"), Calendar: "day", Location: la})
	case 1:
		q.Windows = append(q.Windows, quota.Window{Limit: rapid.Int64Range(60, 400).Draw(t, "six hours"), Per: 6 * time.Hour})
	}
	if rapid.IntRange(0, 3).Draw(t, "reserved") == 0 {
		q.Reserve = q.Windows[0].Limit / 10
	}
	return q
}

// drawGroups makes a few entries, each of some feeds on one even schedule.
func drawGroups(t *rapid.T) []plan.Feed {
	var feeds []plan.Feed
	for g := range rapid.IntRange(1, 3).Draw(t, "groups") {
		n := rapid.SampledFrom([]int{1, 2, 5, 12}).Draw(t, "feeds")
		f := plan.Feed{
			Group: fmt.Sprint("g", g), Quota: "youtube", TTL: time.Minute,
			Cost: rapid.Int64Range(1, 3).Draw(t, "cost"), Pages: rapid.IntRange(0, 2).Draw(t, "pages"),
			Tick: scheduler.Entry{
				Expression: rapid.SampledFrom([]string{"*/5 * * * *", "* * * * *", "0 * * * *", "@every 97s", "@every 7m", "30 */2 * * *"}).Draw(t, "expression"),
				Timezone:   rapid.SampledFrom([]string{"UTC", "Asia/Kathmandu"}).Draw(t, "zone"),
				Jitter:     rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Second}).Draw(t, "jitter"),
				Overlap:    rapid.SampledFrom([]string{"skip", "queue-one", "allow"}).Draw(t, "overlap"),
			},
		}
		spread := rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Minute}).Draw(t, "spread")
		for i := range n {
			f.Name = fmt.Sprint(f.Group, "-", i)
			f.Index, f.Of = i, n
			f.Tick.Name, f.Tick.Phase = f.Name, scheduler.PhaseOf(spread, i, n)
			feeds = append(feeds, f)
		}
	}
	return feeds
}

// putBack is the feeds as their config reads once the proposal is written into it.
func putBack(feeds []plan.Feed, fit *plan.Fit) []plan.Feed {
	proposed := map[string]plan.FitFeed{}
	for _, f := range fit.Feeds {
		proposed[f.Name] = f
	}
	out := make([]plan.Feed, len(feeds))
	for i, f := range feeds {
		p := proposed[f.Name]
		f.TTL = p.TTL
		if p.Fits != p.Now {
			f.Tick.Expression = p.Expression
		}
		if fit.Spread && f.Of > 1 {
			f.Tick.Phase = scheduler.PhaseOf(p.Fits, f.Index, f.Of)
		}
		out[i] = f
	}
	return out
}

// longestWindow is a stretch that holds a whole one of each of the quota's windows.
func longestWindow(q quota.Config) (longest time.Duration) {
	for _, w := range q.Windows {
		if longest = max(longest, w.Per); w.Calendar != "" {
			longest = max(longest, 50*time.Hour)
		}
	}
	return longest
}

// What is proposed is put into the config: then nothing waits, however short a
// stretch of the windows was planned, and every ttl is kept.
func TestWhatWouldFitHoldsOncePutIntoTheConfig(t *testing.T) {
	t.Parallel()
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	froms := []time.Time{
		midnight, time.Date(2026, 3, 7, 21, 13, 27, 0, la), time.Date(2026, 10, 31, 22, 0, 0, 0, la), time.Date(2026, 11, 30, 2, 14, 59, 0, time.UTC),
	}
	rapid.Check(t, func(rt *rapid.T) {
		c := plan.Config{Quotas: []quota.Config{drawQuota(rt, la)}, Feeds: drawGroups(rt)}
		from := rapid.SampledFrom(froms).Draw(rt, "from")
		span := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 6 * time.Hour}).Draw(rt, "span")
		planned, err := plan.Run(t.Context(), c, from, span)
		if err != nil {
			rt.Fatal(err)
		}
		fit := planned.Quotas[0].Fit
		if fit == nil || !fit.Found {
			return
		}
		c.Feeds, c.NoFit = putBack(c.Feeds, fit), true
		for _, length := range []time.Duration{span, longestWindow(c.Quotas[0])} {
			again, err := plan.Run(t.Context(), c, from, length)
			if err != nil {
				rt.Fatal(err)
			}
			if q := again.Quotas[0]; q.Refused+q.Skipped > 0 || !again.Kept() {
				rt.Fatalf("from %s for %s: %d wait, %d are skipped, kept %v with %+v\nof %+v", from, length, q.Refused, q.Skipped, again.Kept(), fit, c)
			}
		}
	})
}

package plan_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"feedwarden/quota"
	"feedwarden/scheduler"
	"feedwarden/scheduler/plan"
)

const dayLong = 24 * time.Hour

var midnight = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// regions are n feeds of one entry.
func regions(n int, expression string, f plan.Feed) []plan.Feed {
	out := make([]plan.Feed, n)
	for i := range out {
		g := f
		g.Name, g.Group, g.Quota = fmt.Sprintf("trending-%03d", i), "trending", "youtube"
		g.Index, g.Of = i, n
		g.Tick.Name, g.Tick.Expression = g.Name, expression
		if g.Cost == 0 {
			g.Cost = 1
		}
		out[i] = g
	}
	return out
}

func run(t *testing.T, c plan.Config, from time.Time, span time.Duration) *plan.Result {
	t.Helper()
	r, err := plan.Run(t.Context(), c, from, span)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func youtube(windows ...quota.Window) []quota.Config {
	return []quota.Config{{Name: "youtube", Windows: windows}}
}

func perDay(limit int64) quota.Window { return quota.Window{Limit: limit, Per: dayLong} }

func TestQuotaThatIsGoneBeforeNineInTheMorning(t *testing.T) {
	t.Parallel()
	// 80 feeds × 4 an hour × 4 pages = 1280 units an hour: 10,000 are gone in the eighth.
	r := run(t, plan.Config{
		Quotas: youtube(perDay(10_000)),
		Feeds:  regions(80, "*/15 * * * *", plan.Feed{Pages: 4, TTL: 20 * time.Minute}),
	}, midnight, dayLong)
	q := r.Quotas[0]
	if q.Needed != 80*96*4 || q.Granted != 10_000 || q.Ticks != 80*96 {
		t.Errorf("needed %d, granted %d, %d ticks", q.Needed, q.Granted, q.Ticks)
	}
	if len(q.Hours) != 24 || q.Hours[0].Needed != 1280 || q.Hours[0].Granted != 1280 || q.Hours[12].Granted != 0 {
		t.Errorf("hours %+v", q.Hours)
	}
	gone := midnight.Add(7*time.Hour + 45*time.Minute)
	if q.DryTimes == 0 || !q.First.From.Equal(gone) || !q.First.Until.Truncate(time.Second).Equal(midnight.Add(dayLong)) {
		t.Errorf("dry %d times, first %+v, want from %s to midnight", q.DryTimes, q.First, gone)
	}
	if w := q.Windows[0]; w.Needed.Units != 80*96*4 || w.Granted.Units != 10_000 {
		t.Errorf("window %+v", w)
	}
	if r.Kept() {
		t.Error("every ttl is kept")
	}
	for _, f := range r.Feeds {
		// One tick is refused, and its job waits until the units come back; the others find it waiting.
		if f.Verdict != plan.ByQuota || len(f.Refused) != 1 || f.Skipped < 60 || f.WorstAge < 16*time.Hour || f.WorstAge > 17*time.Hour {
			t.Fatalf("%+v", f)
		}
	}
}

func TestWhatWouldFitIsTheLeastSlowingUnderWhichNothingWaits(t *testing.T) {
	t.Parallel()
	feeds := regions(80, "*/15 * * * *", plan.Feed{Pages: 2, TTL: 20 * time.Minute})
	c := plan.Config{Quotas: youtube(perDay(10_000)), Feeds: feeds}
	fit := run(t, c, midnight, dayLong).Quotas[0].Fit
	// 10,000 units are 62.5 ticks of 160 units: every 23m02s at the least, every 24 minutes in whole ones
	// since 23 leave a 63rd tick within the day.
	if fit == nil || !fit.Found || fit.Spread || len(fit.Feeds) != 80 {
		t.Fatalf("%+v", fit)
	}
	at := fit.Feeds[0]
	if at.Now != 15*time.Minute || at.Fits != 24*time.Minute || at.TTL != 24*time.Minute {
		t.Errorf("%+v", at)
	}
	for fits, want := range map[time.Duration]bool{at.Fits: true, at.Fits - time.Minute: false} {
		c.Feeds = regions(80, "@every "+fits.String(), plan.Feed{Pages: 2, TTL: fits})
		if r := run(t, c, midnight, dayLong); (r.Quotas[0].Refused == 0) != want || r.Kept() != want {
			t.Errorf("every %s: %d are refused, kept %v", fits, r.Quotas[0].Refused, r.Kept())
		}
	}
}

func TestTicksOfOneInstantWouldFitLaidOut(t *testing.T) {
	t.Parallel()
	r := run(t, plan.Config{
		Quotas: youtube(quota.Window{Limit: 30, Per: time.Minute}),
		Feeds:  regions(40, "*/15 * * * *", plan.Feed{TTL: 20 * time.Minute}),
	}, midnight, dayLong)
	q := r.Quotas[0]
	if q.Refused != 10*96 || q.DryTimes != 96 || q.Fit == nil || !q.Fit.Found || !q.Fit.Spread || q.Fit.Feeds[0].Fits != 15*time.Minute {
		t.Errorf("refused %d, dry %d times, fit %+v", q.Refused, q.DryTimes, q.Fit)
	}
	if !r.Kept() {
		t.Error("a minute's wait breaks a ttl of 20 minutes")
	}
}

func TestScheduleAloneIsLongerThanItsTTL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expression string
		ttl        time.Duration
		assumed    bool
		want       plan.Verdict
	}{
		{"0 * * * *", 20 * time.Minute, false, plan.BySchedule},
		{"0 * * * *", 20 * time.Minute, true, plan.Keeps},
		{"0 * * * *", time.Hour, false, plan.Keeps},
		{"7,37 6-22 * * *", 45 * time.Minute, false, plan.ByPause},
		{"0 0 1 * *", dayLong, false, plan.BySchedule},
		{"0 * * * *", 0, false, plan.Keeps},
	} {
		f := plan.Feed{Name: "news", TTL: c.ttl, TTLAssumed: c.assumed, Tick: scheduler.Entry{Name: "news", Expression: c.expression}}
		r := run(t, plan.Config{Feeds: []plan.Feed{f}}, midnight.Add(7*time.Minute), dayLong)
		if got := r.Feeds[0].Verdict; got != c.want {
			t.Errorf("%s with ttl %s: %s, want %s: %+v", c.expression, c.ttl, got, c.want, r.Feeds[0])
		}
	}
}

func TestDaysOf23And25HoursHaveTheirHoursAndTicks(t *testing.T) {
	t.Parallel()
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		day   time.Time
		hours int
	}{
		{time.Date(2026, 3, 8, 0, 0, 0, 0, la), 23},
		{time.Date(2026, 11, 1, 0, 0, 0, 0, la), 25},
		{time.Date(2026, 12, 1, 0, 0, 0, 0, la), 24},
	} {
		span := c.day.AddDate(0, 0, 1).Sub(c.day)
		feeds := regions(10, "*/15 * * * *", plan.Feed{TTL: 20 * time.Minute})
		for i := range feeds {
			feeds[i].Tick.Timezone = "America/Los_Angeles"
		}
		q := run(t, plan.Config{Quotas: youtube(quota.Window{Limit: 1_000, Calendar: "day", Location: la}, perDay(10_000)), Feeds: feeds}, c.day, span).Quotas[0]
		if len(q.Hours) != c.hours || q.Zone != la {
			t.Fatalf("%s has %d hours in %s, want %d", c.day, len(q.Hours), q.Zone, c.hours)
		}
		for _, h := range q.Hours {
			if h.Needed != 40 || h.End.Sub(h.Start) != time.Hour {
				t.Errorf("%+v", h)
			}
		}
		if full := q.Windows[0].Needed; full.Units != int64(40*c.hours) || full.To.Sub(full.From) != span {
			t.Errorf("the day's window %+v", full)
		}
	}
}

// On the day of 25 hours the trailing window alone lets the limit be spent twice.
func TestTheTrailingDayAloneGrantsTooMuchOnTheDayOf25Hours(t *testing.T) {
	t.Parallel()
	la, _ := time.LoadLocation("America/Los_Angeles")
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, la)
	feed := plan.Feed{Name: "a", Quota: "youtube", Cost: 10_000, TTL: 48 * time.Hour, Tick: scheduler.Entry{Name: "a", Expression: "0 0,23 * * *", Timezone: "America/Los_Angeles", Overlap: "allow"}}
	calendar := quota.Window{Limit: 10_000, Calendar: "day", Location: la}
	for want, windows := range map[int64][]quota.Window{20_000: {perDay(10_000)}, 10_000: {perDay(10_000), calendar}} {
		q := run(t, plan.Config{Quotas: youtube(windows...), Feeds: []plan.Feed{feed}}, day, 25*time.Hour).Quotas[0]
		if q.Granted != want {
			t.Errorf("%d granted under %d windows, want %d", q.Granted, len(windows), want)
		}
	}
}

func TestOverlapMaxSnoozeAndExpiryEndWhatWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		feed                              plan.Feed
		refused, skipped, failed, expired int
	}{
		{plan.Feed{Tick: scheduler.Entry{Overlap: "skip"}}, 1, 2, 0, 0},
		{plan.Feed{Tick: scheduler.Entry{Overlap: "queue-one", CatchUp: scheduler.CatchUp{Within: 5 * time.Hour}}}, 2, 1, 0, 0},
		{plan.Feed{Tick: scheduler.Entry{Overlap: "allow"}}, 3, 0, 0, 0},
		{plan.Feed{MaxSnooze: time.Hour}, 3, 0, 2, 0},
		{plan.Feed{Expires: time.Hour}, 1, 2, 0, 1},
	} {
		// One unit in four hours, asked for every hour.
		feeds := regions(1, "0 * * * *", c.feed)
		r := run(t, plan.Config{Quotas: youtube(quota.Window{Limit: 1, Per: 4 * time.Hour}), Feeds: feeds}, midnight, 4*time.Hour)
		if f := r.Feeds[0]; len(f.Refused) != c.refused || f.Skipped != c.skipped || f.Failed != c.failed || f.Expired != c.expired {
			t.Errorf("%+v: %+v", c.feed, f)
		}
	}
}

func TestReserveIsNotForSchedules(t *testing.T) {
	t.Parallel()
	quotas := youtube(perDay(100))
	quotas[0].Reserve = 40
	q := run(t, plan.Config{Quotas: quotas, Feeds: regions(1, "*/10 * * * *", plan.Feed{})}, midnight, dayLong).Quotas[0]
	if q.Granted != 60 || q.Pace != 2.5 || q.Windows[0].Reserve != 40 {
		t.Errorf("%+v", q)
	}
}

func TestSpanIsCutShortOrRefused(t *testing.T) {
	t.Parallel()
	c := plan.Config{Quotas: youtube(perDay(100)), Feeds: regions(10, "@every 1s", plan.Feed{})}
	_, err := plan.Run(t.Context(), c, midnight, 300*dayLong)
	var many *plan.TooManyTicksError
	if !errors.As(err, &many) || many.Ticks < 250_000_000 {
		t.Errorf("%v", err)
	}
	c.MostTicks = 1000
	r, err := plan.Run(t.Context(), c, midnight, dayLong)
	if err != nil || !r.Cut || r.To.Sub(r.From) > 2*time.Minute || r.Quotas[0].Ticks < 900 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFaultsAreSaidAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := plan.Run(t.Context(), plan.Config{
		Quotas: []quota.Config{{Name: "empty"}},
		Feeds:  []plan.Feed{{Name: "a", Quota: "nosuch", Tick: scheduler.Entry{Name: "a", Expression: "@daily"}}},
	}, midnight, dayLong)
	if !errors.Is(err, quota.ErrUnknownQuota) || err == nil {
		t.Errorf("%v", err)
	}
	_, err = plan.Run(t.Context(), plan.Config{Feeds: []plan.Feed{{Name: "a", Tick: scheduler.Entry{Name: "a", Expression: "* *"}}}}, midnight, dayLong)
	var bad *scheduler.ExpressionError
	if !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plan.Run(ctx, plan.Config{Quotas: youtube(perDay(1)), Feeds: regions(1, "@daily", plan.Feed{})}, midnight, dayLong); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

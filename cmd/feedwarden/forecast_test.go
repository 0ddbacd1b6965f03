package main

import (
	"testing"
	"time"

	"feedwarden/quota"
	"feedwarden/scheduler"
	"feedwarden/scheduler/plan"
	"feedwarden/web"
)

func TestForecastGoesOnFromThePastAndFromTheConfigThatHolds(t *testing.T) {
	config := func(limit int64) plan.Config {
		return plan.Config{
			Quotas: []quota.Config{{Name: "q", Windows: []quota.Window{{Limit: limit, Per: 24 * time.Hour}}}},
			Feeds: []plan.Feed{{
				Name: "a", Quota: "q", Cost: 10, TTL: time.Hour,
				Tick: scheduler.Entry{Name: "a", Expression: "*/15 * * * *", Feed: "a", Overlap: scheduler.OverlapSkip},
			}},
		}
	}
	f := newForecaster(settings{plan: config(1_000)})
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ask := func(past ...web.Point) *web.Forecast {
		t.Helper()
		r, err := f.Forecast(t.Context(), map[string][]web.Point{"q": past}, now, 24*time.Hour, 15*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := ask(); r.Quotas[0].Granted != 960 || len(r.Starved) != 0 || len(r.Quotas[0].Feeds[0].Slots) != 96 {
		t.Errorf("with nothing spent: %+v", r)
	}
	r := ask(web.Point{Start: now.Add(-30 * time.Minute), Units: 900, RefundedUnits: 0})
	if q := r.Quotas[0]; q.Granted >= 960 || q.DryTimes == 0 || len(r.Starved) != 1 || r.Starved[0].Because != "quota" {
		t.Errorf("with 900 of 1000 spent: %+v", r)
	}
	f.set(config(10_000))
	if r := ask(web.Point{Start: now.Add(-30 * time.Minute), Units: 900}); r.Quotas[0].Granted != 960 {
		t.Errorf("after a reload with a higher limit: %+v", r.Quotas[0])
	}
}

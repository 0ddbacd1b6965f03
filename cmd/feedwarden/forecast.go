package main

import (
	"context"
	"sync/atomic"
	"time"

	"feedwarden/scheduler/plan"
	"feedwarden/web"
)

// forecastTicks bounds what a page simulates: about a second's work.
const forecastTicks = 300_000

// forecaster plans the coming hours of the config that holds, for the pages.
type forecaster struct{ config atomic.Pointer[plan.Config] }

func newForecaster(s settings) *forecaster {
	f := &forecaster{}
	f.set(s.plan)
	return f
}

func (f *forecaster) set(c plan.Config) { f.config.Store(&c) }

// Forecast goes on from what the quotas granted in the past day.
func (f *forecaster) Forecast(ctx context.Context, past map[string][]web.Point, from time.Time, span, slot time.Duration) (*web.Forecast, error) {
	c := *f.config.Load()
	c.MostTicks, c.Slot, c.NoFit = forecastTicks, slot, true
	c.Past = map[string][]plan.Spent{}
	for name, points := range past {
		c.Past[name] = spent(points, from)
	}
	r, err := plan.Run(ctx, c, from, span)
	if err != nil {
		return nil, err
	}
	out := &web.Forecast{From: r.From, To: r.To, Slot: slot, Cut: r.Cut}
	for _, q := range r.Quotas {
		v := web.QuotaForecast{Name: q.Name, Ticks: q.Ticks, Waits: q.Refused, Skipped: q.Skipped, Needed: q.Needed, Granted: q.Granted, DryTimes: q.DryTimes}
		if q.DryTimes > 0 {
			v.DryFrom, v.DryUntil = q.First.From, q.First.Until
		}
		for _, o := range r.Feeds {
			if o.Quota == q.Name && o.Granted > 0 {
				v.Feeds = append(v.Feeds, web.FeedUnits{Feed: o.Name, Units: o.Granted, Slots: o.Slots})
			}
		}
		out.Quotas = append(out.Quotas, v)
	}
	for _, o := range r.Feeds {
		if o.Verdict != plan.Keeps {
			out.Starved = append(out.Starved, web.StarvedFeed{Feed: o.Name, Quota: o.Quota, WorstAge: o.WorstAge, TTL: o.TTL, Because: string(o.Verdict)})
		}
	}
	return out, nil
}

// spent lays out a quota's past quarters of an hour; the present one ends now.
func spent(points []web.Point, now time.Time) []plan.Spent {
	const quarter = 15 * time.Minute
	var out []plan.Spent
	for _, p := range points {
		to := p.Start.Add(quarter)
		if to.After(now) {
			to = now
		}
		if units := p.Units - p.RefundedUnits; units > 0 && p.Start.Before(to) {
			out = append(out, plan.Spent{From: p.Start, To: to, Units: units})
		}
	}
	return out
}

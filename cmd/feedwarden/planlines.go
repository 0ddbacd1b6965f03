package main

import (
	"time"

	"feedwarden/scheduler/plan"
)

// mostWaits bounds the ticks that a feed's line lists.
const mostWaits = 1000

type spanView struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

type dryView struct {
	Times   int      `json:"times"`
	First   spanView `json:"first"`
	Longest spanView `json:"longest"`
}

type fullView struct {
	Units int64      `json:"units"`
	From  *time.Time `json:"from"`
	To    *time.Time `json:"to"`
}

type planWindowView struct {
	Limit    int64    `json:"limit"`
	PerMS    int64    `json:"per_ms"`
	Calendar string   `json:"calendar"`
	Needed   fullView `json:"needed"`
	Granted  fullView `json:"granted"`
}

type hourView struct {
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Needed  int64     `json:"needed"`
	Granted int64     `json:"granted"`
}

type fitFeedView struct {
	Name    string `json:"name"`
	EveryMS int64  `json:"every_ms"`
	FitsMS  int64  `json:"fits_ms"`
	// Schedule is what to write; "" where it stays, or ticks are to be left out of it.
	Schedule string `json:"schedule"`
	TTLMS    int64  `json:"ttl_ms"`
}

type fitView struct {
	Found  bool          `json:"found"`
	Spread bool          `json:"spread"`
	Feeds  []fitFeedView `json:"feeds"`
}

type planQuotaView struct {
	Kind    string           `json:"kind"`
	Name    string           `json:"name"`
	Zone    string           `json:"zone"`
	From    time.Time        `json:"from"`
	To      time.Time        `json:"to"`
	Feeds   int              `json:"feeds"`
	Ticks   int              `json:"ticks"`
	Refused int              `json:"refused"`
	Skipped int              `json:"skipped"`
	Needed  int64            `json:"needed"`
	Granted int64            `json:"granted"`
	PerHour float64          `json:"per_hour"`
	Dry     *dryView         `json:"dry"`
	Windows []planWindowView `json:"windows"`
	Hours   []hourView       `json:"hours"`
	Fits    *fitView         `json:"fits"`
}

type waitView struct {
	Tick   time.Time `json:"tick"`
	Until  time.Time `json:"until"`
	WaitMS int64     `json:"wait_ms"`
	End    plan.End  `json:"end"`
}

type planFeedView struct {
	Kind          string     `json:"kind"`
	Name          string     `json:"name"`
	Quota         string     `json:"quota"`
	Ticks         int        `json:"ticks"`
	Refused       int        `json:"refused"`
	Waits         []waitView `json:"waits"`
	Skipped       int        `json:"skipped"`
	Missed        int        `json:"missed"`
	Failed        int        `json:"failed"`
	Expired       int        `json:"expired"`
	Needed        int64      `json:"needed"`
	Granted       int64      `json:"granted"`
	EveryMS       int64      `json:"every_ms"`
	LongestGapMS  int64      `json:"longest_gap_ms"`
	LongestWaitMS int64      `json:"longest_wait_ms"`
	WorstAgeMS    int64      `json:"worst_age_ms"`
	WorstFrom     *time.Time `json:"worst_from"`
	WorstTo       *time.Time `json:"worst_to"`
	TTLMS         int64      `json:"ttl_ms"`
	KeepsTTL      bool       `json:"keeps_ttl"`
	Because       string     `json:"because"`
}

// planLines prints the quotas, then the feeds.
func (e *env) planLines(r *plan.Result) error {
	for _, q := range r.Quotas {
		if err := e.line(planQuota(r, q)); err != nil {
			return err
		}
	}
	for _, f := range r.Feeds {
		if err := e.line(planFeed(f)); err != nil {
			return err
		}
	}
	return nil
}

func planQuota(r *plan.Result, q plan.Quota) planQuotaView {
	at := func(t time.Time) time.Time { return t.In(q.Zone) }
	full := func(f plan.Full) fullView {
		v := fullView{Units: f.Units}
		if !f.To.IsZero() {
			from, to := at(f.From), at(f.To)
			v.From, v.To = &from, &to
		}
		return v
	}
	v := planQuotaView{
		Kind: "quota", Name: q.Name, Zone: q.Zone.String(), From: at(r.From), To: at(r.To), Feeds: q.Feeds, Ticks: q.Ticks,
		Refused: q.Refused, Skipped: q.Skipped, Needed: q.Needed, Granted: q.Granted, PerHour: q.Pace,
		Windows: []planWindowView{}, Hours: []hourView{},
	}
	if q.DryTimes > 0 {
		v.Dry = &dryView{q.DryTimes, spanView{at(q.First.From), at(q.First.Until)}, spanView{at(q.Most.From), at(q.Most.Until)}}
	}
	for _, w := range q.Windows {
		v.Windows = append(v.Windows, planWindowView{w.Limit, w.Per.Milliseconds(), w.Calendar, full(w.Needed), full(w.Granted)})
	}
	for _, h := range q.Hours {
		v.Hours = append(v.Hours, hourView{at(h.Start), at(h.End), h.Needed, h.Granted})
	}
	if q.Fit != nil {
		v.Fits = &fitView{Found: q.Fit.Found, Spread: q.Fit.Spread, Feeds: []fitFeedView{}}
		for _, f := range q.Fit.Feeds {
			v.Fits.Feeds = append(v.Fits.Feeds, fitFeedView{f.Name, f.Now.Milliseconds(), f.Fits.Milliseconds(), f.Expression, f.TTL.Milliseconds()})
		}
	}
	return v
}

func planFeed(f plan.Outlook) planFeedView {
	v := planFeedView{
		Kind: "feed", Name: f.Name, Quota: f.Quota, Ticks: f.Ticks, Refused: len(f.Refused), Waits: []waitView{}, Skipped: f.Skipped,
		Missed: f.Missed, Failed: f.Failed, Expired: f.Expired, Needed: f.Needed, Granted: f.Granted,
		EveryMS: f.Interval.Milliseconds(), LongestGapMS: f.Longest.Milliseconds(), LongestWaitMS: f.LongestWait.Milliseconds(),
		WorstAgeMS: f.WorstAge.Milliseconds(), TTLMS: f.TTL.Milliseconds(), KeepsTTL: f.Verdict == plan.Keeps,
	}
	if f.WorstAge > 0 {
		v.WorstFrom, v.WorstTo = &f.WorstFrom, &f.WorstTo
	}
	if !v.KeepsTTL {
		v.Because = string(f.Verdict)
	}
	for _, w := range f.Refused[:min(len(f.Refused), mostWaits)] {
		v.Waits = append(v.Waits, waitView{w.Tick, w.Until, w.Until.Sub(w.Tick).Milliseconds(), w.End})
	}
	return v
}

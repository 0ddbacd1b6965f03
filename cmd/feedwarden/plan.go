package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"feedwarden/internal/config"
	"feedwarden/internal/units"
	"feedwarden/scheduler/plan"
)

type planCmd struct {
	From string `help:"Start at this instant, RFC 3339. Default: now." placeholder:"INSTANT"`
	For  string `help:"Look so far ahead." default:"24h" placeholder:"DUR"`
}

func (planCmd) Help() string {
	return `Works from the config alone: no Redis, nothing is sent. Quotas are taken to be empty at the start, every
fetch to succeed at once, and nobody but the schedules to ask. Exit 3 when a feed cannot keep its ttl.

Bars show an hour's units (longer stretches where there are many hours): █ granted, ░ needed and not granted
then, │ the pace that the quota can give for ever.

With --json one line a quota, then one a feed; instants are RFC 3339:
  {"kind":"quota","name","zone","from","to","feeds","ticks","refused","skipped","needed","granted",
   "per_hour", "dry":{"times","first":{"from","until"},"longest":{…}} or null,
   "windows":[{"limit","per_ms","calendar","needed":{"units","from","to"},"granted":{…}}],
   "hours":[{"start","end","needed","granted"}],
   "fits":{"found","spread","feeds":[{"name","every_ms","fits_ms","schedule","ttl_ms"}]} or null}
  {"kind":"feed","name","quota","ticks","refused","waits":[{"tick","until","wait_ms","end"}],"skipped","missed",
   "failed","expired","needed","granted","every_ms","longest_gap_ms","longest_wait_ms",
   "worst_age_ms","worst_from","worst_to","ttl_ms","keeps_ttl","because":"" or "quota", "schedule", "pause"}
A quota's refused is its number of ticks that wait for a second or more; its needed is what all ticks would take. The
waits of a feed end granted, failed (max_snooze) or expired; at most 1000 are listed.`
}

// longestPlan bounds --for.
const longestPlan = 366 * 24 * time.Hour

func (c *planCmd) Run(e *env) error {
	from := time.Now().Truncate(time.Second)
	if c.From != "" {
		t, err := time.Parse(time.RFC3339, c.From)
		if err != nil {
			return usageError("--from %s: an instant of RFC 3339 is wanted, such as 2026-11-30T08:00:00Z", c.From)
		}
		from = t
	}
	span, err := units.ParseDuration(c.For)
	if err != nil || span <= 0 || span > longestPlan {
		return usageError("--for %s: a duration such as 24h or 7d is wanted, 366d at most", c.For)
	}
	// Redis's clock begins in 1970, and what waits is promised up to a year ahead.
	if year := from.UTC().Year(); year < 1970 || from.Add(span).UTC().Year() > 9998 {
		return usageError("--from %s: an instant from 1970 on is wanted, and an end before 9999", from.Format(time.RFC3339))
	}
	f, err := e.load()
	if err != nil {
		return err
	}
	r, err := plan.Run(e.ctx, planConfig(f), from, span)
	var many *plan.TooManyTicksError
	if errors.As(err, &many) {
		return usageError("--for %s: %v; ask for less", c.For, many)
	}
	if err != nil {
		return err
	}
	if e.json {
		err = e.planLines(r)
	} else {
		_, err = fmt.Fprint(e.out, newPlanPage(e, r))
	}
	if err != nil {
		return err
	}
	if !r.Kept() {
		return &exitError{exitOver, errors.New(broken(r.Feeds))}
	}
	return nil
}

// broken says in a line which feeds cannot keep their ttl.
func broken(feeds []plan.Outlook) string {
	var names []string
	for _, f := range feeds {
		if f.Verdict != plan.Keeps {
			names = append(names, f.Name)
		}
	}
	text := fmt.Sprintf("%s cannot keep %s ttl", count(len(names), "feed"), map[bool]string{true: "its", false: "their"}[len(names) == 1])
	const most = 3
	if len(names) > most {
		return text + ": " + strings.Join(names[:most], ", ") + ", …"
	}
	return text + ": " + strings.Join(names, ", ")
}

// checkTicks bounds what check simulates: a fraction of a second.
const checkTicks = 200_000

// checkSpan is how far check looks ahead: as long as the longest window, so that
// what is too much for it shows. Two days hold a whole one, whenever they begin.
func checkSpan(f *config.File) time.Duration {
	span := 24 * time.Hour
	for _, q := range f.Quotas {
		for _, w := range q.Windows {
			span = max(span, w.Per)
			if w.Calendar != "" {
				span = max(span, 50*time.Hour)
			}
		}
	}
	return min(span, 32*24*time.Hour)
}

// promises is what check says of a config that is well formed: the feeds that
// cannot keep their ttl, and those that pause by their own schedule.
func promises(e *env, f *config.File) (breaks, pauses []plan.Outlook, err error) {
	c := planConfig(f)
	c.MostTicks, c.NoFit = checkTicks, true
	r, err := plan.Run(e.ctx, c, time.Now().Truncate(time.Minute), checkSpan(f))
	if err != nil {
		return nil, nil, err
	}
	for _, o := range r.Feeds {
		switch o.Verdict {
		case plan.ByPause:
			pauses = append(pauses, o)
		case plan.ByQuota, plan.BySchedule:
			breaks = append(breaks, o)
		}
	}
	return breaks, pauses, nil
}

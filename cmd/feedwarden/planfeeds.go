package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"feedwarden/internal/units"
	"feedwarden/scheduler/plan"
)

// planRow is the feeds of one entry together: what they add up to, and the worst
// of each.
type planRow struct {
	group, quota            string
	feeds, bad              int
	ticks, refused, skipped int
	lost                    int // failed, expired, missed
	every, wait, age, ttl   time.Duration
	verdict                 plan.Verdict
}

func planRows(feeds []plan.Outlook) []*planRow {
	var rows []*planRow
	for _, f := range feeds {
		i := slices.IndexFunc(rows, func(r *planRow) bool { return r.group == f.Group && r.quota == f.Quota })
		if i < 0 {
			i = len(rows)
			rows = append(rows, &planRow{group: f.Group, quota: f.Quota, ttl: f.TTL, verdict: plan.Keeps})
		}
		r := rows[i]
		r.feeds++
		r.ticks += f.Ticks
		r.refused += len(f.Refused)
		r.skipped += f.Skipped
		r.lost += f.Failed + f.Expired + f.Missed
		r.every, r.wait, r.age = max(r.every, f.Interval), max(r.wait, f.LongestWait), max(r.age, f.WorstAge)
		if f.Verdict != plan.Keeps {
			r.bad++
			if r.verdict != plan.ByQuota {
				r.verdict = f.Verdict
			}
		}
	}
	return rows
}

// feeds is the table of the feeds, a row for each entry of the file.
func (p *planPage) feeds() {
	rows := planRows(p.r.Feeds)
	if len(rows) == 0 {
		return
	}
	lost := slices.ContainsFunc(rows, func(r *planRow) bool { return r.lost > 0 })
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	header := []string{"FEED", "EVERY", "TICKS", "WAIT", "SKIP", "FOR", "AGE", "TTL", ""}
	if lost {
		header = slices.Insert(header, 5, "LOST")
	}
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, r := range rows {
		every := "—"
		if r.every > 0 {
			every = units.FormatDuration(r.every)
		}
		cells := []string{named(r.group, r.feeds), every, fmt.Sprint(r.ticks), fmt.Sprint(r.refused), fmt.Sprint(r.skipped), span(r.wait), span(r.age), units.FormatDuration(r.ttl), r.says()}
		if lost {
			cells = slices.Insert(cells, 5, fmt.Sprint(r.lost))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	_ = tw.Flush()
	p.line("")
	for i, line := range slices.Collect(strings.Lines(text.String())) {
		line = clip(strings.TrimRight(line, " \n"), p.width)
		switch {
		case i == 0:
			line = p.paint(dim, line)
		case rows[i-1].bad > 0:
			line = p.paint(red, line)
		}
		p.line("%s", line)
	}
	p.line("%s", p.paint(dim, "WAIT for units, FOR at most so long; SKIP by overlap; AGE at worst."))
	if lost {
		p.line("%s", p.paint(dim, "LOST by max_snooze, expires or catch_up.within."))
	}
}

// says is the verdict in a word or two.
func (r *planRow) says() string {
	text := map[plan.Verdict]string{
		plan.Keeps: "✓", plan.ByQuota: "✗ quota", plan.BySchedule: "✗ schedule", plan.ByPause: "✗ pause",
	}[r.verdict]
	if r.bad > 0 && r.bad < r.feeds {
		text += fmt.Sprintf(" (%d)", r.bad)
	}
	return text
}

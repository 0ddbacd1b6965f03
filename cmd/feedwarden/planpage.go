package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"feedwarden/internal/units"
	"feedwarden/scheduler/plan"
)

// planPage is a plan for a person.
type planPage struct {
	r      *plan.Result
	width  int
	colour bool
	b      strings.Builder
}

const (
	bold = "1"

	narrowest, widest = 50, 120
	mostRows          = 26
	mostCharts        = 3
)

func newPlanPage(e *env, r *plan.Result) *planPage {
	width := e.width
	if width <= 0 {
		width = 80
	}
	return &planPage{r: r, width: min(max(width, narrowest), widest), colour: e.colour}
}

// String is the page: the answer first, then each quota, then the feeds.
func (p *planPage) String() string {
	p.headline()
	var idle []string
	var charged []plan.Quota
	for _, q := range p.r.Quotas {
		if q.Ticks == 0 {
			idle = append(idle, q.Name)
		} else {
			charged = append(charged, q)
		}
	}
	for _, q := range charged {
		p.quota(q, len(charged))
	}
	p.feeds()
	if len(idle) > 0 {
		text := "No schedule is charged to " + strings.Join(idle, ", ") + "."
		if len(text) > p.width {
			text = "No schedule is charged to\n  " + strings.Join(idle, "\n  ")
		}
		p.line("\n%s", text)
	}
	return p.b.String()
}

func (p *planPage) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (p *planPage) paint(code, text string) string {
	if !p.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *planPage) headline() {
	bad, pausing := 0, 0
	for _, f := range p.r.Feeds {
		if f.Verdict != plan.Keeps {
			bad++
		}
		if f.Verdict == plan.ByPause {
			pausing++
		}
	}
	span := fmt.Sprintf("from %s for %s", p.r.From.Local().Format("Mon 2 Jan 2006 15:04 MST"), units.FormatDuration(p.r.To.Sub(p.r.From)))
	switch {
	case len(p.r.Feeds) == 0:
		p.line("No feed has a schedule: nothing is planned.")
	case bad == 0:
		p.line("%s, %s.", p.paint(green, "✓ Every feed keeps its ttl"), span)
	default:
		p.line("%s, %s.", p.paint(red, fmt.Sprintf("✗ %d of %s cannot keep their ttl", bad, count(len(p.r.Feeds), "feed"))), span)
	}
	if pausing > 0 {
		p.line("  %d only because their own schedule pauses.", pausing)
	}
}

// quota is one quota. With many of them only those in trouble are drawn.
func (p *planPage) quota(q plan.Quota, charged int) {
	p.line("")
	p.line("%s  %s, %s", p.paint(bold, "quota "+q.Name), count(q.Feeds, "feed"), count(q.Ticks, "tick"))
	clock := func(t time.Time) string {
		layout := "15:04"
		if !sameDay(t.In(q.Zone), p.r.From.In(q.Zone)) {
			layout = "Mon 2 Jan 15:04"
		}
		return t.In(q.Zone).Format(layout)
	}
	if q.DryTimes > 0 {
		gone := fmt.Sprintf("✗ gone at %s; next units at %s, %s later", clock(q.First.From), clock(q.First.Until), span(q.First.Until.Sub(q.First.From)))
		p.line("  %s", p.paint(red, gone))
		switch {
		case q.DryTimes > 1 && q.Most != q.First:
			p.line("    without units %s in all; for longest from %s, for %s", times(q.DryTimes), clock(q.Most.From), span(q.Most.Until.Sub(q.Most.From)))
		case q.DryTimes > 1:
			p.line("    without units %s more, never for longer", times(q.DryTimes-1))
		}
		p.line("    ticks: %d wait for units, %d are skipped while the job before waits", q.Refused, q.Skipped)
	} else {
		p.line("  %s", p.paint(green, "✓ enough: no tick waits"))
	}
	for _, w := range q.Windows {
		per := cmp.Or(w.Calendar, units.FormatDuration(w.Per))
		kept := ""
		if w.Reserve > 0 && w.Granted.Units == w.Limit-w.Reserve {
			kept = fmt.Sprintf("; %d are the reserve", w.Reserve)
		}
		p.line("  %-16s fullest: needs %d (%s), gets %d%s", fmt.Sprintf("%d per %s", w.Limit, per), w.Needed.Units, percent(w.Needed.Units, w.Limit), w.Granted.Units, kept)
	}
	if q.DryTimes > 0 || charged <= mostCharts {
		p.chart(q)
	}
	p.fit(q)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return count(n, "time")
}

func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// percent is n's part of a whole; one that no person would read as a percentage is
// said as how many times it is.
func percent(n, of int64) string {
	times := float64(n) / float64(of)
	if times >= 10 {
		return fmt.Sprintf("%.0f times", math.Floor(times))
	}
	return fmt.Sprintf("%.0f%%", 100*times)
}

// chart draws the hours, several to a row where there are many.
func (p *planPage) chart(q plan.Quota) {
	rows, hours := gather(q.Hours)
	pace := q.Pace * float64(hours)
	top := 1.0
	texts := make([]string, len(rows))
	room := 0
	for i, h := range rows {
		top = max(top, float64(max(h.Needed, h.Granted)))
		texts[i] = fmt.Sprint(h.Granted)
		if h.Granted != h.Needed {
			texts[i] = fmt.Sprintf("%d of %d", h.Granted, h.Needed)
		}
		room = max(room, len(texts[i]))
	}
	top = max(top, pace)
	const label = 12
	width := p.width - 2 - label - 2 - 1 - room
	cells := func(n float64) int { return int(math.Round(n / top * float64(width))) }
	mark := cells(pace)
	zone := q.Zone.String()
	if q.Zone == time.Local {
		zone = rows[0].Start.Format("MST")
	}
	per := "an hour"
	if hours > 1 {
		per = fmt.Sprintf("in %dh", hours)
	}
	p.line("")
	p.line("  %s", p.paint(dim, fmt.Sprintf("units %s, %s: █ granted  ░ needed  │ even pace, %s", per, zone, paceText(pace))))
	var last time.Time
	for i, h := range rows {
		text := fmt.Sprintf("%*s", label, hourLabel(h.Start, last))
		last = h.Start
		granted, needed := cells(float64(h.Granted)), cells(float64(h.Needed))
		if h.Granted > 0 {
			granted = max(granted, 1)
		}
		bar := make([]rune, width)
		for c := range bar {
			switch {
			case c == mark && mark < width, c == width-1 && mark == width:
				bar[c] = '│'
			case c < granted:
				bar[c] = '█'
			case c < needed:
				bar[c] = '░'
			default:
				bar[c] = ' '
			}
		}
		p.line("  %s  %s %*s", text, p.paintBar(bar), room, texts[i])
	}
}

// paceText has four digits, or as many as it takes.
func paceText(pace float64) string {
	if pace >= 1000 {
		return fmt.Sprintf("%.0f", pace)
	}
	return fmt.Sprintf("%.4g", pace)
}

// paintBar colours each run of equal cells.
func (p *planPage) paintBar(bar []rune) string {
	colours := map[rune]string{'█': green, '░': red, '│': dim}
	var b strings.Builder
	for from, to := 0, 0; from < len(bar); from = to {
		for to = from; to < len(bar) && bar[to] == bar[from]; {
			to++
		}
		run := string(bar[from:to])
		if colour, ok := colours[bar[from]]; ok {
			run = p.paint(colour, run)
		}
		b.WriteString(run)
	}
	return b.String()
}

// hourLabel is an hour's label: the day where it changes, the zone's name where its
// offset does.
func hourLabel(t, last time.Time) string {
	clock := t.Format("15:04")
	switch name, offset := t.Zone(); {
	case last.IsZero() || !sameDay(t, last):
		return t.Format("2 Jan ") + clock
	default:
		if _, before := last.Zone(); before != offset {
			return name + " " + clock
		}
	}
	return clock
}

// gather puts hours together until they fit on a screen: by the clock's 2, 3, 4,
// 6, 8 or 12 hours, or by days.
func gather(all []plan.Hour) (rows []plan.Hour, hours int) {
	for _, hours = range []int{1, 2, 3, 4, 6, 8, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24} {
		rows = nil
		first := all[0].Start
		for _, h := range all {
			n := len(rows)
			if n > 0 && sameRow(rows[n-1].Start, h.Start, first, hours) {
				rows[n-1].End = h.End
				rows[n-1].Needed += h.Needed
				rows[n-1].Granted += h.Granted
				continue
			}
			rows = append(rows, h)
		}
		if len(rows) <= mostRows {
			break
		}
	}
	return rows, hours
}

func sameRow(a, b, first time.Time, hours int) bool {
	switch {
	case hours == 1:
		return false
	case hours <= 24:
		return sameDay(a, b) && a.Hour()/hours == b.Hour()/hours
	}
	days := func(t time.Time) int {
		date := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
		return int(date(t).Sub(date(first))/(24*time.Hour)) / (hours / 24)
	}
	return days(a) == days(b)
}

func (p *planPage) fit(q plan.Quota) {
	if q.Fit == nil {
		return
	}
	p.line("")
	if !q.Fit.Found {
		p.line("  Slower schedules alone do not help: too much comes at once. Raise the limit, or lower cost or pages.")
		return
	}
	p.line("  %s", p.paint(bold, "Nothing would wait with"))
	type kind struct {
		group     string
		now, fits time.Duration
	}
	feeds := map[kind]int{}
	ttl := map[kind]time.Duration{}
	var order []kind
	for _, f := range q.Fit.Feeds {
		k := kind{f.Group, f.Now, f.Fits}
		if feeds[k] == 0 {
			order = append(order, k)
		}
		feeds[k]++
		ttl[k] = max(ttl[k], f.TTL)
	}
	for _, k := range order {
		text := fmt.Sprintf("every %s → every %s, and a ttl of %s", units.FormatDuration(k.now), units.FormatDuration(k.fits), span(up(ttl[k])))
		if k.now == k.fits {
			text = fmt.Sprintf("every %s as it is", units.FormatDuration(k.now))
		}
		if q.Fit.Spread && feeds[k] > 1 {
			text += fmt.Sprintf(", and spread: %s", units.FormatDuration(k.fits))
		}
		p.line("    %s: %s", named(k.group, feeds[k]), text)
	}
	for _, f := range q.Fit.Feeds {
		if f.Expression != "" {
			p.line("    %s", p.paint(dim, fmt.Sprintf("(every %s is schedule: %q)", units.FormatDuration(f.Fits), f.Expression)))
			return
		}
	}
}

// up is a duration in whole seconds.
func up(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

func named(group string, n int) string {
	if n == 1 {
		return group
	}
	return fmt.Sprintf("%s (%d feeds)", group, n)
}

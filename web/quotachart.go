package web

import (
	"fmt"
	"slices"
	"time"
)

// quotaChart is the past day and the coming one of a quota, by quarters of an hour
// and feed by feed: what was granted, and what will be.
func quotaChart(q Quota, o *outlook) (chart, bool) {
	past := o.Past[q.Name]
	f, planned := o.quota(q.Name)
	// The quarter that the forecast begins in is in both: each has its own column.
	layers := inColour(layersOf(past, o.Shares[q.Name], f))
	if len(layers) == 0 {
		return chart{}, false
	}
	n, m := len(past), len(past)
	var values [][]int64
	var granted int64
	for _, l := range layers {
		m = max(m, len(l.Ahead))
		values = append(values, slices.Concat(l.Past, l.Ahead))
		granted += sum(l.Past)
	}
	c := chart{ID: "units-" + q.Name, Width: (n + m) * columnStep, Height: chartHeight, Now: float64(n * columnStep)}
	most := highest(values)
	pace, paceSays := quotaPace(q)
	if pace > 0 && pace < most*4 {
		most = max(most, pace*1.08)
	}
	most = roundUp(most * 1.02)
	c.Top = counted(int(most), "unit") + " in 15 min"
	paths := columns(values, most)
	for i, l := range layers {
		s := series{Name: l.Name, Class: l.Class, Path: paths[i], Total: grouped(sum(l.Past))}
		if planned && l.Name != unnamed {
			s.Coming = grouped(sum(l.Ahead))
		}
		c.Series = append(c.Series, s)
	}
	if pace > 0 && pace <= most {
		c.Guides = append(c.Guides, guide{Y: level(int64(pace), most), Class: "limit", Says: paceSays})
	}
	at := o.At.UTC()
	for _, h := range []int{-24, -12, 0, 12, 24} {
		if h == 0 {
			c.Axis = append(c.Axis, "now")
			continue
		}
		c.Axis = append(c.Axis, at.Add(time.Duration(h)*time.Hour).Format("15:04"))
	}
	c.Axis[0] += " UTC"
	c.Says = fmt.Sprintf("Units of %s by quarters of an hour, feed by feed: %s granted in the past 24 hours", q.Name, grouped(granted))
	if planned {
		c.Says += fmt.Sprintf(", %s to be granted in the coming %s", grouped(f.Granted), o.ahead())
	}
	c.Table = quotaTable(q.Name, past, layers, o)
	return c, true
}

// quotaPace is what a quarter of an hour may take for ever, by the window that
// allows the least.
func quotaPace(q Quota) (float64, string) {
	pace, says := 0.0, ""
	for _, w := range q.Windows {
		if w.PerMS <= 0 {
			continue
		}
		p := float64(w.Limit) * float64(forecastSlot.Milliseconds()) / float64(w.PerMS)
		if says == "" || p < pace {
			pace, says = p, fmt.Sprintf("%s per %s, spread evenly: %s in 15 min", grouped(w.Limit), windowName(w), grouped(int64(p)))
		}
	}
	return pace, says
}

// quotaTable is the chart by the hour.
func quotaTable(name string, past []Point, layers []layer, o *outlook) table {
	t := table{Caption: "Units of " + name + " by the hour (UTC), feed by feed", Head: []string{"Hour from", "State", "Units"}}
	for _, l := range layers {
		t.Head = append(t.Head, l.Name)
	}
	row := func(from time.Time, which string, i int, of func(layer) []int64) {
		cells, total := make([]string, len(layers)), int64(0)
		for k, l := range layers {
			v := of(l)
			n := sum(v[min(i, len(v)):min(i+4, len(v))])
			cells[k], total = grouped(n), total+n
		}
		t.Rows = append(t.Rows, append([]string{from.UTC().Format("02 Jan 15:04"), which, grouped(total)}, cells...))
	}
	for i := 0; i < len(past); i += 4 {
		row(past[i].Start, "granted", i, func(l layer) []int64 { return l.Past })
	}
	if o.Forecast == nil || len(layers) == 0 {
		return t
	}
	for i := 0; i < int(forecastSpan/forecastSlot); i += 4 {
		row(o.Forecast.From.Add(time.Duration(i)*forecastSlot), "to come", i, func(l layer) []int64 { return l.Ahead })
	}
	return t
}

// mostTakers bounds the table of feeds.
const mostTakers = 200

// takersTable is who took units and who will, those that take the most first.
func takersTable(name string, o *outlook) table {
	f, _ := o.quota(name)
	named, rest := layersOf(o.Past[name], o.Shares[name], f)
	t := table{Caption: "Units of " + name + ", feed by feed", Head: []string{"Feed", "In the past 24 h", "In the coming 24 h"}}
	if len(named) > mostTakers+1 {
		named = append(named[:mostTakers:mostTakers], summed(named[mostTakers:]))
	}
	if rest.units() > 0 {
		named = append(named, rest)
	}
	for _, l := range named {
		t.Rows = append(t.Rows, []string{l.Name, grouped(sum(l.Past)), grouped(sum(l.Ahead))})
	}
	return t
}

// useChart is what the longest window will count, against its limit. Of windows
// shorter than an hour there is nothing to see at this scale.
func useChart(q Quota, o *outlook) (chart, bool) {
	f, planned := o.quota(q.Name)
	w, ok := longestWindow(q)
	if !planned || !ok || len(o.Past[q.Name]) == 0 {
		return chart{}, false
	}
	var granted []int64 // past and coming, by quarters
	for _, p := range o.Past[q.Name] {
		granted = append(granted, max(p.Units-p.RefundedUnits, 0))
	}
	n := len(granted)
	coming := make([]int64, int(forecastSpan/forecastSlot))
	for _, u := range f.Feeds {
		for i, v := range u.Slots {
			if i < len(coming) {
				coming[i] += v
			}
		}
	}
	granted = append(granted, coming...)
	per := int(time.Duration(w.PerMS) * time.Millisecond / forecastSlot)
	used := make([]int64, 0, len(coming)+1)
	used = append(used, w.Used)
	for i := range coming {
		total := used[i] + coming[i]
		if gone := n + i - per; w.Calendar == "" && gone >= 0 {
			total -= granted[gone]
		}
		used = append(used, max(total, 0))
	}
	if w.Calendar != "" {
		return chart{}, false // its day begins anew somewhere ahead: the bars above tell it better
	}
	most := float64(max(w.Limit, slices.Max(used)))
	c := chart{ID: "use-" + q.Name, Width: len(coming) * columnStep, Height: chartHeight, Top: grouped(int64(most)) + " units"}
	line, area := curve(used, 0, most)
	name := "counted by the window of " + windowName(w)
	c.Series = []series{{Name: name, Class: "area", Path: area}, {Class: "edge", Path: line}}
	c.Guides = []guide{{Y: level(w.Limit, most), Class: "limit", Says: "limit: " + grouped(w.Limit)}}
	top := slices.Max(used)
	c.Says = fmt.Sprintf("What the window of %s will count in the coming 24 hours: now %s, at most %s of %s", windowName(w), grouped(w.Used), grouped(top), grouped(w.Limit))
	c.Table = table{Caption: "The window of " + windowName(w) + " by the hour (UTC)", Head: []string{"At", "Counted", "Of the limit"}}
	for i := 0; i < len(used); i += 4 {
		at := o.Forecast.From.Add(time.Duration(i) * forecastSlot).UTC().Format("02 Jan 15:04")
		c.Table.Rows = append(c.Table.Rows, []string{at, grouped(used[i]), fmt.Sprintf("%.0f %%", share(used[i], w.Limit))})
	}
	for _, h := range []int{0, 6, 12, 18, 24} {
		text := "now"
		if h > 0 {
			text = o.At.UTC().Add(time.Duration(h) * time.Hour).Format("15:04")
		}
		c.Axis = append(c.Axis, text)
	}
	c.Axis[len(c.Axis)-1] += " UTC"
	return c, true
}

// longestWindow is the longest one, if it is an hour at least and a day at most:
// further back nothing is known.
func longestWindow(q Quota) (Used, bool) {
	best := Used{}
	for _, w := range q.Windows {
		if w.PerMS > best.PerMS && w.PerMS >= time.Hour.Milliseconds() && w.PerMS <= forecastSpan.Milliseconds() {
			best = w
		}
	}
	return best, best.PerMS > 0
}

func highest(values [][]int64) float64 {
	var most int64
	for i := 0; ; i++ {
		var total int64
		more := false
		for _, v := range values {
			if i < len(v) {
				more = true
				total += max(v[i], 0)
			}
		}
		if !more {
			return float64(most)
		}
		most = max(most, total)
	}
}

func sum(values []int64) (n int64) {
	for _, v := range values {
		n += v
	}
	return n
}

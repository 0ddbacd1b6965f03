package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"feedwarden/jobs/source"
	"feedwarden/quota"
)

const maxUnits = quota.MaxLimit

func (d *decoder) quotas(n *node, at Pos) []Quota {
	var out []Quota
	p := path{}.key("quotas")
	d.named(n, p, at, func(e entry, p path) {
		if problem, want := properName(e.key); problem != "" {
			d.fault(e.pos, fmt.Sprintf("quotas: %s %s", quote(e.key), problem), want)
		}
		q := d.quota(e, p)
		out = append(append(out, q), q.buckets()...)
	})
	slices.SortFunc(out, func(a, b Quota) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// named reads a mapping of a person's own names.
func (d *decoder) named(n *node, p path, at Pos, read func(entry, path)) {
	f := d.section(n, p, at)
	for _, key := range f.order {
		f.known = append(f.known, key)
		read(f.have[key], p.name(key))
	}
}

func (d *decoder) quota(e entry, p path) Quota {
	q := defaultQuota(e.key)
	q.Pos = e.pos
	f := d.section(e.value, p, e.pos)
	f.choice("preset", &q.Preset, presets...)
	for i, item := range f.list("windows", "want a list: [{limit: 10000, per: 24h}]") {
		q.Windows = append(q.Windows, d.window(item, p.key("windows").index(i)))
	}
	if w := f.have["windows"].value; len(q.Windows) == 0 && !f.has("preset") && e.value.mayHoldKeys() && (w == nil || w.kind == nothing || w.kind == list) {
		d.fault(f.pos("windows"), fmt.Sprintf("%s has no windows", p), "want windows: [{limit: 10000, per: 24h}]")
	}
	if len(q.Windows) == 0 {
		q.Windows = presetWindows(q.Preset, source.DefaultBucket)
	}
	if n := whole(f, "reserve", &q.Reserve, 0, maxUnits); n != nil {
		faulty := slices.ContainsFunc(q.Windows, func(w Window) bool { return w.Limit == 0 })
		if largest := largestLimit(q); largest > 0 && q.Reserve >= largest && !faulty {
			f.bad("reserve", n, "leaves scheduled jobs nothing", fmt.Sprintf("want less than the limit, %d", largest))
		}
	}
	whole(f, "running", &q.Running, 1, 1_000_000)
	f.duration("grace", &q.Grace, time.Second)
	f.done(nil)
	return q
}

// Room is what a scheduled job can find free in a window at best. The reserve
// is kept in the windows that are larger than it: 500 kept of 10,000 a day say
// nothing of a limit of 300 a minute.
func (q Quota) Room(w Window) int64 {
	if q.Reserve < w.Limit {
		return w.Limit - q.Reserve
	}
	return w.Limit
}

func largestLimit(q Quota) (most int64) {
	for _, w := range q.Windows {
		most = max(most, w.Limit)
	}
	return most
}

func (d *decoder) window(n *node, p path) Window {
	var w Window
	f := d.section(n, p, n.pos)
	if n.kind == nothing {
		d.fault(n.pos, fmt.Sprintf("%s is empty", p), "want {limit: 10000, per: 24h}")
		return w
	}
	whole(f, "limit", &w.Limit, 1, maxUnits)
	if n.kind == mapping && !f.has("limit") {
		d.fault(n.pos, fmt.Sprintf("%s has no limit", p), "want limit: 10000")
	}
	if e, ok := f.have["per"]; ok && e.value.kind == scalar && e.value.text() == "day" {
		f.node("per")
		w.Calendar = "day"
	} else {
		f.duration("per", &w.Per, time.Millisecond)
		if n.kind == mapping && !ok {
			d.fault(n.pos, fmt.Sprintf("%s has no per", p), "want per: 24h")
		}
	}
	var zone string
	given := f.text("timezone", &zone)
	switch {
	case given != nil:
		w.Location = d.zone(given, p.key("timezone"))
		if w.Calendar == "" {
			d.fault(given.pos, fmt.Sprintf("%s is only for per: day", p.key("timezone")), "want per: day, or no timezone")
		}
	case w.Calendar != "" && !f.has("timezone"):
		d.fault(n.pos, fmt.Sprintf("%s ends with the day, but has no timezone", p), "want timezone: America/Los_Angeles, or per: 24h for any 24 hours")
	}
	f.done(nil)
	return w
}

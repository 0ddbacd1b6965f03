package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedwarden/internal/units"
)

// feedReader reads the feeds' entries, with what they refer to.
type feedReader struct {
	*decoder
	quotas     map[string]Quota
	quotaNames []string
	poolNames  []string
	taken      map[string]Pos // feeds' names
	size       int            // of what `each` has made so far
	out        []Feed
}

func (d *decoder) feeds(n *node, at Pos, quotas []Quota, pools []Pool) []Feed {
	r := &feedReader{decoder: d, quotas: map[string]Quota{}, taken: map[string]Pos{}}
	for _, q := range quotas {
		r.quotas[q.Name] = q
		r.quotaNames = append(r.quotaNames, q.Name)
	}
	for _, p := range pools {
		r.poolNames = append(r.poolNames, p.Name)
	}
	r.poolNames = append(r.poolNames, Direct, Environment)
	d.named(n, path{}.key("feeds"), at, r.entry)
	slices.SortFunc(r.out, func(a, b Feed) int { return cmp.Compare(a.Name, b.Name) })
	return r.out
}

// template is an entry before `each` makes feeds of it.
type template struct {
	path    path
	pos     Pos
	feed    Feed
	kind    *node // the source's name, where faults of the whole source go
	url     *node
	baseURL *node
	params  []entry
	headers []entry
	dims    []dimension
	cost    Pos   // what decides the cost
	body    *node // the whole entry
	faulty  bool  // the source itself is not checked again
	said    []string
}

func (r *feedReader) entry(e entry, p path) {
	before := r.count
	if problem, want := properName(e.key); problem != "" {
		r.fault(e.pos, fmt.Sprintf("feeds: %s %s", quote(e.key), problem), want)
	}
	t := &template{path: p, pos: e.pos, body: e.value, feed: defaultFeed(e.key)}
	t.feed.Pos = e.pos
	f := r.section(e.value, p, e.pos)
	t.dims = r.each(f)
	t.kind = f.text("source", &t.feed.Source, func(s string) (string, string) {
		if slices.Contains(sourceNames(), s) {
			return "", ""
		}
		if meant := otherSourceNames[strings.ToLower(s)]; meant != "" {
			return "is none of its values", fmt.Sprintf("did you mean %q?", meant)
		}
		return "is none of its values", orNear(s, sourceNames())
	})
	if t.kind == nil && !f.has("source") && e.value.mayHoldKeys() {
		r.fault(e.pos, fmt.Sprintf("%s has no source", p), "want source: "+strings.Join(sourceNames(), ", "))
	}
	r.source(f, t)
	r.keeping(f, &t.feed)
	if t.feed.Source != "push" {
		r.timing(f, &t.feed)
		r.references(f, t)
		r.trying(f, &t.feed)
	}
	f.done(func(key string) string { return misplaced(key, t.feed.Source) })
	t.faulty = r.count > before
	r.expandEntry(t)
}

// keeping reads what happens to a fetched version.
func (r *feedReader) keeping(f *fields, to *Feed) {
	whole(f, "history", &to.History, 1, 10_000)
	to.TTLGiven = f.duration("ttl", &to.TTL, time.Millisecond) != nil
	r.sinks(f, to)
}

// trying reads how long and how often a job tries.
func (r *feedReader) trying(f *fields, to *Feed) {
	whole(f, "attempts", &to.Attempts, 1, 1000)
	f.duration("max_snooze", &to.MaxSnooze, time.Second)
	if n := f.duration("expires", &to.Expires, 0); n != nil && to.Expires > 0 && to.Expires < time.Second {
		f.bad("expires", n, "is too short", "want 1s or longer, or 0s for never")
	}
}

// references reads the quota and the pool, and holds the cost against the quota.
func (r *feedReader) references(f *fields, t *template) {
	to := &t.feed
	quotaAt := f.text("quota", &to.Quota)
	quota, known := r.quotas[to.Quota]
	if quotaAt != nil && !known {
		want := "define it under quotas"
		if len(r.quotaNames) > 0 {
			want = orNear(to.Quota, r.quotaNames)
		}
		f.bad("quota", quotaAt, "is no quota", want)
	}
	if n := f.text("pool", &to.Pool); n != nil && !slices.Contains(r.poolNames, to.Pool) {
		f.bad("pool", n, "is no pool", orNear(to.Pool, r.poolNames))
	}
	if quotaAt == nil && to.Source == "youtube" && !f.has("quota") {
		r.warn(t.pos, fmt.Sprintf("%s has no quota", t.path), "so nothing keeps to the key's daily budget")
	}
	quota = r.price(f, t, quota)
	if quotaAt == nil || !known {
		return
	}
	to.Quota = quota.Name
	at := quotaAt.pos
	if t.cost.Line > 0 {
		at = t.cost
	}
	for _, w := range quota.Windows {
		free, who := w.Limit, "a request"
		if to.Schedule != "" {
			free, who = quota.Room(w), "a scheduled request"
		}
		if w.Limit > 0 && to.Cost > free {
			less := ""
			if free < w.Limit {
				less = fmt.Sprintf(" less the reserve of %d", quota.Reserve)
			}
			r.fault(at, fmt.Sprintf("%s: %s costs %d, and quota %q never has more than %d for it (%s%s)", t.path, who, to.Cost, quota.Name, free, w, less),
				"lower the cost, or raise the limit")
		}
	}
}

// String is the window as a person says it: 10000 per 24h.
func (w Window) String() string {
	per := units.FormatDuration(w.Per)
	if w.Calendar != "" {
		per = w.Calendar
	}
	return fmt.Sprintf("%d per %s", w.Limit, per)
}

// price sets what a request costs: as written, else by the method's table. It
// answers the quota that is charged: a method with a bucket of its own is charged
// there, whatever it costs.
func (r *feedReader) price(f *fields, t *template, quota Quota) Quota {
	given := whole(f, "cost", &t.feed.Cost, 1, maxUnits)
	if given != nil {
		t.cost = given.pos
	}
	if t.feed.Source != "youtube" || t.feed.Method == "" {
		return quota
	}
	preset := cmp.Or(quota.Preset, presets[0])
	bucket, cost, ok := r.cost(preset, t.feed.Method)
	at := f.have["method"].value
	switch {
	case !ok && given == nil:
		want := "want a method such as videos.list, or a cost: of your own"
		if n := near(t.feed.Method, methods(preset)); n != "" {
			want = fmt.Sprintf("did you mean %q?", n)
		}
		f.bad("method", at, "is no method of "+preset, want)
	case ok && given == nil:
		t.feed.Cost, t.cost = cost, at.pos
	}
	if own, has := r.quotas[bucketName(quota.Name, bucket)]; ok && has && quota.Preset != "" && quota.Bucket == "" {
		return own
	}
	return quota
}

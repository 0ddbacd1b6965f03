package web

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// trouble is one thing that is wrong, or soon will be.
type trouble struct {
	Tone  string // bad, warn, info
	Text  string
	Link  string // to where it can be looked into; "" where that is nowhere
	Where string // the link's words
}

// headline says in one sentence whether the feeds are fresh.
func headline(s *snapshot) string {
	n, fresh := len(s.Feeds), 0
	for _, f := range s.Feeds {
		if f.State == "fresh" {
			fresh++
		}
	}
	switch {
	case s.FeedsErr != nil:
		return "The feeds could not be read."
	case n == 0:
		return "No feeds yet."
	case fresh == n && n == 1:
		return "The feed is fresh."
	case fresh == n:
		return fmt.Sprintf("All %s are fresh.", counted(n, "feed"))
	case fresh == 0:
		return fmt.Sprintf("None of %s is fresh.", counted(n, "feed"))
	}
	return fmt.Sprintf("%s of %s %s not fresh.", grouped(int64(n-fresh)), counted(n, "feed"), plural(n-fresh, "is", "are"))
}

// troubles are what a person should look at, worst first.
func troubles(s *snapshot, o *outlook) []trouble {
	var bad, warn, info []trouble
	by := map[string][]string{}
	for _, f := range s.Feeds {
		state := f.State
		if f.WaitingFor != "" {
			state = "waiting"
			if f.Version == nil {
				state = "first waiting"
			}
		}
		by[state] = append(by[state], f.Name)
		if f.Paused != nil {
			by["paused"] = append(by["paused"], f.Name)
		}
		if f.LastError != "" {
			by["failing"] = append(by["failing"], f.Name)
		}
		if slices.ContainsFunc(f.Sinks, func(v SinkView) bool { return v.LastError != "" }) {
			by["sinks"] = append(by["sinks"], f.Name)
		}
	}
	bad = append(bad, absent(s)...)
	if names := by["failing"]; len(names) > 0 {
		bad = append(bad, feedTrouble("bad", "The last fetch brought nothing: ", names, "failing"))
	}
	if names := by["stale"]; len(names) > 0 {
		warn = append(warn, feedTrouble("warn", "Older than their ttl: ", names, "stale"))
	}
	if names := by["waiting"]; len(names) > 0 {
		warn = append(warn, feedTrouble("warn", "Older than their ttl, and the next fetch waits: ", names, "waiting"))
	}
	if names := by["first waiting"]; len(names) > 0 {
		warn = append(warn, feedTrouble("warn", "Never fetched, and the first fetch waits: ", names, "waiting"))
	}
	if names := by["sinks"]; len(names) > 0 {
		warn = append(warn, trouble{"warn", "A sink does not get every version: " + list(names, 4) + ".", feedLink(names[0]), "Feed " + names[0]})
	}
	if names := by["updating"]; len(names) > 0 {
		info = append(info, feedTrouble("info", "Older than their ttl, a fetch is under way: ", names, "updating"))
	}
	if names := by["empty"]; len(names) > 0 {
		info = append(info, feedTrouble("info", "Never fetched: ", names, "empty"))
	}
	if names := by["paused"]; len(names) > 0 {
		info = append(info, feedTrouble("info", "Paused: ", names, "paused"))
	}
	for _, q := range s.Quotas {
		if q.Err == nil && q.View.BlockedUntil != nil {
			text := fmt.Sprintf("Quota %s is closed until %s UTC", q.Name, clock(q.View.BlockedUntil.UTC(), s.At.UTC()))
			if q.View.BlockReason != "" {
				text += ": " + q.View.BlockReason
			}
			bad = append(bad, trouble{"bad", strings.TrimSuffix(text, ".") + ".", quotaLink(q.Name), "Quota " + q.Name})
		}
	}
	for _, q := range s.Quotas {
		if f, _ := o.quota(q.Name); f.short() {
			warn = append(warn, trouble{"warn", fmt.Sprintf("Quota %s will not last: the schedules ask for %s in the coming %s.", q.Name, excess(f.Needed, f.Granted), o.ahead()), quotaLink(q.Name), "Quota " + q.Name})
		}
	}
	for _, p := range s.Pools {
		switch {
		case p.Err != nil:
		case p.View.Total == 0:
			warn = append(warn, trouble{"warn", "Pool " + p.Name + " has no endpoints: its feeds wait.", poolLink(p.Name), "Pool " + p.Name})
		case p.View.Eligible == 0:
			bad = append(bad, trouble{"bad", "Pool " + p.Name + " has no eligible endpoint: its feeds wait.", poolLink(p.Name), "Pool " + p.Name})
		}
	}
	if len(s.faults()) > 0 {
		bad = append(bad, trouble{Tone: "bad", Text: "Some of what stands here could not be read; the server's log says why."})
	}
	return append(append(bad, warn...), info...)
}

// absent says which processes are wanted and not there, or there and do nothing.
func absent(s *snapshot) []trouble {
	if s.ProcessesErr != nil {
		return nil
	}
	var out []trouble
	runs := map[string]bool{}
	for _, p := range s.Processes {
		for _, role := range p.Roles {
			runs[role] = true
		}
		if p.Refused != "" {
			out = append(out, trouble{Tone: "bad", Text: fmt.Sprintf("Process %d on %s (%s) writes nothing to Redis: %s.", p.PID, p.Host, strings.Join(p.Roles, ", "), strings.TrimSuffix(p.Refused, "."))})
		}
	}
	fetched := slices.ContainsFunc(s.Feeds, func(f FeedView) bool { return f.Source != "push" })
	if fetched && !runs["worker"] {
		out = append(out, trouble{Tone: "bad", Text: "No worker runs: nothing is fetched until one does."})
	}
	if len(s.Schedules) > 0 && !runs["scheduler"] {
		out = append(out, trouble{Tone: "bad", Text: "No scheduler runs: no tick comes until one does."})
	}
	return out
}

// feedTrouble names some of many feeds and leads to all of them.
func feedTrouble(tone, text string, names []string, state string) trouble {
	const most = 4
	t := trouble{tone, text + list(names, most) + ".", "/feeds?state=" + state, "The " + state + " feeds"}
	if len(names) == 1 {
		t.Link, t.Where = feedLink(names[0]), "Feed "+names[0]
	}
	return t
}

// excess says how much more is needed than is granted.
func excess(needed, granted int64) string {
	if granted <= 0 {
		return "what they cannot get"
	}
	times := float64(needed) / float64(granted)
	switch {
	case times > 100:
		return "more than 100 times what they get"
	case times >= 10:
		return fmt.Sprintf("%.0f times what they get", math.Floor(times))
	}
	return fmt.Sprintf("%.0f %% of what they get", math.Ceil(times*100))
}

// tile is one number at the head of the page.
type tile struct {
	Name, Big, Small, Tone, Link string
}

// tiles are the numbers to see first.
func tiles(s *snapshot) []tile {
	fresh := 0
	for _, f := range s.Feeds {
		if f.State == "fresh" {
			fresh++
		}
	}
	out := []tile{{"Fresh feeds", grouped(int64(fresh)), "of " + grouped(int64(len(s.Feeds))), toneIf(fresh == len(s.Feeds), "good", "warn"), "/feeds"}}
	if t, ok := tightest(s); ok {
		out = append(out, t)
	}
	eligible, total := 0, 0
	for _, p := range s.Pools {
		eligible, total = eligible+p.View.Eligible, total+p.View.Total
	}
	if total > 0 {
		out = append(out, tile{"Eligible endpoints", grouped(int64(eligible)), "of " + grouped(int64(total)), toneIf(eligible == total, "good", toneIf(eligible > 0, "warn", "bad")), "/pools"})
	}
	var q queueSize
	for _, p := range s.Queues {
		q.Pending, q.Active, q.Scheduled, q.Retry = q.Pending+p.View.Pending, q.Active+p.View.Active, q.Scheduled+p.View.Scheduled, q.Retry+p.View.Retry
	}
	return append(out, tile{"Jobs running", grouped(int64(q.Active)), grouped(int64(q.Pending)) + " due, " + grouped(int64(q.Scheduled+q.Retry)) + " asleep", "", "/jobs"})
}

// tightest is the window that has the least left, over all quotas.
func tightest(s *snapshot) (tile, bool) {
	best, found := tile{}, false
	most := -1.0
	for _, q := range s.Quotas {
		if q.Err != nil {
			continue
		}
		for _, w := range q.View.Windows {
			if p := share(w.Used, w.Limit); p > most {
				most, found = p, true
				best = tile{"Tightest quota", fmt.Sprintf("%.0f %%", p), fmt.Sprintf("of %s per %s used", q.Name, windowName(w)), toneOf(p), quotaLink(q.Name)}
			}
		}
	}
	return best, found
}

// toneOf is the colour of a window's use. A full one is no fault: it is what a
// budget is for, and who comes next waits.
func toneOf(percent float64) string { return toneIf(percent < 80, "good", "warn") }

func toneIf(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

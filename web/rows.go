package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedwarden/jobs"
)

// feedRow is a feed on a page.
type feedRow struct {
	FeedView
	Link string
	Bar  bar
	Age  string
	Next moment
	Note string // who holds its ticks back
	Wait string // what its next fetch waits for
}

func newFeedRow(f FeedView, now time.Time) feedRow {
	row := feedRow{FeedView: f, Link: feedLink(f.Name), Next: relative(f.NextAt, now, "none")}
	age, ttl := time.Duration(f.AgeMS)*time.Millisecond, time.Duration(f.TTLMS)*time.Millisecond
	if f.Paused != nil {
		row.Note = f.Paused.words()
	}
	if f.WaitingFor != "" {
		row.Wait = "waits: " + f.WaitingFor
		if f.JobAt != nil {
			row.Wait = "waits, goes on " + relative(f.JobAt, now, "").Text + ": " + f.WaitingFor
		}
	}
	switch {
	case f.Version == nil:
		row.Age = "never fetched"
		row.Bar = bar{Tone: "info", Says: "never fetched"}
	case ttl <= 0:
		row.Age = span(age) + ", no ttl"
		row.Bar = bar{Tone: "good", Says: row.Age}
	default:
		row.Age = span(age) + " of " + span(ttl)
		row.Bar = bar{Percent: share(f.AgeMS, f.TTLMS), Tone: map[string]string{"fresh": "good", "stale": "warn", "updating": "info"}[f.State], Says: "age " + row.Age}
	}
	return row
}

// quotaCard is a quota on a page.
type quotaCard struct {
	Name        string
	Link        string
	Fault       string
	Lasting     string // whether it will last
	LastingTone string
	Chart       chart
	HasChart    bool
	Remaining   string
	Blocked     bool
	Opens       moment
	BlockReason string
	Windows     []windowBar
	Line        string
	Longest     string // "" while nobody waits
	Release     moment
	Grants      string
	Refusals    string
	Waiters     []waiterRow
}

type windowBar struct {
	Limit, Used string
	Bar         bar
}

type waiterRow struct {
	Waiter
	Promised moment
	Waits    moment // since when
	Link     string // to its job; "" where it is no job's charge
	Job      string
}

func newQuotaCard(p part[Quota], now time.Time) quotaCard {
	q := p.View
	c := quotaCard{Name: p.Name, Link: quotaLink(p.Name)}
	if p.Err != nil {
		c.Fault = unreadable
		return c
	}
	c.Remaining = grouped(q.Remaining) + " left"
	if kept := q.Remaining - scheduledLeft(q); kept > 0 {
		c.Remaining += ", " + grouped(kept) + " of them for interactive jobs"
	}
	c.Blocked, c.Opens, c.BlockReason = q.BlockedUntil != nil, relative(q.BlockedUntil, now, ""), q.BlockReason
	c.Release = relative(q.NextReleaseAt, now, "nothing is used")
	c.Grants, c.Refusals = grouped(q.Grants), grouped(q.Refusals)
	c.Line = "nobody"
	if q.Line.Waiting > 0 {
		c.Line = grouped(q.Line.Waiting) + ", for " + counted(int(q.Line.Units), "unit")
		c.Longest = span((time.Duration(q.Line.LongestWaitMS) * time.Millisecond).Round(time.Second))
	}
	for _, w := range q.Windows {
		used := share(w.Used, w.Limit)
		kept := share(q.Reserve, w.Limit)
		b := windowBar{
			Limit: grouped(w.Limit) + " per " + windowName(w), Used: grouped(w.Used) + " used",
			Bar: bar{Percent: used, Reserve: kept, ReserveFrom: 100 - kept, Tone: toneOf(used)},
		}
		b.Bar.Says = b.Used + " of " + b.Limit
		c.Windows = append(c.Windows, b)
	}
	for _, w := range q.Line.First {
		c.Waiters = append(c.Waiters, waiterRow{w, relative(&w.PromisedAt, now, ""), relative(&w.Since, now, ""), chargeLink(w.ID), jobOrID(w.ID)})
	}
	return c
}

// scheduledLeft is what of the units left scheduled jobs may take: the reserve is
// kept in each window that is larger than it.
func scheduledLeft(q Quota) int64 {
	left := q.Remaining
	for _, w := range q.Windows {
		if q.Reserve < w.Limit {
			left = min(left, max(0, w.Limit-w.Used-q.Reserve))
		}
	}
	return left
}

// jobOfCharge finds the job in a charge's ID: JOB#SINCE/REQUEST, or JOB/REQUEST.
func jobOfCharge(id string) (string, bool) {
	numbered := func(sep byte) bool {
		i := strings.LastIndexByte(id, sep)
		if i <= 0 || strings.Trim(id[i+1:], "0123456789") != "" {
			return false
		}
		id = id[:i]
		return true
	}
	ok := numbered('/')
	if ok {
		numbered('#')
	}
	return id, ok
}

func jobOrID(id string) string {
	job, _ := jobOfCharge(id)
	return job
}

// chargeLink leads to the job that a charge is for: its ID is the job's, and the
// number of the request.
func chargeLink(id string) string {
	if job, ok := jobOfCharge(id); ok {
		return jobLink(job)
	}
	return ""
}

// poolCard is a pool on a page.
type poolCard struct {
	Name, Policy string
	Link         string
	Fault        string
	Eligible     string
	Total        int
	Bar          bar
	Counts       []poolCount
	NextEligible moment
}

type poolCount struct {
	Name string
	N    int
	Tone string
}

func newPoolCard(p part[Pool], now time.Time) poolCard {
	v := p.View
	c := poolCard{Name: p.Name, Link: poolLink(p.Name), Policy: v.Policy, Total: v.Total}
	if p.Err != nil {
		c.Fault = unreadable
		return c
	}
	c.Eligible = fmt.Sprintf("%s of %s eligible", grouped(int64(v.Eligible)), grouped(int64(v.Total)))
	c.Bar = bar{Percent: share(int64(v.Eligible), int64(v.Total)), Tone: toneIf(v.Eligible == v.Total, "good", toneIf(v.Eligible > 0, "warn", "bad")), Says: c.Eligible}
	c.NextEligible = relative(v.NextEligibleAt, now, "")
	for _, n := range []poolCount{{"Eligible", v.Eligible, ""}, {"Quarantined", v.Quarantined, ""}, {"Candidates", v.Candidates, ""}, {"Auth failed", v.AuthFailed, "bad"}, {"Disabled", v.Disabled, ""}} {
		if n.N == 0 {
			n.Tone = ""
		}
		c.Counts = append(c.Counts, n)
	}
	return c
}

// scheduleRow is a schedule on a page.
type scheduleRow struct {
	ScheduleView
	Link       string // to its feed
	Next, Last moment
	Late       string // how late the last tick became a job
	LateTone   string
	Note       string // why it does not tick as its expression says
	Lane       lane
}

func newScheduleRow(v ScheduleView, now time.Time) scheduleRow {
	row := scheduleRow{ScheduleView: v, Link: feedLink(v.Feed), Next: relative(v.NextAt, now, "none"), Last: relative(v.LastAt, now, "none yet")}
	if v.LastAt != nil {
		row.Late, row.LateTone = "on time", "good"
		if late := time.Duration(v.LatenessMS) * time.Millisecond; late >= time.Second {
			row.Late, row.LateTone = span(late)+" late", "warn"
		} else if late > 0 {
			row.Late = span(late) + " late"
		}
	}
	switch {
	case v.State == "paused":
		row.Note = Pause{By: v.PausedBy, Until: v.PausedUntil}.words()
	case v.DueAt != nil:
		row.Note = "one waits, due " + relative(v.DueAt, now, "").Text
		if why, ok := holdWords[v.Hold]; ok {
			row.Note += ": " + why
		}
	}
	return row
}

var holdWords = map[string]string{
	"overlap": "the last one's job has not ended",
	"full":    "the queue is full",
	"error":   "it could not be enqueued",
}

// jobRow is a job on a page.
type jobRow struct {
	jobs.Job
	Link     string
	FeedLink string
	Monitor  string // into asynqmon
	When     moment
	Why      string
}

func newJobRow(j jobs.Job, now time.Time) jobRow {
	row := jobRow{Job: j, Link: jobLink(j.ID), FeedLink: feedLink(j.Feed), Monitor: monitorRoot + "/queues/" + escape(j.Queue) + "/tasks/" + escape(j.ID), Why: j.LastError}
	slept := strings.HasPrefix(j.LastError, "snoozed until ")
	switch {
	case j.State == jobs.Snoozed:
		row.Why = waitWords(j.LastError)
	case j.State == jobs.Cancelled && slept: // what it had met before is no reason
		row.Why = "by hand, while it waited: " + waitWords(j.LastError)
	case j.State == jobs.Cancelled && j.LastError != "":
		row.Why = "by hand, after: " + j.LastError
	case j.State == jobs.Cancelled:
		row.Why = "by hand"
	case slept: // and is awake
		row.Why = ""
	}
	switch {
	case j.EndedAt != nil && j.EndedAt.After(now): // by another clock, or while the page was made
		row.When = relative(j.EndedAt, *j.EndedAt, "")
	case j.EndedAt != nil:
		row.When = relative(j.EndedAt, now, "")
	case j.NextAt != nil:
		row.When = relative(j.NextAt, now, "")
	case j.State == jobs.Running:
		row.When = moment{Text: "now"}
	default:
		row.When = moment{Text: "due"}
	}
	if why, ok := resultWords(j.Result); ok && row.Why == "" {
		row.Why = why
	}
	return row
}

// resultWords says what a job brought: an object of those that fetched, a text
// of those that ended without.
func resultWords(b json.RawMessage) (string, bool) {
	var r jobs.Result
	var text string
	if len(b) == 0 {
		return "", false
	}
	if json.Unmarshal(b, &text) == nil {
		return text, text != ""
	}
	if json.Unmarshal(b, &r) != nil || r.What == "" {
		return "", false
	}
	text = r.What
	if r.Version > 0 {
		text += fmt.Sprintf(": version %d", r.Version)
	}
	if r.Items > 0 {
		text += ", " + counted(r.Items, "item")
	}
	if r.Units > 0 {
		text += ", " + counted(int(r.Units), "unit")
	}
	via := slices.Compact(slices.Sorted(slices.Values(r.Via)))
	switch {
	case len(via) == 1 && via[0] == "direct":
		text += ", directly"
	case len(via) > 0:
		text += ", through " + list(via, 2)
	}
	return text, true
}

package web

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"feedwarden/jobs"
	"feedwarden/jobs/feed"
)

// lookAtOnce bounds how many jobs are looked up at a time.
const lookAtOnce = 8

// jobUnreadable is the job_state of a job whose record could not be read.
const jobUnreadable = "unreadable"

// withJobs says of every feed that is not fresh which job is to bring its next
// version, and why that one waits. A job that cannot be read costs its feed no
// more than this.
func withJobs(ctx context.Context, c *jobs.Client, heads []feed.Head, views []FeedView) {
	var g errgroup.Group
	g.SetLimit(lookAtOnce)
	for i := range views {
		if views[i].State == "fresh" {
			continue
		}
		g.Go(func() error {
			views[i].showJob(nextJob(ctx, c, heads[i]))
			return nil
		})
	}
	_ = g.Wait() // nothing in it fails
}

// nextJob finds the living job that acts first: the last tick's, or a reader's.
func nextJob(ctx context.Context, c *jobs.Client, h feed.Head) (best jobs.Job, found bool) {
	ids := []string{h.LastTickJob, h.Refreshing}
	for i, id := range ids {
		if id == "" || i > 0 && id == ids[0] {
			continue
		}
		j, err := c.Get(ctx, id)
		switch {
		case errors.Is(err, jobs.ErrNoJob):
			continue
		case err != nil:
			j = jobs.Job{ID: id, State: jobUnreadable}
		case j.State.Ended():
			continue
		}
		if !found || sooner(j, best) {
			best, found = j, true
		}
	}
	return best, found
}

// sooner says that a acts before b: what runs, then what is due, then by instant.
func sooner(a, b jobs.Job) bool {
	rank := func(j jobs.Job) int {
		switch {
		case j.State == jobs.Running:
			return 0
		case j.State == jobs.Pending:
			return 1
		case j.NextAt != nil:
			return 2
		}
		return 3
	}
	if ra, rb := rank(a), rank(b); ra != rb || ra != 2 {
		return ra < rb
	}
	return a.NextAt.Before(*b.NextAt)
}

func (v *FeedView) showJob(j jobs.Job, found bool) {
	if !found {
		return
	}
	v.Job, v.JobState, v.JobAt = j.ID, string(j.State), j.NextAt
	switch j.State {
	case jobs.Running:
		if v.State == "stale" {
			v.State = "updating"
		}
	case jobs.Snoozed:
		v.WaitingFor = waitWords(j.LastError)
	}
}

// waitWords is a snooze's reason without its instant, which is told apart.
func waitWords(text string) string {
	if rest, ok := strings.CutPrefix(text, "snoozed until "); ok {
		if _, reason, ok := strings.Cut(rest, ": "); ok {
			text = reason
		}
	}
	if text = strings.TrimSpace(text); text == "" {
		return "its instant"
	}
	return text
}

// plight says in whole sentences what keeps a feed from being fresh.
func plight(v FeedView, now time.Time) []trouble {
	var out []trouble
	never := v.Version == nil
	if v.LastError != "" {
		text := "The last fetch, "
		if never {
			text = "Never fetched: the last try, "
		}
		text += relative(v.LastErrorAt, now, "").Text + ", brought nothing: " + sentence(v.LastError)
		if v.JobState == string(jobs.Retrying) && v.JobAt != nil {
			text += " It is tried again " + relative(v.JobAt, now, "").Text + "."
		}
		out = append(out, trouble{Tone: "bad", Text: text})
	}
	if v.WaitingFor != "" {
		text := "The next fetch waits"
		if never && v.LastError == "" {
			text = "Never fetched: its first fetch waits"
		}
		if v.JobAt != nil {
			text += " and goes on " + relative(v.JobAt, now, "").Text
		}
		out = append(out, trouble{Tone: "warn", Text: text + ": " + sentence(v.WaitingFor)})
	}
	out = append(out, failing(v, now)...)
	if v.Paused != nil {
		out = append(out, trouble{Tone: "info", Text: "Its schedule is " + v.Paused.words() + "."})
	}
	return out
}

// sentence ends a text with one full stop.
func sentence(text string) string { return strings.TrimRight(text, ". ") + "." }

// nothingYet says how a feed that was never fetched comes to its first version.
// Where its trouble is told already, no more is said.
func nothingYet(v FeedView) string {
	switch {
	case v.LastError != "" || v.WaitingFor != "":
		return "No version yet."
	case v.JobState == string(jobs.Running):
		return "Never fetched. Its first fetch runs now."
	case v.JobState == string(jobs.Pending):
		return "Never fetched. Its first fetch is in the queue."
	case v.Schedule == "":
		return "Never fetched. It has no schedule: its first fetch comes with the first reader, or by feedwarden enqueue " + v.Name + "."
	case v.Paused != nil:
		return "Never fetched. No tick comes while it is paused; the first reader brings its first fetch."
	}
	return "Never fetched. Its first fetch comes with the next tick, or with the first reader."
}

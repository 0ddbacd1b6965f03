package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"feedwarden/jobs"
)

type jobsCmd struct {
	List   jobsListCmd   `cmd:"" help:"List jobs: the living, then the ended, newest first."`
	Get    jobsGetCmd    `cmd:"" help:"Show one job."`
	Cancel jobsCancelCmd `cmd:"" help:"End a job for good."`
}

type jobsListCmd struct {
	Feed  string `help:"Only jobs of this feed." placeholder:"FEED"`
	State string `help:"Only jobs in this state: pending, scheduled, snoozed, running, retrying, done, failed, expired, cancelled." placeholder:"STATE"`
	Limit int    `help:"At most so many, up to 1000." default:"100"`
	Page  int    `help:"Which page." default:"1"`
}

func (c *jobsListCmd) Run(e *env) error {
	if c.State != "" && !slices.Contains(jobs.States, jobs.State(c.State)) {
		words := make([]string, len(jobs.States))
		for i, s := range jobs.States {
			words[i] = string(s)
		}
		return usageError("--state %s: it is one of %s", c.State, strings.Join(words, ", "))
	}
	if c.Limit < 1 || c.Limit > 1000 || c.Page < 1 {
		return usageError("--limit is 1 to 1000, and --page 1 or more")
	}
	return e.with(func(s *session) error {
		if c.Feed != "" {
			if _, err := s.jobs.Feed(c.Feed); err != nil {
				return err
			}
		}
		list, err := s.jobs.List(s.ctx, jobs.Filter{Feed: c.Feed, State: jobs.State(c.State), Limit: c.Limit, Page: c.Page})
		if err != nil {
			return err
		}
		t := e.table("no jobs", jobHeader...)
		for _, j := range list {
			if err := t.add(j, jobCells(j)...); err != nil {
				return err
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
		if len(list) == c.Limit && !e.json {
			fmt.Fprintf(e.errOut, "there may be more: --page %d\n", c.Page+1)
		}
		return nil
	})
}

type jobsGetCmd struct {
	ID string `arg:"" help:"The job's ID."`
}

func (c *jobsGetCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		j, err := s.jobs.Get(s.ctx, c.ID)
		if err != nil {
			return err
		}
		if e.json {
			return e.line(j)
		}
		return showJob(e, j)
	})
}

type jobsCancelCmd struct {
	ID string `arg:"" help:"The job's ID."`
}

func (c *jobsCancelCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		j, err := s.jobs.Cancel(s.ctx, c.ID)
		var ended *jobs.EndedError
		if errors.As(err, &ended) && ended.State == jobs.Cancelled {
			err = nil
		}
		if err != nil {
			return err
		}
		if j.State == jobs.Running {
			fmt.Fprintln(e.errOut, "its run is told to stop")
		}
		t := e.table("", jobHeader...)
		if err := t.add(j, jobCells(j)...); err != nil {
			return err
		}
		return t.flush()
	})
}

// showJob tells a person all that is known of a job, a line a fact.
func showJob(e *env, j jobs.Job) error {
	now := time.Now()
	tw := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fact := func(name, value string) {
		if value != "" && value != "—" {
			fmt.Fprintf(tw, "%s\t%s\n", name, oneLine(value))
		}
	}
	fact("id", j.ID)
	fact("asked as", j.Asked)
	fact("feed", j.Feed)
	fact("queue", j.Queue)
	fact("state", string(j.State))
	if j.Tick != nil {
		fact("tick", *j.Tick)
	}
	fact("next", instant(j.NextAt, now))
	fact("ended", instant(j.EndedAt, now))
	fact("failures", fmt.Sprint(j.Attempts))
	fact("snoozes", fmt.Sprint(j.Snoozes))
	fact("requests", fmt.Sprint(j.Sent))
	if j.Crashes > 0 {
		fact("crashes", fmt.Sprint(j.Crashes))
	}
	fact("last error", j.LastError)
	fact("result", resultOf(j))
	return tw.Flush()
}

// resultOf puts what a job brought into words.
func resultOf(j jobs.Job) string {
	var r jobs.Result
	if json.Unmarshal(j.Result, &r) != nil || r.What == "" || r.Version == 0 {
		return string(j.Result)
	}
	text := fmt.Sprintf("%s: version %d", r.What, r.Version)
	if r.Requests > 0 {
		text += fmt.Sprintf(", %s, %s, %d ms, through %s", count(r.Items, "item"), count(int(r.Units), "unit"), r.TookMS, strings.Join(slices.Compact(slices.Sorted(slices.Values(r.Via))), ", "))
	}
	return text
}

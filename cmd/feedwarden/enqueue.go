package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"feedwarden/internal/units"
	"feedwarden/jobs"
)

type enqueueCmd struct {
	Feeds    []string          `arg:"" name:"feed" help:"Feeds to fetch, or - to read one JSON object a line from standard input."`
	Params   map[string]string `name:"param" short:"p" help:"Override a parameter of the feed's source. The result is kept under the feed's name and these parameters." placeholder:"k=v" mapsep:"none"`
	Priority string            `help:"interactive (the default: before the schedule's jobs) or scheduled." default:"interactive" placeholder:"P"`
	In       string            `help:"Not before this time from now: 90s, 15m, 1d." placeholder:"DUR" xor:"when"`
	At       string            `help:"Not before this instant, RFC 3339." placeholder:"INSTANT" xor:"when"`
	Expires  string            `help:"End as expired when not started within this time." placeholder:"DUR"`
	ID       string            `name:"id" help:"The job's ID. Asking twice with one ID is asking once."`
	Wait     string            `help:"Wait until the job has ended, 5m at most or as long as said. Exit 0 done, 1 failed, 75 not yet." placeholder:"[DUR]"`
}

func (c *enqueueCmd) Run(e *env) error {
	var wait time.Duration
	if c.Wait != "" {
		d, err := units.ParseDuration(c.Wait)
		if err != nil || d <= 0 {
			return usageError("--wait %s: a duration such as 30s is wanted", c.Wait)
		}
		wait = d
	}
	if c.ID != "" && len(c.Feeds) > 1 {
		return usageError("--id names one job, and %d feeds are asked for: one feed a call", len(c.Feeds))
	}
	if len(c.Feeds) == 1 && c.Feeds[0] == "-" {
		return e.with(func(s *session) error { return c.stream(s, wait) })
	}
	var specs []jobs.Spec
	for _, name := range c.Feeds {
		r := jobs.Request{Feed: name, Params: c.Params, Priority: c.Priority, In: c.In, At: c.At, Expires: c.Expires, ID: c.ID}
		spec, err := r.Spec(time.Now())
		if err != nil {
			return usageError("%v", err)
		}
		specs = append(specs, spec)
	}
	return e.with(func(s *session) error { return c.args(s, specs, wait) })
}

// args enqueues the feeds of the command line. A name that is wrong is a wrong
// call, and nothing is enqueued.
func (c *enqueueCmd) args(s *session, specs []jobs.Spec, wait time.Duration) error {
	for _, spec := range specs {
		if _, err := s.jobs.Feed(spec.Feed); err != nil {
			if s.json {
				_ = s.line(jobError{Feed: spec.Feed, Error: err.Error()})
			}
			return &exitError{exitUsage, err}
		}
	}
	worst := 0
	t := s.table("", jobHeader...)
	for _, spec := range specs {
		code := c.one(s, t, spec, wait)
		worst = worse(worst, code)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if worst != 0 {
		return &exitError{code: worst}
	}
	return nil
}

// one enqueues a job and prints its line; it answers the exit code for it.
func (c *enqueueCmd) one(s *session, t *table, spec jobs.Spec, wait time.Duration) int {
	j, err := s.jobs.Enqueue(s.ctx, spec)
	if err != nil {
		je := jobError{Feed: spec.Feed, ID: spec.ID, Error: err.Error()}
		var full *jobs.FullError
		if errors.As(err, &full) {
			je.RetryAfterMS = full.RetryAfter.Milliseconds()
		}
		if s.json {
			_ = s.line(je)
		}
		say(s.errOut, err)
		return codeOf(err)
	}
	code := 0
	if wait > 0 {
		ctx, cancel := context.WithTimeout(s.ctx, wait)
		last, werr := s.jobs.Wait(ctx, j.ID)
		cancel()
		if last.ID != "" {
			j = last
		}
		switch {
		case j.State == jobs.Done:
		case j.State.Ended():
			say(s.errOut, fmt.Errorf("job %s: %s: %s", j.ID, j.State, j.LastError))
			code = exitFailed
		case werr != nil && !errors.Is(werr, context.DeadlineExceeded):
			say(s.errOut, werr)
			code = exitFailed
		default:
			say(s.errOut, fmt.Errorf("job %s is %s after %s; it goes on: feedwarden jobs get %s", j.ID, j.State, wait, j.ID))
			code = exitRefused
		}
	}
	if err := t.add(jobLine(j), jobCells(j)...); err != nil {
		return exitFailed
	}
	return code
}

// worse keeps the exit code that matters more: wrong, then failed, then refused.
func worse(a, b int) int {
	rank := map[int]int{0: 0, exitRefused: 1, exitFailed: 2, exitUsage: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

type jobError struct {
	ID           string `json:"id,omitempty"`
	Feed         string `json:"feed,omitempty"`
	Line         int    `json:"line,omitempty"`
	Error        string `json:"error"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// maxLine bounds one line of standard input.
const maxLine = 64 << 10

// stream enqueues one job a line, of any number of lines. A bad line answers
// with its error, and the rest goes on.
func (c *enqueueCmd) stream(s *session, wait time.Duration) error {
	t := s.table("nothing came on standard input", jobHeader...)
	bad := 0
	err := eachLine(s.in, func(n int, line []byte, tooLong bool) error {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		fault := func(err error) error {
			bad++
			je := jobError{Line: n, Error: err.Error()}
			var full *jobs.FullError
			if errors.As(err, &full) {
				je.RetryAfterMS = full.RetryAfter.Milliseconds()
			}
			if s.json {
				return s.line(je)
			}
			say(s.errOut, fmt.Errorf("line %d: %w", n, err))
			return nil
		}
		if tooLong {
			return fault(fmt.Errorf("longer than %d bytes", maxLine))
		}
		r, err := jobs.DecodeRequest(line)
		if err != nil {
			return fault(err)
		}
		spec, err := c.fill(r).Spec(time.Now())
		if err != nil {
			return fault(err)
		}
		j, err := s.jobs.Enqueue(s.ctx, spec)
		if err != nil {
			return fault(err)
		}
		if wait > 0 {
			ctx, cancel := context.WithTimeout(s.ctx, wait)
			if last, _ := s.jobs.Wait(ctx, j.ID); last.ID != "" {
				j = last
			}
			cancel()
		}
		return t.add(jobLine(j), jobCells(j)...)
	})
	if ferr := t.flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return err
	}
	if bad > 0 {
		return &exitError{exitFailed, fmt.Errorf("%s not enqueued", count(bad, "line"))}
	}
	return nil
}

// fill gives a line what the flags say and it does not.
func (c *enqueueCmd) fill(r jobs.Request) jobs.Request {
	if r.Priority == "" {
		r.Priority = c.Priority
	}
	if r.In == "" && r.At == "" {
		r.In, r.At = c.In, c.At
	}
	if r.Expires == "" {
		r.Expires = c.Expires
	}
	if len(r.Params) == 0 {
		r.Params = c.Params
	}
	return r
}

// eachLine reads lines of any number; one longer than maxLine is told of and
// skipped, blank ones are skipped.
func eachLine(in io.Reader, f func(n int, line []byte, tooLong bool) error) error {
	r := bufio.NewReaderSize(in, maxLine)
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = true
			line, err = r.ReadSlice('\n')
		}
		if line = bytes.TrimSpace(line); n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if tooLong || len(line) > 0 {
			if ferr := f(n, line, tooLong); ferr != nil {
				return ferr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
	}
}

// jobLine is a job as JSON.
func jobLine(j jobs.Job) any { return j }

var jobHeader = []string{"ID", "FEED", "QUEUE", "STATE", "ATTEMPTS", "SNOOZES", "NEXT", "LAST ERROR"}

func jobCells(j jobs.Job) []string {
	return []string{j.ID, j.Feed, j.Queue, string(j.State), fmt.Sprint(j.Attempts), fmt.Sprint(j.Snoozes), instant(j.NextAt, time.Now()), clip(orDash(j.LastError), 90)}
}

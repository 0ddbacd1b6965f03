package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedwarden/internal/lines"
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
	ID       string            `name:"id" help:"The job's ID. Asking twice with one ID is asking once." placeholder:"ID"`
	Wait     string            `help:"Wait until the job has ended, 5m at most or as long as said. Exit 0 done, 1 failed, 75 not yet." placeholder:"[DUR]"`
}

func (c *enqueueCmd) Help() string {
	return `A line of standard input: {"feed":"news","params":{"k":"v"},"priority":"scheduled","in":"5m","at":"2026-11-30T08:00:00Z","expires":"1h","id":"…"}. All but feed may be left out.
Each job answers with a line; one that could not be enqueued with its error, and the rest goes on.
--expires counts from the instant at which the job may run.`
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
	if c.ID != "" && len(c.Feeds) == 1 && c.Feeds[0] == "-" {
		return usageError("--id names one job; a line of standard input has its own \"id\"")
	}
	if c.ID != "" && len(c.Feeds) > 1 {
		return usageError("--id names one job, and %d feeds are asked for: one feed a call", len(c.Feeds))
	}
	if len(c.Feeds) > 1 && slices.Contains(c.Feeds, "-") {
		return usageError("- reads the jobs from standard input; feeds beside it cannot be named")
	}
	if len(c.Feeds) == 1 && c.Feeds[0] == "-" {
		return e.with(func(s *session) error { return c.stream(s, wait) })
	}
	var specs []jobs.Spec
	for _, name := range c.Feeds {
		r := jobs.Request{Feed: name, Params: c.Params, Priority: c.Priority, In: c.In, At: c.At, Expires: c.Expires, ID: c.ID}
		spec, err := r.Spec()
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
	b := newBatch(s, wait)
	for _, spec := range specs {
		if err := b.enqueue(spec, 0); err != nil {
			return err
		}
	}
	return b.end()
}

// enqueueBatch enqueues jobs one after the other, prints a line for each, and
// remembers what the exit code has to be. With a wait, all are enqueued before
// any is waited for.
type enqueueBatch struct {
	s       *session
	t       *table
	until   time.Time // zero: no wait
	wait    time.Duration
	waiting []jobs.Job
	worst   int
}

func newBatch(s *session, wait time.Duration) *enqueueBatch {
	b := &enqueueBatch{s: s, t: s.table("nothing was asked for", jobHeader...), wait: wait}
	if wait > 0 {
		b.until = time.Now().Add(wait)
	}
	return b
}

// fault prints why a job was not enqueued, and goes on. line is that of the
// standard input, 0 for the command line.
func (b *enqueueBatch) fault(line int, feed, id string, err error) error {
	je := jobError{Line: line, Feed: feed, ID: id, Error: err.Error()}
	var full *jobs.FullError
	if errors.As(err, &full) {
		je.RetryAfterMS = full.RetryAfter.Milliseconds()
	}
	code := codeOf(err)
	if line > 0 && code == exitUsage {
		code = exitFailed // a bad line of many
	}
	b.worst = worse(b.worst, code)
	if b.s.json {
		if err := b.s.line(je); err != nil {
			return err
		}
	}
	if line > 0 {
		err = fmt.Errorf("line %d: %w", line, err)
	}
	say(b.s.errOut, err)
	return nil
}

func (b *enqueueBatch) enqueue(spec jobs.Spec, line int) error {
	j, err := b.s.jobs.Enqueue(b.s.ctx, spec)
	if err != nil {
		if b.s.ctx.Err() != nil {
			return err
		}
		return b.fault(line, spec.Feed, spec.ID, err)
	}
	if b.wait > 0 {
		b.waiting = append(b.waiting, j)
		return nil
	}
	return b.t.add(j, jobCells(j)...)
}

// end waits for what is to be waited for, and answers the exit code.
func (b *enqueueBatch) end() error {
	for _, j := range b.waiting {
		ctx, cancel := context.WithDeadline(b.s.ctx, b.until)
		last, err := b.s.jobs.Wait(ctx, j.ID)
		cancel()
		if last.ID != "" {
			j = last
		}
		switch {
		case j.State == jobs.Done:
		case j.State.Ended():
			say(b.s.errOut, fmt.Errorf("job %s: %s: %s", j.ID, j.State, j.LastError))
			b.worst = worse(b.worst, exitFailed)
		case err != nil && !errors.Is(err, context.DeadlineExceeded) && b.s.ctx.Err() == nil:
			say(b.s.errOut, err)
			b.worst = worse(b.worst, exitFailed)
		default:
			say(b.s.errOut, fmt.Errorf("job %s is %s and goes on; look with: feedwarden jobs get %s", j.ID, j.State, j.ID))
			b.worst = worse(b.worst, exitRefused)
		}
		if err := b.t.add(j, jobCells(j)...); err != nil {
			return err
		}
	}
	if err := b.t.flush(); err != nil {
		return err
	}
	if b.worst != 0 {
		return &exitError{code: b.worst}
	}
	return nil
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
	ID           string `json:"id,omitempty" placeholder:"ID"`
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
	b := newBatch(s, wait)
	err := lines.Each(s.in, maxLine, func(n int, line []byte, tooLong bool) error {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if tooLong {
			return b.fault(n, "", "", &jobs.SpecError{Problem: fmt.Sprintf("longer than %d bytes", maxLine)})
		}
		r, err := jobs.DecodeRequest(line)
		if err != nil {
			return b.fault(n, r.Feed, r.ID, err)
		}
		spec, err := c.fill(r).Spec()
		if err != nil {
			return b.fault(n, r.Feed, r.ID, err)
		}
		return b.enqueue(spec, n)
	})
	if err != nil {
		return err
	}
	return b.end()
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
	if len(r.Params)+len(r.Param) == 0 {
		r.Params = c.Params
	}
	return r
}

var jobHeader = []string{"ID", "FEED", "QUEUE", "STATE", "ATTEMPTS", "SNOOZES", "NEXT", "LAST ERROR"}

func jobCells(j jobs.Job) []string {
	why := j.LastError
	if j.State == jobs.Snoozed {
		// NEXT says until when.
		if _, reason, ok := strings.Cut(why, "Z: "); ok {
			why = reason
		}
	}
	return []string{j.ID, j.Feed, j.Queue, string(j.State), fmt.Sprint(j.Attempts), fmt.Sprint(j.Snoozes), instant(j.NextAt, time.Now()), orDash(why)}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"feedwarden/internal/units"
	"feedwarden/scheduler"
	"feedwarden/web"
)

// schedules shows the dispatcher to the web role and to commands.
type schedules struct{ d *scheduler.Dispatcher }

func newSchedules(d *scheduler.Dispatcher) *schedules { return &schedules{d} }

func (s *schedules) List(ctx context.Context) ([]web.ScheduleView, error) {
	states, err := s.d.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]web.ScheduleView, len(states))
	for i, st := range states {
		out[i] = scheduleView(st)
	}
	return out, nil
}

func scheduleView(st scheduler.State) web.ScheduleView {
	v := web.ScheduleView{
		Name: st.Name, Feed: st.Feed, Expression: st.Expression, Timezone: st.Timezone, State: st.State,
		NextAt: st.Next, NextFireAt: st.NextFire, LastAt: st.Last, LatenessMS: st.LatenessMS, DueAt: st.Due, Hold: st.Hold,
		Dispatched: st.Dispatched, Skipped: st.Skipped, Missed: st.Missed,
	}
	if st.State == scheduler.StatePaused && st.Pause != nil {
		v.PausedBy, v.PausedUntil = st.Pause.By, st.Pause.Until
	}
	if st.Hold == "error" {
		v.LastError = "its tick could not be enqueued; the scheduler's log says why"
	}
	return v
}

// Ahead makes the timeline of the dashboard.
func (s *schedules) Ahead(ctx context.Context, span time.Duration, most int) ([]web.Upcoming, bool, error) {
	ticks, more := s.d.Ahead(time.Now(), span, most)
	out := make([]web.Upcoming, len(ticks))
	for i, t := range ticks {
		out[i] = web.Upcoming{Schedule: t.Schedule, Feed: t.Feed, At: t.Instant, FireAt: t.FireAt}
	}
	return out, more, ctx.Err()
}

func (s *schedules) Pause(ctx context.Context, name, who string, until time.Time) error {
	return known(s.d.Pause(ctx, name, until, who))
}

// Resume of what is not paused is done already.
func (s *schedules) Resume(ctx context.Context, name, who string) error {
	err := s.d.Resume(ctx, name, who)
	if errors.Is(err, scheduler.ErrNotPaused) {
		return nil
	}
	return known(err)
}

func (s *schedules) Trigger(ctx context.Context, name, who string) (string, error) {
	id, err := s.d.Trigger(ctx, name, who)
	return id, known(err)
}

// known puts the scheduler's words for a name that it does not know, and for what
// it does not take now, into the web's.
func known(err error) error {
	if errors.Is(err, scheduler.ErrTooManyRequests) {
		return &web.RefusedError{Reason: err.Error(), RetryAfter: 10 * time.Second}
	}
	if errors.Is(err, scheduler.ErrUnknownSchedule) {
		return fmt.Errorf("%w (feedwarden schedules list)", web.ErrUnknownSchedule)
	}
	return err
}

type schedulesCmd struct {
	List     schedulesListCmd     `cmd:"" help:"Every schedule: last, next, lateness, state."`
	Next     schedulesNextCmd     `cmd:"" help:"The next instants of an expression. Needs no config."`
	Pause    schedulesPauseCmd    `cmd:"" help:"Keep a schedule's ticks from running."`
	Resume   schedulesResumeCmd   `cmd:"" help:"End a pause."`
	Trigger  schedulesTriggerCmd  `cmd:"" help:"One tick now, made by a running scheduler."`
	Backfill schedulesBackfillCmd `cmd:"" help:"The ticks of a past range once more."`
}

type schedulesListCmd struct{}

func (schedulesListCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		list, err := s.schedules.List(s.ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		t := e.table("no feed has a schedule", "SCHEDULE", "EXPRESSION", "TIMEZONE", "STATE", "LAST", "LATE BY", "NEXT", "RUN", "SKIPPED", "MISSED")
		t.spare = []string{"RUN", "LATE BY"}
		for _, v := range list {
			late := "—"
			if v.LastAt != nil {
				late = span(time.Duration(v.LatenessMS) * time.Millisecond)
			}
			state := v.State
			if v.Hold != "" {
				state += " (" + v.Hold + ")"
			}
			err := t.add(v, v.Name, v.Expression, v.Timezone, state, instant(v.LastAt, now), late, instant(v.NextAt, now),
				strconv.FormatInt(v.Dispatched, 10), strconv.FormatInt(v.Skipped, 10), strconv.FormatInt(v.Missed, 10))
			if err != nil {
				return err
			}
		}
		return t.flush()
	})
}

type schedulesNextCmd struct {
	Expr     []string `arg:"" name:"expr" help:"Five fields, @daily and its like, or @every DUR; TZ=ZONE may stand in front. Quote it: a shell reads * as file names."`
	Timezone string   `help:"The zone that the expression is read in." default:"UTC" placeholder:"ZONE"`
	From     string   `help:"Instants after this one, RFC 3339. Default: now." placeholder:"INSTANT"`
	N        int      `short:"n" help:"How many." default:"5"`
}

// mostInstants bounds what one call prints.
const mostInstants = 100_000

func (c *schedulesNextCmd) Run(e *env, cli *CLI) error {
	from := time.Now()
	if c.From != "" {
		t, err := time.Parse(time.RFC3339, c.From)
		if err != nil {
			return usageError("--from %s: an instant of RFC 3339 is wanted, such as 2026-11-30T08:00:00Z", c.From)
		}
		from = t
	}
	if c.N < 1 || c.N > mostInstants {
		return usageError("-n %d: 1 to %d are printed", c.N, mostInstants)
	}
	if _, err := scheduler.LoadZone(c.Timezone); err != nil {
		return usageError("--timezone: %v", err)
	}
	list, err := scheduler.NextInstants(strings.Join(c.Expr, " "), c.Timezone, from, c.N)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if len(list) == 0 {
		return usageError("%q has no instant after %s that can be written with a year of four digits", strings.Join(c.Expr, " "), from.Format(time.RFC3339))
	}
	for _, text := range list {
		// One instant a line is as good for a script as for a person; --json quotes it.
		if cli.JSON {
			err = e.line(text)
		} else {
			_, err = fmt.Fprintln(e.out, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// who is the person at the keyboard, for those who look later.
func who() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "command line"
}

type schedulesPauseCmd struct {
	Name  string `arg:"" help:"The schedule: its feed's name."`
	Until string `help:"Resume by itself at this instant, RFC 3339." placeholder:"INSTANT" xor:"end"`
	For   string `help:"Resume by itself after this time." placeholder:"DUR" xor:"end"`
}

func (c *schedulesPauseCmd) Run(e *env) error {
	var until time.Time
	if c.Until != "" {
		t, err := time.Parse(time.RFC3339, c.Until)
		if err != nil || !t.After(time.Now()) {
			return usageError("--until %s: an instant to come is wanted, RFC 3339", c.Until)
		}
		until = t
	}
	if c.For != "" {
		d, err := units.ParseDuration(c.For)
		if err != nil || d <= 0 {
			return usageError("--for %s: a duration such as 10m or 1d is wanted", c.For)
		}
		until = time.Now().Add(d)
	}
	return e.with(func(s *session) error {
		if err := s.scheduled(c.Name); err != nil {
			return err
		}
		if err := s.schedules.Pause(s.ctx, c.Name, who(), until); err != nil {
			return err
		}
		return showSchedule(s, c.Name)
	})
}

type schedulesResumeCmd struct {
	Name string `arg:"" help:"The schedule."`
}

func (c *schedulesResumeCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		if err := s.scheduled(c.Name); err != nil {
			return err
		}
		if err := s.schedules.Resume(s.ctx, c.Name, who()); err != nil {
			return err
		}
		return showSchedule(s, c.Name)
	})
}

// showSchedule prints a schedule as it stands after an action.
func showSchedule(s *session, name string) error {
	list, err := s.schedules.List(s.ctx)
	if err != nil {
		return err
	}
	for _, v := range list {
		if v.Name != name {
			continue
		}
		if s.json {
			return s.line(v)
		}
		until := ""
		if v.State == scheduler.StatePaused {
			until = " by " + v.PausedBy
			if v.PausedUntil != nil {
				until += " until " + instant(v.PausedUntil, time.Now())
			}
		}
		_, err := fmt.Fprintf(s.out, "%s is %s%s\n", name, v.State, until)
		return err
	}
	return fmt.Errorf("%w: %q", web.ErrUnknownSchedule, name)
}

// later tells a script when to ask again, where err is a refusal for now.
func (s *session) later(err error) error {
	var refused *web.RefusedError
	if errors.As(err, &refused) && s.json {
		return errors.Join(err, s.line(map[string]any{"id": "", "retry_after_ms": refused.RetryAfter.Milliseconds()}))
	}
	return err
}

type schedulesTriggerCmd struct {
	Name string `arg:"" help:"The schedule."`
}

func (c *schedulesTriggerCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		if err := s.scheduled(c.Name); err != nil {
			return err
		}
		id, err := s.schedules.Trigger(s.ctx, c.Name, who())
		if err != nil {
			return s.later(err)
		}
		if e.json {
			return e.line(map[string]any{"schedule": c.Name, "id": id})
		}
		fmt.Fprintf(e.out, "asked for one tick of %s (%s); a running scheduler makes its job within a second\n", c.Name, id)
		return nil
	})
}

type schedulesBackfillCmd struct {
	Name string `arg:"" help:"The schedule."`
	From string `required:"" help:"First instant, RFC 3339." placeholder:"INSTANT"`
	To   string `required:"" help:"Last instant, RFC 3339, not in the future." placeholder:"INSTANT"`
}

func (c *schedulesBackfillCmd) Run(e *env) error {
	from, err := time.Parse(time.RFC3339, c.From)
	if err != nil {
		return usageError("--from %s: an instant of RFC 3339 is wanted", c.From)
	}
	to, err := time.Parse(time.RFC3339, c.To)
	if err != nil {
		return usageError("--to %s: an instant of RFC 3339 is wanted", c.To)
	}
	switch {
	case to.Before(from):
		return usageError("--to %s lies before --from %s", c.To, c.From)
	case to.After(time.Now()):
		return usageError("--to %s lies in the future; the schedule itself sees to what comes", c.To)
	}
	return e.with(func(s *session) error {
		if err := s.scheduled(c.Name); err != nil {
			return err
		}
		id, ticks, err := s.schedules.d.Backfill(s.ctx, c.Name, from, to, who())
		if err != nil {
			return s.later(known(err))
		}
		if e.json {
			return e.line(map[string]any{"schedule": c.Name, "id": id, "ticks": ticks})
		}
		fmt.Fprintf(e.out, "asked for %s of %s (%s); a running scheduler makes their jobs\n", count(ticks, "tick"), c.Name, id)
		return nil
	})
}

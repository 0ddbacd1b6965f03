package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"feedwarden/internal/doctor"
	"feedwarden/internal/redisconn"
	"feedwarden/scheduler"
)

type doctorCmd struct {
	AcceptPrimary bool `help:"Take the present Redis as it is, with the writes that it lacks: processes that refuse to write to it go on. Then examine."`
	Quiet         bool `short:"q" help:"Only what is not ok."`
}

// Help is what --help says besides the flags.
func (doctorCmd) Help() string {
	return `Checks Redis (version, role, persistence, maxmemory-policy, replicas, clock, a primary that lost writes), the processes that run and their config,
queues, quotas and their lines, running limits and leases, pools, schedules, feeds. Each finding says what to do.

Severity is ok, unknown (the server forbids to ask), warning or broken. Exit 0: nothing is broken; 1: something is.`
}

func (c doctorCmd) Run(e *env) error {
	var all []doctor.Finding
	err := e.guarded(redisconn.GuardNone, func(s *session) error {
		if c.AcceptPrimary {
			alarm, err := s.conn.AcceptPrimary(s.ctx)
			if err != nil {
				return err
			}
			said := "there was no alarm; the primary is accepted as it is"
			if alarm {
				said = "the primary is accepted with what it lacks; processes write again within a second"
			}
			fmt.Fprintln(e.errOut, "feedwarden:", said)
		}
		all = s.world().Examine(s.ctx)
		return nil
	})
	var start *redisconn.StartError
	if errors.As(err, &start) {
		all, err = []doctor.Finding{{Check: "redis", Severity: doctor.Broken, What: start.Where + ": " + start.Problem, Do: start.Advice}}, nil
	}
	if err != nil {
		return err
	}
	if err := c.print(e, all); err != nil {
		return err
	}
	if doctor.Sick(all) {
		return &exitError{code: exitFailed}
	}
	return nil
}

// print writes the worst first for a person, and as they were found for a program.
func (c doctorCmd) print(e *env, all []doctor.Finding) error {
	rank := map[doctor.Severity]int{doctor.Broken: 0, doctor.Warning: 1, doctor.Unknown: 2, doctor.OK: 3}
	seen := map[doctor.Severity]int{}
	for _, f := range all {
		seen[f.Severity]++
	}
	if c.Quiet {
		all = slices.DeleteFunc(all, func(f doctor.Finding) bool { return f.Severity == doctor.OK })
	}
	if e.json {
		for _, f := range all {
			if err := e.line(f); err != nil {
				return err
			}
		}
		return nil
	}
	slices.SortStableFunc(all, func(a, b doctor.Finding) int { return rank[a.Severity] - rank[b.Severity] })
	colour := map[doctor.Severity]string{doctor.Broken: red, doctor.Warning: yellow, doctor.OK: green, doctor.Unknown: dim}
	for _, f := range all {
		severity := fmt.Sprintf("%-8s", f.Severity)
		if e.colour {
			severity = "\x1b[" + colour[f.Severity] + "m" + severity + "\x1b[0m"
		}
		name := f.Check
		if f.Subject != "" {
			name += " " + f.Subject
		}
		lines := folded(oneLine(name+": "+f.What), e.width-10)
		if f.Do != "" {
			lines = append(lines, folded(oneLine("→ "+f.Do), e.width-10)...)
		}
		if _, err := fmt.Fprintf(e.out, "%s  %s\n", severity, strings.Join(lines, "\n"+strings.Repeat(" ", 10))); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(e.out, "%d broken, %s, %d unknown, %d ok\n", seen[doctor.Broken], count(seen[doctor.Warning], "warning"), seen[doctor.Unknown], seen[doctor.OK])
	return err
}

// world is what a doctor examines.
func (s *session) world() doctor.World {
	w := doctor.World{
		Redis: s.rdb, Memory: s.conn.Mode() == "embedded miniredis",
		Alarm: func(ctx context.Context) (string, error) {
			r, err := s.conn.Alarm(ctx)
			if r == nil {
				return "", err
			}
			return r.Reason, err
		},
		Clock: func(ctx context.Context) (offset, trip time.Duration, err error) {
			c, err := s.conn.Clock(ctx)
			return c.Offset, c.RoundTrip, err
		},
		Queues: maps.Clone(s.settings.jobs.QueueLimits), Quotas: s.quotas, Leases: s.leases, Pools: s.pools,
		Feeds: s.settings.jobs.Feeds, Store: s.feeds,
		Schedules: func(ctx context.Context) ([]scheduler.State, error) { return s.schedules.d.List(ctx) },
		Config:    s.settings.digest(), Version: version(),
	}
	for _, q := range s.quotas.Names() {
		w.Running = append(w.Running, "quota:"+q)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.settings.jobs.PerSource)) {
		w.Running = append(w.Running, "source:"+kind)
	}
	return w
}

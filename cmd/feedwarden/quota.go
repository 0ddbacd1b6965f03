package main

import (
	"fmt"
	"strings"

	"feedwarden/internal/units"
	"feedwarden/quota"
	"feedwarden/web"
)

type quotaCmd struct {
	List    quotaListCmd    `cmd:"" help:"Every quota: used, remaining, who waits."`
	Show    quotaShowCmd    `cmd:"" help:"One quota with the line before it and its past day; or host:HOST."`
	Charge  quotaChargeCmd  `cmd:"" help:"Take units, as any script may that shares the budget. Refused: exit 75 and retry_after_ms."`
	Refund  quotaRefundCmd  `cmd:"" help:"Give a charge's units back, or leave the line."`
	Block   quotaBlockCmd   `cmd:"" help:"Close a quota, or host:HOST, for everybody for a time."`
	Unblock quotaUnblockCmd `cmd:"" help:"Open it again."`
}

var quotaHeader = []string{"QUOTA", "USED", "REMAINING", "WAITING", "BLOCKED UNTIL", "NEXT RELEASE", "GRANTS", "REFUSALS"}

func quotaCells(s quota.State) []string {
	var used []string
	for _, w := range s.Windows {
		per := units.FormatDuration(w.Per)
		if w.Calendar != "" {
			per = w.Calendar
		}
		used = append(used, fmt.Sprintf("%d/%d per %s", w.Used, w.Limit, per))
	}
	blocked := "—"
	if !s.BlockedUntil.IsZero() {
		blocked = instant(&s.BlockedUntil, s.Now)
	}
	return []string{s.Name, strings.Join(used, ", "), fmt.Sprint(s.Remaining),
		fmt.Sprint(s.Scheduled.Waiting + s.Interactive.Waiting), blocked, instant(&s.NextRelease, s.Now), fmt.Sprint(s.Grants), fmt.Sprint(s.Refusals)}
}

type quotaListCmd struct{}

func (quotaListCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		t := e.table("the config has no quotas", quotaHeader...)
		t.spare = []string{"GRANTS", "REFUSALS"}
		for _, name := range s.quotas.Names() {
			st, view, err := s.quota(name)
			if err != nil {
				return err
			}
			if err := t.add(view, quotaCells(st)...); err != nil {
				return err
			}
		}
		return t.flush()
	})
}

type quotaChargeCmd struct {
	Name     string `arg:"" help:"The quota."`
	Cost     string `required:"" help:"Units to take." placeholder:"N"`
	ID       string `name:"id" required:"" help:"Names this charge: the same ID asked twice is charged once." placeholder:"ID"`
	Priority string `help:"scheduled, or interactive: before the scheduled ones, and from the reserve too." enum:"interactive,scheduled" default:"scheduled"`
	NoLine   bool   `help:"Refused, take no place in the line."`
	Label    string `help:"For whom: shown among the feeds on the quota's page; 64 characters at most." placeholder:"NAME"`
}

func (c *quotaChargeCmd) Run(e *env) error {
	cost, err := quota.ParseCost(c.Cost)
	if err != nil {
		return usageError("--cost %s: a whole number of units is wanted, 1 or more", c.Cost)
	}
	priority := quota.Interactive
	if c.Priority == "scheduled" {
		priority = quota.Scheduled
	}
	return e.with(func(s *session) error {
		d, err := s.quotas.Charge(s.ctx, quota.Request{Quota: c.Name, ID: c.ID, Cost: cost, Priority: priority, NoLine: c.NoLine, Label: c.Label})
		if err != nil {
			return err
		}
		if e.json {
			if err := e.line(web.ChargeView(d)); err != nil {
				return err
			}
		}
		switch {
		case d.Granted && !e.json:
			fmt.Fprintf(e.out, "granted: %d of quota %s\n", d.Cost, c.Name)
		case !d.Granted:
			place := ""
			if d.Position > 0 {
				place = fmt.Sprintf(", place %d in the line", d.Position)
			}
			return &exitError{exitRefused, fmt.Errorf("refused (%s): try again in %s%s", d.Reason, d.RetryAfter, place)}
		}
		return nil
	})
}

type quotaRefundCmd struct {
	Name string `arg:"" help:"The quota."`
	ID   string `name:"id" required:"" help:"The charge." placeholder:"ID"`
}

func (c *quotaRefundCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		n, err := s.quotas.Refund(s.ctx, c.Name, c.ID)
		if err == nil {
			// Units or a place: either may let the next in line go.
			err = s.jobs.WakeLine(s.ctx, c.Name)
		}
		if err != nil {
			return err
		}
		if e.json {
			return e.line(web.Refund{ID: c.ID, Restored: n})
		}
		fmt.Fprintf(e.out, "%d given back\n", n)
		return nil
	})
}

type quotaBlockCmd struct {
	Name   string `arg:"" help:"The quota, or host:HOST."`
	For    string `required:"" help:"How long. Of two blocks the one that ends later holds." placeholder:"DUR"`
	Reason string `help:"Why, for those who look." default:"by hand"`
}

func (c *quotaBlockCmd) Run(e *env) error {
	d, err := units.ParseDuration(c.For)
	if err != nil || d <= 0 {
		return usageError("--for %s: a duration such as 10m or 1d is wanted", c.For)
	}
	return e.with(func(s *session) error {
		b, err := s.block(c.Name, d, c.Reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.line(map[string]any{"name": c.Name, "blocked_until": b.until.UTC(), "reason": b.reason})
		}
		fmt.Fprintf(s.out, "%s is closed until %s at least: %s\n", blocked(c.Name), instant(&b.until, b.now), oneLine(b.reason))
		return nil
	})
}

type quotaUnblockCmd struct {
	Name string `arg:"" help:"The quota, or host:HOST: one that a target's Retry-After closed."`
}

func (c *quotaUnblockCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		if err := s.unblock(c.Name); err != nil {
			return err
		}
		if e.json {
			return e.line(map[string]any{"name": c.Name, "blocked_until": nil})
		}
		fmt.Fprintf(e.out, "%s is open\n", blocked(c.Name))
		return nil
	})
}

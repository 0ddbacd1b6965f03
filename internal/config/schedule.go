package config

import (
	"errors"
	"fmt"
	"time"

	"feedwarden/scheduler"
)

// ParseSchedule tells what is wrong with a cron expression in a zone of the tz
// database: that it is malformed, or that it never fires.
type ParseSchedule func(expression, zone string) error

// parseSchedule asks the package that will dispatch the ticks.
func parseSchedule(expression, zone string) error {
	loc, err := scheduler.LoadZone(zone)
	if err != nil {
		return err
	}
	_, err = scheduler.Parse(expression, loc)
	var bad *scheduler.ExpressionError
	if !errors.As(err, &bad) {
		return err
	}
	if bad.Field == "" {
		return errors.New(bad.Reason)
	}
	return fmt.Errorf("%s: %s", bad.Field, bad.Reason)
}

// zone loads a time zone, or reports that there is none of that name.
func (d *decoder) zone(n *node, p path) *time.Location {
	name := n.text()
	loc, err := scheduler.LoadZone(name)
	if err == nil {
		return loc
	}
	want := "want a name of the tz database, such as Asia/Dhaka or UTC"
	if better := scheduler.NearZone(name); better != "" {
		want = fmt.Sprintf("did you mean %q?", better)
	}
	d.bad(n, p, "is no time zone", want)
	return nil
}

// timing reads when a feed is fetched.
func (d *decoder) timing(f *fields, to *Feed) {
	if n := f.text("timezone", &to.Timezone); n != nil && d.zone(n, f.path.key("timezone")) == nil {
		to.Timezone = "UTC"
	}
	if n := f.text("schedule", &to.Schedule); n != nil {
		if err := d.schedule(to.Schedule, to.Timezone); err != nil {
			f.bad("schedule", n, "is no schedule: "+d.scrub(firstLine(err.Error())), "")
		}
	}
	f.duration("jitter", &to.Jitter, 0)
	f.choice("overlap", &to.Overlap, "skip", "queue-one", "allow")
	p := f.path.key("catch_up")
	c := d.section(f.node("catch_up"), p, f.pos("catch_up"))
	c.choice("policy", &to.CatchUp.Policy, "none", "latest", "all")
	c.duration("within", &to.CatchUp.Within, time.Second)
	c.done(nil)
	f.duration("spread", &to.Spread, 0)
}

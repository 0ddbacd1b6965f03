package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/config"
	"feedwarden/internal/demo"
	"feedwarden/jobs"
	"feedwarden/scheduler/plan"
)

// scaledConfig is a day's config, in hours; and the same with seconds for hours.
const scaledConfig = `
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
worker: {shutdown: 3s}
fetch: {allow_private: true}
quotas:
  tight: {windows: [{limit: 40, per: 7.5UNIT}, {limit: 12, per: 0.9UNIT}]}
  bursts: {windows: [{limit: 4, per: 0.9UNIT}]}
  wide: {windows: [{limit: 400, per: 24UNIT}]}
feeds:
  trending:
    source: youtube
    method: videos.list
    key: an-api-key
    base_url: BASE
    params: {chart: mostPopular, regionCode: "{region}", maxResults: 5}
    each: {region: [BD, PH, HR, IN, US, GB, JP, BR]}
    schedule: "@every 2UNIT"
    overlap: allow
    quota: tight
    ttl: 3UNIT
  slow:
    source: syndication
    url: FEED
    params: {of: "{n}"}
    each: {n: [a, b, c, d]}
    schedule: "@every 3UNIT"
    quota: tight
    cost: 3
    ttl: 6UNIT
  together:
    source: syndication
    url: FEED
    params: {of: "{n}"}
    each: {n: [e, f, g, h, i, j]}
    schedule: "@every 3UNIT"
    quota: bursts
    ttl: 6UNIT
  news:
    source: syndication
    url: FEED
    schedule: "@every 1UNIT"
    quota: wide
    cost: 2
    ttl: 2UNIT
`

// ticked are the jobs of ticks before end, once none of them is under way. One
// that woke after it counts as asleep.
func ticked(s *session, end time.Time) ([]jobs.Job, error) {
	for deadline := end.Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, err := s.jobs.List(s.ctx, jobs.Filter{Limit: 1000})
		if err != nil {
			return nil, err
		}
		var out []jobs.Job
		busy := false
		for _, j := range all {
			tick, err := time.Parse(time.RFC3339, *j.Tick)
			if err != nil {
				return nil, err
			}
			if !tick.Before(end) {
				continue
			}
			switch {
			case j.State == jobs.Pending || j.State == jobs.Running || j.State == jobs.Scheduled:
				busy = true
			case j.State == jobs.Done && j.Snoozes > 0 && j.EndedAt.After(end.Add(3*unit/10)):
				j.State = jobs.Snoozed
			}
			out = append(out, j)
		}
		if !busy || time.Now().After(deadline) {
			return out, nil
		}
	}
}

// unit is what an hour of the plan takes in the real run.
const unit = 2 * time.Second

var scaled = regexp.MustCompile(`([0-9.]+)UNIT`)

// scaledTo is the config with one of its units as long as that.
func scaledTo(unit time.Duration) string {
	return scaled.ReplaceAllStringFunc(scaledConfig, func(s string) string {
		n, _ := strconv.ParseFloat(strings.TrimSuffix(s, "UNIT"), 64)
		return time.Duration(n * float64(unit)).String()
	})
}

// realRun is what came of the config in so many units.
type realRun struct {
	units        map[string]int64 // by quota
	waited, done int
	stall        time.Duration // the longest time by which this process itself came late
}

// What is planned for a day of hours happens in less than a minute: real Redis,
// scheduler, worker and fetches use the units that the plan says, within 2 %,
// and refuse about as many ticks. A run in which the machine stood still says
// nothing of that, and is made again, twice at most.
func TestRealRunOnScaledTimeUsesTheUnitsThatWerePlanned(t *testing.T) {
	t.Parallel()
	const units = 22 // nothing is granted around the end of that one
	for try := 1; ; try++ {
		planned, real := runScaled(t, units)
		faults := compared(t, planned, real)
		if len(faults) == 0 {
			return
		}
		if try == 3 || real.stall < unit/20 {
			t.Fatal(strings.Join(faults, "; "))
		}
		t.Logf("again, this machine stood still for %s: %s", real.stall, strings.Join(faults, "; "))
	}
}

// compared says in what a run differs from the plan.
func compared(t *testing.T, planned *plan.Result, real realRun) (faults []string) {
	t.Helper()
	refused := 0
	for _, q := range planned.Quotas {
		refused += q.Refused
		if off := math.Abs(float64(real.units[q.Name]-q.Granted)) / float64(q.Granted); off > 0.02 {
			faults = append(faults, fmt.Sprintf("quota %s: %d units used, %d planned: %.1f%% off", q.Name, real.units[q.Name], q.Granted, 100*off))
		}
		t.Logf("quota %s: %d units needed, %d planned, %d used", q.Name, q.Needed, q.Granted, real.units[q.Name])
	}
	t.Logf("%d jobs done; %d waited, %d planned; stood still for %s at most", real.done, real.waited, refused, real.stall)
	if refused < 20 || math.Abs(float64(real.waited-refused)) > 0.2*float64(refused) {
		faults = append(faults, fmt.Sprintf("%d ticks waited, %d planned", real.waited, refused))
	}
	return faults
}

// runScaled plans so many hours, and runs so many units.
func runScaled(t *testing.T, units int) (*plan.Result, realRun) {
	t.Helper()
	p := newPlace(t, demo.Options{Limit: 100_000})
	p.write(scaledTo(time.Hour))
	planned := planOf(t, p.config, time.Duration(units)*time.Hour)
	p.write(scaledTo(unit))
	out := realRun{units: map[string]int64{}}
	e := newEnv(t.Context(), strings.NewReader(""), io.Discard, io.Discard)
	e.configPath = p.config
	err := e.with(func(s *session) error {
		// All schedules begin at one instant, on an edge of all their intervals.
		begin := time.Now().Add(6 * unit).Truncate(6 * unit)
		if time.Until(begin) < 5*time.Second {
			begin = begin.Add(6 * unit)
		}
		for _, f := range s.settings.entries {
			if err := s.schedules.d.Pause(s.ctx, f.Name, begin, "test"); err != nil {
				return err
			}
		}
		serve := p.start("serve")
		serve.url()
		defer serve.terminate()
		if time.Until(begin) < 0 {
			t.Fatal("this machine is too slow: the product does not start in five seconds")
		}
		end := begin.Add(time.Duration(units) * unit)
		var err error
		if out.stall, err = until(s.ctx, begin, end); err != nil {
			return err
		}
		all, err := ticked(s, end)
		if err != nil {
			return err
		}
		for _, j := range all {
			if j.State == jobs.Snoozed {
				out.waited++
			}
			if j.State != jobs.Done {
				continue
			}
			out.done++
			f, err := s.jobs.Feed(j.Feed)
			if err != nil {
				return err
			}
			out.units[f.Quota] += f.Cost * int64(j.Sent)
			tick, err := time.Parse(time.RFC3339, *j.Tick)
			if err != nil {
				return err
			}
			// A wait of a third of a unit is one; less is what the machine is slow.
			if j.Snoozes > 0 && j.EndedAt.Sub(tick) > 3*unit/10 {
				out.waited++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return planned, out
}

// planOf plans a config.
func planOf(t *testing.T, path string, span time.Duration) *plan.Result {
	t.Helper()
	f, err := config.Load(path, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Run(t.Context(), planConfig(f), time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), span)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// until waits for the end of a time, and says by how much the wait came late since
// its begin, at most: a poll that is to come every few milliseconds.
func until(ctx context.Context, begin, end time.Time) (stall time.Duration, err error) {
	const poll = 5 * time.Millisecond
	for last := time.Now(); last.Before(end); {
		select {
		case <-ctx.Done():
			return stall, fmt.Errorf("test: %w", ctx.Err())
		case <-time.After(poll):
		}
		now := time.Now()
		if now.After(begin) {
			stall = max(stall, now.Sub(last)-poll)
		}
		last = now
	}
	return stall, nil
}

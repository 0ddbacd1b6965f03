package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
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
  tight: {windows: [{limit: 40, per: 7500MILLI}, {limit: 12, per: 900MILLI}]}
  bursts: {windows: [{limit: 4, per: 900MILLI}]}
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
			case j.State == jobs.Done && j.Snoozes > 0 && j.EndedAt.After(end.Add(300*time.Millisecond)):
				j.State = jobs.Snoozed
			}
			out = append(out, j)
		}
		if !busy || time.Now().After(deadline) {
			return out, nil
		}
	}
}

// What is planned for a day of hours happens in so many seconds: real Redis,
// scheduler, worker and fetches use the units that the plan says, within 2 %,
// and refuse about as many ticks.
func TestRealRunOnScaledTimeUsesTheUnitsThatWerePlanned(t *testing.T) {
	t.Parallel()
	const units = 22 * time.Second // of the first, or hours for them; nothing is granted around its end
	p := newPlace(t, demo.Options{Limit: 100_000})

	p.write(strings.NewReplacer("UNIT", "s", "MILLI", "ms").Replace(scaledConfig))
	planned := planOfADay(t, p, units*3600)

	real := map[string]int64{}
	var waited, done int
	e := newEnv(t.Context(), strings.NewReader(""), io.Discard, io.Discard)
	e.configPath = p.config
	err := e.with(func(s *session) error {
		// All schedules begin at one instant, on an edge of all their intervals.
		begin := time.Now().Add(6 * time.Second).Truncate(6 * time.Second)
		if time.Until(begin) < 4*time.Second {
			begin = begin.Add(6 * time.Second)
		}
		for _, f := range s.settings.entries {
			if err := s.schedules.d.Pause(s.ctx, f.Name, begin, "test"); err != nil {
				return err
			}
		}
		p.start("serve").url()
		if time.Until(begin) < 0 {
			t.Fatal("this machine is too slow: the product does not start in six seconds")
		}
		end := begin.Add(units)
		if err := until(s.ctx, end); err != nil {
			return err
		}
		all, err := ticked(s, end)
		if err != nil {
			return err
		}
		for _, j := range all {
			if j.State == jobs.Snoozed {
				waited++
			}
			if j.State != jobs.Done {
				continue
			}
			done++
			f, err := s.jobs.Feed(j.Feed)
			if err != nil {
				return err
			}
			real[f.Quota] += f.Cost * int64(j.Sent)
			tick, err := time.Parse(time.RFC3339, *j.Tick)
			if err != nil {
				return err
			}
			// A wait of a third of a unit is one; less is what the machine is slow.
			if j.Snoozes > 0 && j.EndedAt.Sub(tick) > 300*time.Millisecond {
				waited++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, q := range planned.Quotas {
		refused += q.Refused
		if off := math.Abs(float64(real[q.Name]-q.Granted)) / float64(q.Granted); off > 0.02 {
			t.Errorf("quota %s: %d units used, %d planned: %.1f%% off", q.Name, real[q.Name], q.Granted, 100*off)
		}
		t.Logf("quota %s: %d units needed, %d planned, %d used", q.Name, q.Needed, q.Granted, real[q.Name])
	}
	t.Logf("%d jobs done; %d waited, %d planned", done, waited, refused)
	if refused < 20 || math.Abs(float64(waited-refused)) > 0.2*float64(refused) {
		t.Errorf("%d ticks waited, %d planned", waited, refused)
	}
}

// planOfADay plans the config with hours for seconds.
func planOfADay(t *testing.T, p *place, span time.Duration) *plan.Result {
	t.Helper()
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	hours := strings.NewReplacer("7500ms", "7h30m", "900ms", "54m", "24s", "24h", "2s", "2h", "3s", "3h", "6s", "6h", "1s", "1h").Replace(string(text))
	path := filepath.Join(t.TempDir(), "hours.yaml")
	if err := os.WriteFile(path, []byte(hours), 0o600); err != nil {
		t.Fatal(err)
	}
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

// until waits for an instant.
func until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("test: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}

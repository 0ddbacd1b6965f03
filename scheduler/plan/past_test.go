package plan_test

import (
	"testing"
	"time"

	"feedwarden/scheduler/plan"
)

func TestThePastCountsInTheWindows(t *testing.T) {
	feeds := regions(1, "@hourly", plan.Feed{Cost: 100})
	c := plan.Config{Quotas: youtube(perDay(1_000)), Feeds: feeds, NoFit: true, Slot: 15 * time.Minute}
	free := run(t, c, midnight, 8*time.Hour)
	if q := free.Quotas[0]; q.Granted != 800 || q.DryTimes != 0 {
		t.Fatalf("without a past: %d units granted, dry %d times; want 800 and 0", q.Granted, q.DryTimes)
	}
	// 900 of the day's 1000 went an hour ago: one tick gets the rest, then nothing
	// comes free for 23 hours.
	c.Past = map[string][]plan.Spent{"youtube": {{From: midnight.Add(-75 * time.Minute), To: midnight.Add(-time.Hour), Units: 900}}}
	r := run(t, c, midnight, 8*time.Hour)
	q, f := r.Quotas[0], r.Feeds[0]
	if q.Granted != 100 || q.DryTimes != 1 || !q.First.From.Equal(midnight.Add(time.Hour)) {
		t.Errorf("with a past: %d units granted, dry %d times from %v; want 100, once, from 01:00", q.Granted, q.DryTimes, q.First.From)
	}
	if len(f.Slots) != 32 || f.Slots[0] != 100 {
		t.Errorf("slots %v, want 32 with 100 in the first", f.Slots)
	}
}

func TestAPastAboveTheLimitIsTakenAsItIs(t *testing.T) {
	c := plan.Config{
		Quotas: youtube(perDay(1_000)), Feeds: regions(1, "@hourly", plan.Feed{Cost: 100}), NoFit: true,
		Past: map[string][]plan.Spent{"youtube": {{From: midnight.Add(-2 * time.Hour), To: midnight.Add(-time.Hour), Units: 5_000}}},
	}
	if q := run(t, c, midnight, 8*time.Hour).Quotas[0]; q.Granted != 0 {
		t.Errorf("%d units granted, want none: a limit that was lowered is overrun already", q.Granted)
	}
}

package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestCatchUp is down over a change of the clock, with each policy.
func TestCatchUp(t *testing.T) {
	const zone = "America/New_York"
	for _, edge := range []struct{ name, up, down, again string }{
		{"into summer", "2024-03-10T04:50:00Z", "2024-03-10T05:10:00Z", "2024-03-10T09:10:10Z"},
		{"into winter", "2024-11-03T03:50:00Z", "2024-11-03T04:10:00Z", "2024-11-03T08:10:10Z"},
	} {
		for _, expr := range []string{"*/30 * * * *", "0,30 0-6 * * *"} {
			loc, _ := LoadZone(zone)
			s, _ := Parse(expr, loc)
			var missed []string
			s.Between(instant(t, edge.down), instant(t, edge.again), func(at time.Time) bool {
				missed = append(missed, at.UTC().Format(time.RFC3339))
				return true
			})
			n := len(missed)
			for _, c := range []struct {
				catchUp CatchUp
				limit   int
				want    []string
			}{
				{CatchUp{Policy: CatchUpNone}, 1000, nil},
				{CatchUp{Policy: CatchUpLatest}, 1000, missed[n-1:]},
				{CatchUp{Policy: CatchUpLatest, Within: 5 * time.Minute}, 1000, nil},
				{CatchUp{Policy: CatchUpAll, Within: 24 * time.Hour}, 1000, missed},
				{CatchUp{Policy: CatchUpAll, Within: 24 * time.Hour}, 3, missed[n-3:]},
				{CatchUp{Policy: CatchUpAll, Within: time.Hour}, 1000, missed[n-2:]},
			} {
				t.Run(fmt.Sprintf("%s/%s/%s within %v cap %d", edge.name, expr, c.catchUp.Policy, c.catchUp.Within, c.limit), func(t *testing.T) {
					rdb, clock, q := freshRedis(t), newClock(t, edge.up), newQueue()
					e := Entry{Name: "feed", Expression: expr, Timezone: zone, CatchUp: c.catchUp}
					a := newDispatcher(t, rdb, clock, q, e)
					stop := start(t, a)
					for clock.Now().Before(instant(t, edge.down)) {
						clock.Advance(5 * time.Second)
						settledTo(t, a, "feed", clock.Now())
					}
					stop()
					before := len(q.has("feed"))
					clock.Advance(instant(t, edge.again).Sub(clock.Now()))
					b, err := NewDispatcher(rdb, []Entry{e}, q, WithClock(clock), WithLogger(quiet()), WithCatchUpCap(c.limit))
					if err != nil {
						t.Fatal(err)
					}
					start(t, b)
					settledTo(t, b, "feed", clock.Now())
					eventually(t, "all are counted", func() bool { s := b.Stats(); return s.Dispatched+s.Missed == int64(n) })
					if got := q.has("feed")[before:]; !slices.Equal(got, c.want) {
						t.Errorf("ran    %v\nwanted %v\nof     %v", got, c.want, missed)
					}
					if s := listed(t, b, "feed"); s.Missed != int64(n-len(c.want)) || s.Skipped != 0 {
						t.Errorf("%d counted as missed, %d as skipped", s.Missed, s.Skipped)
					}
				})
			}
		}
	}
}

// TestCatchUpAllRunsOneAfterTheOther holds back missed ticks while a job of
// their feed has not ended, in place of skipping them.
func TestCatchUpAllRunsOneAfterTheOther(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	e := Entry{Name: "feed", Expression: "* * * * *", CatchUp: CatchUp{Policy: CatchUpAll}, Overlap: OverlapSkip}
	stop := start(t, newDispatcher(t, rdb, clock, q, e))
	stop()
	clock.Advance(5 * time.Minute)
	q.after = func(tick Tick) error {
		q.setBusy("feed", tick.ID())
		return nil
	}
	d := newDispatcher(t, rdb, clock, q, e)
	start(t, d)
	for n := 1; n <= 5; n++ {
		pump(t, clock, 100*time.Millisecond, "the next runs", func() bool { return len(q.has("feed")) == n })
		if n < 5 {
			pump(t, clock, 100*time.Millisecond, "it waits for the end", func() bool { return listed(t, d, "feed").Hold == "overlap" })
		}
		q.setBusy("feed", "")
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		overlap string
		busy    []string // jobs while the first one's has not ended
		after   []string // and a minute after its end
		skipped int64
	}{
		{OverlapSkip, nil, []string{"2026-11-30T08:40:00Z"}, 3},
		{OverlapQueueOne, nil, []string{"2026-11-30T08:30:00Z", "2026-11-30T08:40:00Z"}, 2},
		{OverlapAllow, []string{"2026-11-30T08:10:00Z", "2026-11-30T08:20:00Z", "2026-11-30T08:30:00Z"},
			[]string{"2026-11-30T08:10:00Z", "2026-11-30T08:20:00Z", "2026-11-30T08:30:00Z", "2026-11-30T08:40:00Z"}, 0},
	} {
		t.Run(c.overlap, func(t *testing.T) {
			rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
			d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "*/10 * * * *", Overlap: c.overlap})
			start(t, d)
			pump(t, clock, time.Second, "the first job", func() bool { return len(q.has("feed")) == 1 })
			q.setBusy("feed", "feed@2026-11-30T08:00:00Z")
			upTo := func(at string) {
				for clock.Now().Before(instant(t, at)) {
					clock.Advance(5 * time.Second)
					// Each tick has been claimed, whatever came of it.
					p := d.plans["feed"]
					last := p.firedBefore(clock.Now().UnixMilli() + 1)
					patiently(t, clock, "the tick is looked at", func() bool {
						touched, _ := rdb.HGet(t.Context(), stateKey("feed"), "touched").Int64()
						return touched >= last
					})
				}
			}
			upTo("2026-11-30T08:30:05Z")
			s := listed(t, d, "feed")
			// A tick that is held is looked at again in a moment.
			patiently(t, clock, "all are counted", func() bool {
				s = listed(t, d, "feed")
				return s.Skipped == c.skipped && len(q.has("feed")) > len(c.busy)
			})
			if got := q.has("feed")[1:]; !slices.Equal(got, c.busy) {
				t.Errorf("while the job runs: %v, want %v", got, c.busy)
			}
			if held := s.State == StateDue && s.Hold == "overlap"; held != (c.overlap == OverlapQueueOne) {
				t.Errorf("state %q, hold %q", s.State, s.Hold)
			}
			q.setBusy("feed", "")
			upTo("2026-11-30T08:40:05Z")
			settledTo(t, d, "feed", instant(t, "2026-11-30T08:40:00Z"))
			if got := q.has("feed")[1:]; !slices.Equal(got, c.after) {
				t.Errorf("after its end: %v, want %v", got, c.after)
			}
		})
	}
}

// TestSnoozedJobDoesNotPileUp has a quota that is full for ten hours.
func TestSnoozedJobDoesNotPileUp(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
	q.after = func(tick Tick) error {
		q.setBusy("feed", tick.ID())
		return nil
	}
	d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "*/15 * * * *"})
	start(t, d)
	for range 10 * 60 * 6 {
		clock.Advance(10 * time.Second)
		settledTo(t, d, "feed", clock.Now())
	}
	if got := q.has("feed"); len(got) != 1 {
		t.Errorf("jobs %v", got)
	}
	if s := listed(t, d, "feed"); s.Skipped != 39 && s.Skipped != 40 || s.Missed != 0 {
		t.Errorf("skipped %d, missed %d", s.Skipped, s.Missed)
	}
}

func TestFullQueueKeepsTheTickDue(t *testing.T) {
	full := func(Tick) error { return &FullError{Queue: "scheduled", RetryAfter: 2 * time.Second} }
	t.Run("until there is room", func(t *testing.T) {
		rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
		q.before = full
		e := Entry{Name: "feed", Expression: "0 * * * *", CatchUp: CatchUp{Policy: CatchUpNone, Within: 30 * time.Minute}}
		a := newDispatcher(t, rdb, clock, q, e)
		stop := start(t, a)
		pump(t, clock, time.Second, "the tick is held", func() bool { return listed(t, a, "feed").Hold == "full" })
		for range 60 {
			clock.Advance(time.Second)
			n := a.Stats().Full
			pump(t, clock, time.Second, "it is tried again", func() bool { return a.Stats().Full > n })
		}
		// It was attended, so a restart while it waits does not make it a misfire.
		stop()
		clock.Advance(10 * time.Second)
		b := newDispatcher(t, rdb, clock, q, e)
		start(t, b)
		q.set(func(q *queue) { q.before = nil })
		pump(t, clock, time.Second, "it runs", func() bool { return b.Stats().Dispatched == 1 })
		if s := listed(t, b, "feed"); s.Late != 1 || s.LatenessMS < 60_000 || s.Hold != "" || s.Missed != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("until within ends", func(t *testing.T) {
		rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
		q.before = full
		d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "0 * * * *", CatchUp: CatchUp{Within: time.Minute}})
		start(t, d)
		pump(t, clock, time.Second, "it is missed", func() bool { return d.Stats().Missed == 1 })
		if now := clock.Now(); now.Before(instant(t, "2026-11-30T08:01:00Z")) {
			t.Errorf("given up at %v", now)
		}
		if len(q.jobs) > 0 {
			t.Errorf("jobs %v", q.jobs)
		}
	})
}

// TestFullQueueIsNotFlooded has many schedules that wait: refusals stay few.
func TestFullQueueIsNotFlooded(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
	q.before = func(Tick) error { return &FullError{RetryAfter: time.Second} }
	var entries []Entry
	for i := range 500 {
		entries = append(entries, Entry{Name: fmt.Sprint("feed-", i), Expression: "0 * * * *"})
	}
	d, err := NewDispatcher(rdb, entries, q, WithClock(clock), WithLogger(quiet()), WithConcurrency(4))
	if err != nil {
		t.Fatal(err)
	}
	start(t, d)
	for range 40 {
		n := d.Stats().Full
		pump(t, clock, 250*time.Millisecond, "it is tried again", func() bool { return d.Stats().Full > n })
	}
	seconds := int64(clock.Now().Sub(instant(t, "2026-11-30T08:00:00Z")) / time.Second)
	if n := d.Stats().Full; n > 4*(seconds+2) {
		t.Errorf("%d refusals in %d s", n, seconds)
	}
	q.set(func(q *queue) { q.before = nil })
	pump(t, clock, 250*time.Millisecond, "all run", func() bool { return d.Stats().Dispatched == 500 })
}

func TestLateIsNotMissedWhileUp(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
	fail := true
	q.before = func(Tick) error {
		if fail {
			return fmt.Errorf("the queue does not answer")
		}
		return nil
	}
	d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "*/10 * * * *", CatchUp: CatchUp{Policy: CatchUpNone}, Overlap: OverlapAllow})
	start(t, d)
	for clock.Now().Before(instant(t, "2026-11-30T08:25:00Z")) {
		n := d.Stats().Faults
		pump(t, clock, time.Second, "it is tried again", func() bool { return d.Stats().Faults > n })
	}
	q.set(func(q *queue) { fail = false; q.before = nil })
	pump(t, clock, time.Second, "all of them run", func() bool { return d.Stats().Dispatched == 3 })
	if s := d.Stats(); s.Missed > 0 || s.Late != 3 {
		t.Errorf("%+v", s)
	}
}

func TestSuspendIsDowntime(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "* * * * *", Overlap: OverlapAllow})
	start(t, d)
	clock.Advance(40*time.Minute + 15*time.Second)
	settledTo(t, d, "feed", clock.Now())
	eventually(t, "all are counted", func() bool { s := d.Stats(); return s.Dispatched+s.Missed == 40 })
	if got := q.has("feed"); !slices.Equal(got, []string{"2026-11-30T08:40:00Z"}) {
		t.Errorf("jobs %v", got)
	}
}

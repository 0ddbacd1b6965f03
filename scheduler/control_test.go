package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPauseIsSeenByTheOther(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	e := Entry{Name: "feed", Expression: "* * * * *", CatchUp: CatchUp{Policy: CatchUpAll}}
	runs := newDispatcher(t, rdb, clock, q, e)
	hand := newDispatcher(t, rdb, clock, nil, e) // another process
	stop := start(t, runs)
	minutes := func(n int) {
		for range 12 * n {
			clock.Advance(5 * time.Second)
			settledTo(t, runs, "feed", clock.Now())
		}
	}
	minutes(1)
	if err := hand.Pause(t.Context(), "feed", time.Time{}, "ops"); err != nil {
		t.Fatal(err)
	}
	paused := clock.Now()
	minutes(2)
	s := listed(t, hand, "feed")
	if s.State != StatePaused || s.Next != nil || s.Skipped != 2 {
		t.Errorf("%+v", s)
	}
	if p := s.Pause; p == nil || p.By != "ops" || !p.At.Equal(paused) || p.Until != nil || p.ResumedBy != "" {
		t.Errorf("%+v", p)
	}
	// What comes while all are down is skipped too, however catch_up is set.
	stop()
	clock.Advance(3 * time.Minute)
	if err := hand.Resume(t.Context(), "feed", "boss"); err != nil {
		t.Fatal(err)
	}
	start(t, runs)
	minutes(1)
	if got := q.has("feed"); !slices.Equal(got, []string{"2026-11-30T08:01:00Z", "2026-11-30T08:07:00Z"}) {
		t.Errorf("jobs %v", got)
	}
	s = listed(t, hand, "feed")
	if s.State != StateActive || s.Skipped != 5 || s.Missed != 0 || s.Pause.ResumedBy != "boss" {
		t.Errorf("%+v, %+v", s, s.Pause)
	}
	if err := hand.Resume(t.Context(), "feed", "boss"); !errors.Is(err, ErrNotPaused) {
		t.Errorf("resumed twice: %v", err)
	}
}

func TestPauseUntil(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "* * * * *"})
	start(t, d)
	if err := d.Pause(t.Context(), "feed", clock.Now().Add(-time.Second), "ops"); err == nil || !strings.Contains(err.Error(), "not in the future") {
		t.Errorf("paused until the past: %v", err)
	}
	until := instant(t, "2026-11-30T08:03:00Z")
	if err := d.Pause(t.Context(), "feed", until, "ops"); err != nil {
		t.Fatal(err)
	}
	if s := listed(t, d, "feed"); s.State != StatePaused || !s.Next.Equal(until) || !s.Pause.Until.Equal(until) {
		t.Errorf("%+v", s)
	}
	for range 4 * 12 {
		clock.Advance(5 * time.Second)
		settledTo(t, d, "feed", clock.Now())
	}
	if got := q.has("feed"); !slices.Equal(got, []string{"2026-11-30T08:03:00Z", "2026-11-30T08:04:00Z"}) {
		t.Errorf("jobs %v", got)
	}
}

func TestTrigger(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	e := Entry{Name: "feed", Expression: "0 0 1 1 *"}
	runs, hand := newDispatcher(t, rdb, clock, q, e), newDispatcher(t, rdb, clock, nil, e)
	other := newDispatcher(t, rdb, clock, q, e)
	start(t, runs)
	start(t, other)
	// A pause and a running job do not stand in the way of a person.
	q.setBusy("feed", "some-job")
	if err := hand.Pause(t.Context(), "feed", time.Time{}, "ops"); err != nil {
		t.Fatal(err)
	}
	id, err := hand.Trigger(t.Context(), "feed", "ops")
	if err != nil {
		t.Fatal(err)
	}
	asked := clock.Now()
	pump(t, clock, 100*time.Millisecond, "the job is made", func() bool { return listed(t, hand, "feed").ByHand == 1 })
	if got := q.has("feed"); !slices.Equal(got, []string{"2026-11-30T08:00:30Z~" + id}) {
		t.Errorf("jobs %v", got)
	}
	s := listed(t, hand, "feed")
	if m := s.Manual; m == nil || m.Kind != "trigger" || m.ID != id || m.By != "ops" || !m.At.Equal(asked) {
		t.Errorf("%+v", m)
	}
	if n := rdb.ZCard(t.Context(), manualKey).Val(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
	if keys := rdb.Keys(t.Context(), requestKey("*")).Val(); len(keys) != 0 {
		t.Errorf("%v are left", keys)
	}
}

func TestBackfill(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	e := Entry{Name: "feed", Expression: "0,30 * * * *"}
	d := newDispatcher(t, rdb, clock, q, e)
	start(t, d)
	left := 20
	q.before = func(Tick) error {
		if left--; left < 0 {
			return &FullError{RetryAfter: time.Second}
		}
		return nil
	}
	from, to := instant(t, "2026-11-28T12:00:00Z"), instant(t, "2026-11-29T12:00:00Z")
	id, n, err := d.Backfill(t.Context(), "feed", from, to, "ops")
	if err != nil || n != 49 {
		t.Fatalf("%d ticks, %v", n, err)
	}
	pump(t, clock, 100*time.Millisecond, "the queue is full", func() bool { return d.Stats().Full > 0 })
	q.set(func(q *queue) { q.before = nil })
	pump(t, clock, 100*time.Millisecond, "all are made", func() bool { return listed(t, d, "feed").ByHand == 49 })
	got := q.has("feed")
	for i, text := range got {
		if want := from.Add(time.Duration(i) * 30 * time.Minute).Format(time.RFC3339); text != want+"~"+id {
			t.Fatalf("job %d is %s, want %s", i, text, want)
		}
	}
	if len(q.doubled()) > 0 {
		t.Errorf("doubled %v", q.doubled())
	}
	for _, c := range []struct {
		from, to string
		says     string
	}{
		{"2026-11-29T12:00:00Z", "2026-11-28T12:00:00Z", "is before from"},
		{"2026-11-29T12:00:00Z", "2027-11-28T12:00:00Z", "in the future"},
		{"2025-11-29T12:00:00Z", "2026-11-28T12:00:00Z", "more than 1000"},
		{"2026-11-29T12:00:01Z", "2026-11-29T12:29:59Z", "no tick lies"},
	} {
		if _, _, err := d.Backfill(t.Context(), "feed", instant(t, c.from), instant(t, c.to), "ops"); !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
}

func TestRequestsAreBounded(t *testing.T) {
	rdb, clock := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z")
	d := newDispatcher(t, rdb, clock, nil, Entry{Name: "feed", Expression: "@daily"})
	for range mostRequests {
		if _, err := d.Trigger(t.Context(), "feed", "ops"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Trigger(t.Context(), "feed", "ops"); !errors.Is(err, ErrTooManyRequests) {
		t.Errorf("one more: %v", err)
	}
}

func TestUnknownSchedule(t *testing.T) {
	d := newDispatcher(t, freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), nil, Entry{Name: "feed", Expression: "@daily"})
	_, trigger := d.Trigger(t.Context(), "no", "ops")
	_, _, backfill := d.Backfill(t.Context(), "no", time.Time{}, time.Time{}, "ops")
	for call, err := range map[string]error{
		"pause": d.Pause(t.Context(), "no", time.Time{}, "ops"), "resume": d.Resume(t.Context(), "no", "ops"), "trigger": trigger, "backfill": backfill,
	} {
		if !errors.Is(err, ErrUnknownSchedule) || !strings.Contains(err.Error(), call) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestReload(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	every := func(name, expr string) Entry { return Entry{Name: name, Expression: expr} }
	d := newDispatcher(t, rdb, clock, q, every("stays", "* * * * *"), every("goes", "* * * * *"), every("changes", "*/2 * * * *"))
	start(t, d)
	run := func(until string, names ...string) {
		for clock.Now().Before(instant(t, until)) {
			clock.Advance(5 * time.Second)
			for _, n := range names {
				settledTo(t, d, n, clock.Now())
			}
		}
	}
	run("2026-11-30T08:02:30Z", "stays", "goes", "changes")
	// The faults of a bad set leave the old one at work.
	err := d.Reload([]Entry{every("stays", "61 * * * *"), every("stays", "* * * * *"), {Name: "odd", Expression: "* * * * *", Overlap: "never"}})
	var fault *EntryError
	var expr *ExpressionError
	if !errors.As(err, &fault) || !errors.As(err, &expr) || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("a bad set: %v", err)
	}
	if err := d.Reload([]Entry{every("stays", "* * * * *"), every("changes", "*/3 * * * *"), every("comes", "* * * * *")}); err != nil {
		t.Fatal(err)
	}
	for name, p := range d.plans {
		eventually(t, name+" is taken up", func() bool {
			return rdb.HExists(t.Context(), stateKey(name), "last:"+revisionText(p.revision)).Val()
		})
	}
	run("2026-11-30T08:06:30Z", "stays", "changes", "comes")
	for name, want := range map[string][]int{"stays": {1, 2, 3, 4, 5, 6}, "goes": {1, 2}, "changes": {2, 3, 6}, "comes": {3, 4, 5, 6}} {
		var texts []string
		for _, m := range want {
			texts = append(texts, fmt.Sprintf("2026-11-30T08:%02d:00Z", m))
		}
		if got := q.has(name); !slices.Equal(got, texts) {
			t.Errorf("%s: %v, want %v", name, got, texts)
		}
	}
	if len(q.doubled()) > 0 {
		t.Errorf("doubled %v", q.doubled())
	}
}

// TestChangedExpressionCatchesUpNothing changes it while no dispatcher is up.
func TestChangedExpressionCatchesUpNothing(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	entry := func(expr string) Entry {
		return Entry{Name: "feed", Expression: expr, CatchUp: CatchUp{Policy: CatchUpAll, Within: 24 * time.Hour}}
	}
	for _, expr := range []string{"*/10 * * * *", "*/20 * * * *", "*/10 * * * *", "*/30 * * * *", "*/10 * * * *"} {
		d := newDispatcher(t, rdb, clock, q, entry(expr))
		start(t, d)()
		clock.Advance(45 * time.Minute)
		d = newDispatcher(t, rdb, clock, q, entry("5 5 5 5 *"))
		start(t, d)()
		if n := len(q.jobs); n > 0 {
			t.Fatalf("after %s: %v", expr, q.jobs)
		}
		fields := rdb.HKeys(t.Context(), stateKey("feed")).Val()
		if n := len(slices.DeleteFunc(fields, func(f string) bool { return !strings.HasPrefix(f, "last:") })); n > 2 {
			t.Errorf("%d revisions are kept", n)
		}
	}
}

// TestReplicasOfTwoRevisions runs the old and the new configuration side by side.
func TestReplicasOfTwoRevisions(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	old := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "*/2 * * * *", Overlap: OverlapAllow})
	start(t, old)
	young := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "*/3 * * * *", Overlap: OverlapAllow})
	start(t, young)
	for range 6 * 12 {
		clock.Advance(5 * time.Second)
		at := clock.Now().Add(-5 * time.Second)
		settledTo(t, old, "feed", at)
		settledTo(t, young, "feed", at)
	}
	want := []string{"2026-11-30T08:02:00Z", "2026-11-30T08:03:00Z", "2026-11-30T08:04:00Z", "2026-11-30T08:06:00Z"}
	if got := q.has("feed"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

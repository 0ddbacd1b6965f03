package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/internal/testredis"
)

func TestEveryTickOnceWithTwoDispatchers(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:00Z"), newQueue()
	var entries []Entry
	for i := range 20 {
		entries = append(entries, Entry{Name: fmt.Sprintf("feed-%02d", i), Expression: "@every 1s", Overlap: OverlapAllow})
	}
	a, b := newDispatcher(t, rdb, clock, q, entries...), newDispatcher(t, rdb, clock, q, entries...)
	stopA := start(t, a)
	stopB := start(t, b)
	eventually(t, "both know each other", func() bool {
		clock.Advance(100 * time.Millisecond)
		return a.Stats().Peers == 2 && b.Stats().Peers == 2
	})
	for range 40 {
		clock.Advance(500 * time.Millisecond)
		now := clock.Now().Truncate(time.Second).Add(-time.Second)
		for _, e := range entries {
			settledTo(t, a, e.Name, now)
		}
	}
	stopA()
	stopB()
	first := a.plans["feed-00"]
	for _, e := range entries {
		got := q.has(e.Name)
		begin := instant(t, got[0])
		for i, text := range got {
			if want := begin.Add(time.Duration(i) * time.Second).Format(time.RFC3339); text != want {
				t.Fatalf("%s: job %d is %s, want %s", e.Name, i, text, want)
			}
		}
	}
	if d := q.doubled(); len(d) > 0 {
		t.Errorf("enqueued more than once: %v", d)
	}
	sa, sb := a.Stats(), b.Stats()
	if sa.Dispatched == 0 || sb.Dispatched == 0 {
		t.Errorf("the work is not shared: %+v, %+v", sa, sb)
	}
	if n := sa.Dispatched + sb.Dispatched; n != int64(len(q.jobs)) || first == nil {
		t.Errorf("%d dispatched, %d jobs", n, len(q.jobs))
	}
	if sa.Missed+sb.Missed+sa.Skipped+sb.Skipped > 0 {
		t.Errorf("missed or skipped: %+v, %+v", sa, sb)
	}
}

func TestCrashBetweenEnqueueAndSettling(t *testing.T) {
	for _, overlap := range []string{OverlapAllow, OverlapSkip, OverlapQueueOne} {
		t.Run(overlap, func(t *testing.T) {
			rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
			e := Entry{Name: "feed", Expression: "0 * * * *", Overlap: overlap}
			a := newDispatcher(t, rdb, clock, q, e)
			ctx, cancel := context.WithCancel(context.Background())
			// The dispatcher ends with the job enqueued and nothing settled.
			q.after = func(tick Tick) error {
				q.setBusy("feed", tick.ID())
				cancel()
				return errors.New("the process died")
			}
			ended := make(chan error, 1)
			go func() { ended <- a.Run(ctx) }()
			eventually(t, "the schedule is taken up", func() bool { return a.store.rdb.Exists(t.Context(), stateKey("feed")).Val() == 1 })
			eventually(t, "the dispatcher dies", func() bool {
				clock.Advance(time.Second)
				return len(ended) == 1
			})
			q.set(func(q *queue) { q.after = nil })
			b := newDispatcher(t, rdb, clock, q, e)
			start(t, b)
			pump(t, clock, time.Second, "the tick is settled", func() bool { return b.Stats().Dispatched == 1 })
			if got := q.has("feed"); !slices.Equal(got, []string{"2026-11-30T08:00:00Z"}) {
				t.Errorf("jobs %v", got)
			}
			if s := listed(t, b, "feed"); s.Dispatched != 1 || s.Skipped != 0 || s.Missed != 0 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}

func TestStoppedProcessDoesNotActOnOldKnowledge(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T07:59:58Z"), newQueue()
	e := Entry{Name: "feed", Expression: "0 * * * *"}
	// The first dispatcher stops after its claim, before it enqueues.
	stopped, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	q.onBusy = func(string) {
		if calls.Add(1) == 1 {
			close(stopped)
			<-goOn
		}
	}
	a := newDispatcher(t, rdb, clock, q, e)
	stopA := start(t, a)
	pump(t, clock, time.Second, "the first claims", func() bool {
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	})
	b := newDispatcher(t, rdb, clock, q, e)
	start(t, b)
	pump(t, clock, time.Second, "the second takes over", func() bool { return b.Stats().Dispatched == 1 })
	q.set(func(q *queue) {
		q.jobs, q.asked = nil, map[string]int{} // the queue has forgotten the job
	})
	close(goOn)
	stopA() // waits for what was under way
	if got := q.has("feed"); len(got) > 0 {
		t.Errorf("the stopped process enqueued %v", got)
	}
}

func TestRestartedEachFiftyMinutesFiresEachHour(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T00:10:00Z"), newQueue()
	e := Entry{Name: "feed", Expression: "@every 1h", CatchUp: CatchUp{Policy: CatchUpLatest}}
	for range 8 {
		d := newDispatcher(t, rdb, clock, q, e)
		stop := start(t, d)
		end := clock.Now().Add(50 * time.Minute)
		for clock.Now().Before(end) {
			clock.Advance(5 * time.Minute)
			settledTo(t, d, "feed", clock.Now())
		}
		stop()
		clock.Advance(time.Minute)
	}
	got := q.has("feed")
	for i, text := range got {
		if want := fmt.Sprintf("2026-11-30T%02d:00:00Z", i+1); text != want {
			t.Fatalf("job %d is %s, want %s", i, text, want)
		}
	}
	if len(got) != 6 {
		t.Errorf("jobs %v", got)
	}
}

func TestFirstSeenHasMissedNothing(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "* * * * *", CatchUp: CatchUp{Policy: CatchUpAll}})
	start(t, d)
	clock.Advance(29 * time.Second)
	clock.Advance(time.Second)
	settledTo(t, d, "feed", clock.Now())
	if got := q.has("feed"); !slices.Equal(got, []string{"2026-11-30T08:01:00Z"}) {
		t.Errorf("jobs %v", got)
	}
}

func TestRedisRestart(t *testing.T) {
	srv := testredis.Own(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	clock, q := newClock(t, "2026-11-30T08:00:00Z"), newQueue()
	e := Entry{Name: "feed", Expression: "@every 1s", Overlap: OverlapAllow, CatchUp: CatchUp{Policy: CatchUpNone}}
	a, b := newDispatcher(t, rdb, clock, q, e), newDispatcher(t, rdb, clock, q, e)
	stopA, stopB := start(t, a), start(t, b)
	// The clock stays a few seconds ahead of what is settled, at most.
	advance := func(seconds int) {
		for range 2 * seconds {
			clock.Advance(500 * time.Millisecond)
			settledTo(t, a, "feed", clock.Now().Add(-4*time.Second))
		}
	}
	advance(10)
	srv.Kill()
	for range 6 {
		clock.Advance(500 * time.Millisecond)
		eventually(t, "both notice", func() bool { return a.Stats().Faults > 0 && b.Stats().Faults > 0 })
	}
	srv.Start(t)
	advance(20)
	stopA()
	stopB()
	got := q.has("feed")
	begin := instant(t, got[0])
	for i, text := range got {
		if want := begin.Add(time.Duration(i) * time.Second).Format(time.RFC3339); text != want {
			t.Fatalf("job %d is %s, want %s", i, text, want)
		}
	}
	if s := a.Stats(); s.Missed > 0 {
		t.Errorf("missed %d while dispatchers were up", s.Missed)
	}
}

func TestLostStateIsRemembered(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "* * * * *"})
	start(t, d)
	pump(t, clock, time.Second, "a job", func() bool { return len(q.has("feed")) == 1 })
	settledTo(t, d, "feed", instant(t, "2026-11-30T08:01:00Z")) // or it is enqueued again, which its ID forbids
	if err := rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	pump(t, clock, time.Second, "two more", func() bool { return len(q.has("feed")) == 3 })
	if got := q.has("feed"); got[0] != "2026-11-30T08:01:00Z" || got[2] != "2026-11-30T08:03:00Z" || len(q.doubled()) > 0 {
		t.Errorf("jobs %v, doubled %v", got, q.doubled())
	}
}

package quota_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"feedwarden/quota"
)

func (d *desk) leave(id string) {
	d.t.Helper()
	if err := d.l.Leave(d.ctx, d.name, id); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) urgent(id string, cost int64) quota.Decision {
	d.t.Helper()
	return d.ask(quota.Request{ID: id, Cost: cost, Priority: quota.Interactive})
}

func TestRefusalsLeaveTheLogAlone(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Hour))
	d.grant("a", 10)
	var last quota.Decision
	for i := range 1000 {
		got := d.charge(fmt.Sprint("w", i), 1)
		if got.Granted || got.Position != int64(i+1) || !got.At.After(last.At) {
			t.Fatalf("waiter %d: %+v, the one before it %+v", i, got, last)
		}
		last = got
	}
	if n := len(d.entries()); n != 1 {
		t.Fatalf("%d entries", n)
	}
	// For one ID the wait counts down, and the promise stays.
	for s := range 5 {
		d.hand.at(time.Duration(s) * 7 * time.Minute)
		got := d.charge("w999", 1)
		if !got.At.Equal(last.At) || got.RetryAfter < last.At.Sub(d.hand.now()) || got.RetryAfter > last.At.Sub(d.hand.now())+time.Millisecond {
			t.Fatalf("%+v, was %+v", got, last)
		}
	}
	d.used(10)
	if s := d.state(); s.Scheduled.Waiting != 1000 || s.Scheduled.Units != 1000 || s.Refusals != 1005 || s.LongestWait != 28*time.Minute {
		t.Fatalf("%+v", s)
	}
}

func TestFiftyWaitersArePromisedFiftyInstants(t *testing.T) {
	t.Parallel()
	d := open(t, window(50, time.Minute))
	for i := range 50 {
		d.hand.at(time.Duration(i) * 100 * time.Millisecond)
		d.grant(fmt.Sprint("first", i), 1)
	}
	var promised []quota.Decision
	for i := range 50 {
		got := d.charge(fmt.Sprint("w", i), 1)
		if want := epoch.Add(time.Minute + time.Duration(i)*100*time.Millisecond); got.Granted || !got.At.Equal(want) {
			t.Fatalf("waiter %d is promised %s, want %s", i, got.At, want)
		}
		promised = append(promised, got)
	}
	for i, p := range promised {
		d.hand.set(p.At.Add(-time.Microsecond))
		if got := d.charge(p.ID, 1); got.Granted || !got.At.Equal(p.At) || got.Position != 1 {
			t.Fatalf("waiter %d is early: %+v", i, got)
		}
		d.hand.set(p.At)
		d.grant(p.ID, 1)
		d.used(50)
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	d := open(t, window(4, time.Minute))
	order := map[string]time.Time{}
	ask := func(id string) quota.Decision {
		got := d.charge(id, 1)
		if got.Granted {
			order[id] = got.At
		}
		return got
	}
	waits := map[string]time.Time{}
	for i := range 8 {
		if got := ask(fmt.Sprint("old", i)); !got.Granted {
			waits[got.ID] = got.At
		}
	}
	d.hand.at(30 * time.Second)
	for i := range 4 {
		if got := ask(fmt.Sprint("new", i)); got.Granted {
			t.Fatal("a newcomer was granted")
		} else {
			waits[got.ID] = got.At
		}
	}
	for sec := 31; len(waits) > 0; sec++ {
		d.hand.at(time.Duration(sec) * time.Second)
		for i := range 12 { // the newcomers ask first
			id := fmt.Sprint("new", i)
			if i >= 4 {
				id = fmt.Sprint("old", i-4)
			}
			if at, ok := waits[id]; ok && !at.After(d.hand.now()) && ask(id).Granted {
				delete(waits, id)
			}
		}
	}
	for i := range 4 {
		for k := range 8 {
			if a, b := order[fmt.Sprint("new", i)], order[fmt.Sprint("old", k)]; !a.After(b) {
				t.Errorf("newcomer %d at %s, old %d at %s", i, a, k, b)
			}
		}
	}
}

func TestUnitsFreedEarlyGoToTheFirst(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Hour))
	d.grant("a", 6)
	d.grant("b", 4)
	d.charge("first", 5)
	d.charge("second", 1)
	d.charge("third", 1)
	d.refund("a", 6)
	if got := d.charge("newcomer", 1); got.Granted || got.Position != 4 || got.Reason != quota.ReasonLine {
		t.Fatalf("a newcomer: %+v", got)
	}
	// Six are free: five are the first one's, one is left for the second, none for the third.
	if got := d.charge("third", 1); got.Granted || got.Position != 3 {
		t.Fatalf("the third: %+v", got)
	}
	d.grant("second", 1)
	d.grant("first", 5)
	d.used(10)
	if got := d.charge("third", 1); got.Granted || got.Position != 1 || got.Reason != quota.ReasonWindow {
		t.Fatalf("the third: %+v", got)
	}
}

func TestAPlaceIsHeldForTheGraceAndNoLonger(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.grant("a", 10)
	d.charge("gone", 10)
	d.hand.at(time.Minute)
	if got := d.charge("next", 1); got.Granted || got.Position != 2 || got.Reason != quota.ReasonLine || got.RetryAfter != time.Minute {
		t.Fatalf("%+v", got)
	}
	d.hand.at(time.Minute + 30*time.Second - time.Microsecond)
	if got := d.charge("next", 1); got.Granted {
		t.Fatalf("%+v", got)
	}
	d.hand.at(time.Minute + 30*time.Second)
	d.grant("next", 1)
	// Late beyond the grace, it is a newcomer.
	if got := d.charge("gone", 10); got.Granted || got.Position != 1 {
		t.Fatalf("%+v", got)
	}
	d.used(1)
}

func TestAWaiterThatIsLateButInTimeIsGranted(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.grant("a", 10)
	d.charge("heavy", 9)
	for i := range 20 {
		d.charge(fmt.Sprint("light", i), 1)
	}
	d.hand.at(time.Minute + 29*time.Second)
	d.grant("light0", 1) // there is room for it besides the one before it
	for i := 1; i < 20; i++ {
		if got := d.charge(fmt.Sprint("light", i), 1); got.Granted {
			t.Fatalf("light %d took units that the heavy one was promised", i)
		}
	}
	d.grant("heavy", 9)
}

func TestNoLineTakesNoPlace(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.grant("a", 10)
	for range 5 {
		got := d.ask(quota.Request{ID: "b", Cost: 3, NoLine: true})
		if got.Granted || got.Position != 0 || got.RetryAfter != time.Minute || got.Reason != quota.ReasonWindow {
			t.Fatalf("%+v", got)
		}
	}
	if s := d.state(); s.Scheduled.Waiting != 0 {
		t.Fatalf("%+v", s)
	}
	d.charge("w", 8)
	d.hand.at(time.Minute)
	if got := d.ask(quota.Request{ID: "b", Cost: 3, NoLine: true}); got.Granted || got.Reason != quota.ReasonLine || got.RetryAfter != time.Minute {
		t.Fatalf("%+v", got)
	}
	d.grant("w", 8)
	if got := d.ask(quota.Request{ID: "b", Cost: 2, NoLine: true}); !got.Granted {
		t.Fatalf("%+v", got)
	}
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.grant("a", 10)
	for i := range 5 {
		d.charge(fmt.Sprint("w", i), 4)
	}
	d.leave("w1")
	d.leave("w1")
	d.leave("nobody")
	d.leave("a") // granted: it stays charged
	d.used(10)
	for i, want := range []int64{1, 5, 2, 3, 4} { // w1 asks again, at the end
		if got := d.charge(fmt.Sprint("w", i), 4); got.Position != want {
			if i != 1 {
				t.Errorf("w%d is at %d, want %d", i, got.Position, want)
			}
		}
	}
	s := d.state()
	if s.Scheduled.Waiting != 5 || s.Scheduled.Units != 20 {
		t.Errorf("%+v", s.Scheduled)
	}
	if last := s.Waiters[len(s.Waiters)-1]; last.ID != "w1" || last.Position != 5 {
		t.Errorf("the last is %+v", last)
	}
}

func TestAskingForSomethingElseLosesThePlace(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.grant("a", 10)
	d.charge("w", 4)
	d.charge("x", 4)
	if got := d.charge("w", 5); got.Position != 2 {
		t.Errorf("another cost: %+v", got)
	}
	if got := d.urgent("x", 4); got.Position != 1 {
		t.Errorf("another class: %+v", got)
	}
	if s := d.state(); s.Scheduled != (quota.Line{Waiting: 1, Units: 5}) || s.Interactive != (quota.Line{Waiting: 1, Units: 4}) {
		t.Errorf("%+v", s)
	}
}

func TestTheReserveIsForInteractiveChargesAlone(t *testing.T) {
	t.Parallel()
	c := window(100, time.Minute)
	c.Reserve = 20
	d := open(t, c)
	d.grant("a", 80)
	d.refuse("b", 1, time.Minute, 1, quota.ReasonReserve)
	if got := d.urgent("i", 20); !got.Granted {
		t.Fatalf("%+v", got)
	}
	if got := d.urgent("k", 1); got.Granted || got.Position != 1 || got.Reason != quota.ReasonWindow {
		t.Fatalf("%+v", got)
	}
	_, err := d.l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "c", Cost: 81})
	if want := (quota.ImpossibleError{Quota: d.name, Cost: 81, Limit: 80}); err == nil || err.Error() != fmt.Sprintf("quota: charge %q: %s", d.name, want.Error()) {
		t.Fatalf("%v", err)
	}
	if got := d.urgent("c", 100); got.Granted {
		t.Fatalf("%+v", got)
	}
	// Interactive ones go first, and their units are not for others.
	d.hand.at(time.Minute + 20*time.Second)
	if got := d.charge("b", 1); got.Granted || got.Reason != quota.ReasonLine {
		t.Fatalf("%+v", got)
	}
	if s := d.state(); s.Interactive.Waiting != 2 || s.Interactive.Units != 101 || s.Scheduled.Waiting != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestBlock(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	block := func(b time.Duration, why string) {
		t.Helper()
		if err := d.l.Block(d.ctx, d.name, b, why); err != nil {
			t.Fatal(err)
		}
	}
	d.grant("a", 1)
	block(time.Hour, "403 quotaExceeded")
	block(time.Minute, "429") // the longer one holds
	if s := d.state(); !s.BlockedUntil.Equal(epoch.Add(time.Hour)) || s.BlockReason != "403 quotaExceeded" {
		t.Fatalf("%+v", s)
	}
	d.grant("a", 1) // charged before
	d.refuse("b", 10, time.Hour, 1, quota.ReasonBlocked)
	d.refuse("c", 10, time.Hour+time.Minute, 2, quota.ReasonBlocked)
	if got := d.urgent("i", 1); got.Granted || got.Reason != quota.ReasonBlocked {
		t.Fatalf("%+v", got)
	}
	d.hand.at(time.Hour - time.Microsecond)
	d.leave("i")
	d.refuse("b", 10, time.Millisecond, 1, quota.ReasonBlocked)
	d.hand.at(time.Hour)
	d.grant("b", 10)
	if s := d.state(); !s.BlockedUntil.IsZero() || s.BlockReason != "" {
		t.Fatalf("%+v", s)
	}
	// Lifted by hand.
	d.hand.at(10 * time.Hour)
	block(2*time.Hour, "by hand")
	d.refuse("e", 1, 2*time.Hour, 1, quota.ReasonBlocked)
	for range 2 {
		if err := d.l.Unblock(d.ctx, d.name); err != nil {
			t.Fatal(err)
		}
	}
	d.grant("e", 1)
	for _, bad := range []time.Duration{0, -time.Second, 1 << 62} {
		if err := d.l.Block(d.ctx, d.name, bad, ""); err == nil {
			t.Errorf("blocked for %s", bad)
		}
	}
}

func TestManyThatNeverCameBack(t *testing.T) {
	t.Parallel()
	const n = 3000
	d := open(t, window(10, time.Hour))
	d.grant("a", 10)
	ask := func(from, to int, cost int64) {
		var batch []quota.Request
		for i := from; i < to; i++ {
			batch = append(batch, quota.Request{Quota: d.name, ID: "w" + strconv.Itoa(i), Cost: cost})
		}
		for _, a := range d.l.ChargeAll(d.ctx, batch) {
			if a.Err != nil || a.Granted {
				t.Fatal(a)
			}
		}
	}
	// All of them: gone at once.
	ask(0, n, 10)
	d.hand.at((n + 1) * time.Hour)
	d.grant("b", 10)
	if s := d.state(); s.Scheduled.Waiting != 0 {
		t.Fatalf("%+v", s)
	}
	// All but one, whose promise is still to come: a thousand in a call, and told to ask again at once.
	d.hand.at((n + 10) * time.Hour)
	c := window(10_000, time.Hour)
	d.configure(c)
	d.grant("c", 10_000)
	ask(0, n-1, 1)
	d.charge("alive", 10_000)
	d.hand.at((n+11)*time.Hour + 31*time.Second)
	calls := 0
	for {
		got := d.charge("new", 1)
		calls++
		if got.Position != 0 {
			break
		}
		if got.Granted || got.RetryAfter != time.Millisecond || calls > 4 {
			t.Fatalf("call %d: %+v", calls, got)
		}
	}
	if s := d.state(); s.Scheduled.Waiting != 2 || s.Scheduled.Units != 10_001 {
		t.Fatalf("%+v", s)
	}
	d.grant("alive", 10_000)
}

func TestStateShowsTheFirstOfEachLine(t *testing.T) {
	t.Parallel()
	c := window(100, time.Minute)
	c.Reserve = 10
	d := open(t, c)
	if s := d.state(); s.Remaining != 100 || s.Grants != 0 || !s.NextRelease.IsZero() || len(s.Waiters) != 0 || !s.Now.Equal(epoch) || s.Reserve != 10 {
		t.Fatalf("unused: %+v", s)
	}
	if n := d.rdb.Exists(d.ctx, d.key("meta")).Val(); n != 0 {
		t.Fatal("a look wrote something")
	}
	d.grant("a", 90)
	d.hand.at(10 * time.Second)
	for i := range 30 {
		d.charge(fmt.Sprint("s", i), 2)
	}
	d.urgent("i0", 20)
	d.urgent("i1", 20)
	d.hand.at(15 * time.Second)
	s := d.state()
	if len(s.Waiters) != 22 || s.LongestWait != 5*time.Second || !s.NextRelease.Equal(epoch.Add(time.Minute)) {
		t.Fatalf("%+v", s)
	}
	first, third := s.Waiters[0], s.Waiters[2]
	if first.ID != "i0" || first.Priority != quota.Interactive || first.Position != 1 || first.Cost != 20 || !first.Promised.Equal(epoch.Add(time.Minute)) || !first.Since.Equal(epoch.Add(10*time.Second)) {
		t.Errorf("%+v", first)
	}
	if third.ID != "s0" || third.Priority != quota.Scheduled || third.Position != 3 || third.Cost != 2 {
		t.Errorf("%+v", third)
	}
	if _, err := d.l.State(d.ctx, "other"); err == nil {
		t.Error("a quota that no one defined has a state")
	}
	// A refunded entry releases nothing.
	d.grant("a", 90)
	d.refund("a", 90)
	if s := d.state(); !s.NextRelease.IsZero() || s.Remaining != 100 {
		t.Errorf("%+v", s)
	}
}

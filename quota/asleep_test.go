package quota_test

import (
	"testing"
	"time"

	"feedwarden/quota"
)

// shut closes the quota for a time.
func (d *desk) shut(span time.Duration) {
	d.t.Helper()
	if err := d.l.Block(d.ctx, d.name, span, "by mistake"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) unblock() {
	d.t.Helper()
	if err := d.l.Unblock(d.ctx, d.name); err != nil {
		d.t.Fatal(err)
	}
}

// A script was told to come back in two hours, and sleeps. Then what it waited for is
// over: who comes now need not wait for the script's coming, if there is room for both.
func TestWhoComesAfterUnitsCameFreeEarlyNeedNotWaitForThoseThatSleep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sleep func(*desk) // at noon: has a script, which costs 1, wait until two
		wake  func(*desk)
	}{
		{"a block that is lifted", func(d *desk) {
			d.shut(2 * time.Hour)
			d.refuse("script", 1, 2*time.Hour, 1, quota.ReasonBlocked)
		}, (*desk).unblock},
		{"a charge that is given back", func(d *desk) {
			d.grant("all", 10)
			d.refuse("script", 1, 2*time.Hour, 1, quota.ReasonWindow)
		}, func(d *desk) { d.refund("all", 10) }},
		{"a limit that is raised", func(d *desk) {
			d.grant("all", 10)
			d.refuse("script", 1, 2*time.Hour, 1, quota.ReasonWindow)
		}, func(d *desk) { d.configure(window(20, 2*time.Hour)) }},
		{"a heavy one before it that leaves", func(d *desk) {
			d.hand.at(-time.Hour)
			d.grant("some", 1)
			d.hand.at(0)
			d.charge("heavy", 10)
			d.refuse("script", 1, 3*time.Hour, 2, quota.ReasonLine)
		}, func(d *desk) { d.leave("heavy") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := open(t, window(10, 2*time.Hour))
			c.sleep(d)
			c.wake(d)
			d.hand.at(time.Second)
			first := d.charge("first", 1)
			if first.Granted || first.RetryAfter != time.Millisecond || first.Reason != quota.ReasonLine {
				t.Fatalf("the first after it: %+v", first)
			}
			d.hand.at(time.Second + time.Millisecond)
			d.grant("first", 1)

			// With no place kept for it, it comes after all that wait: told so, it does not ask in vain.
			if got := d.ask(quota.Request{ID: "none", Cost: 1, NoLine: true}); got.Granted || got.RetryAfter < time.Hour {
				t.Errorf("with no place: %+v", got)
			}

			// One that does not come back holds nothing longer than a grace after what it was told.
			d.charge("dead", 1)
			d.hand.at(40 * time.Second)
			s, err := d.l.State(d.ctx, d.name)
			if err != nil || s.Scheduled.Waiting != 1 || s.Waiters[0].ID != "script" {
				t.Errorf("%+v, %v", s, err)
			}
			d.hand.at(2 * time.Hour)
			d.grant("script", 1) // its place was kept
		})
	}
}

// Until the log has room for those that sleep too, it waits; and that is the instant it is told.
func TestWhoComesBehindASleeperIsToldWhenTheLogHasRoomForBoth(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.shut(2 * time.Hour)
	d.refuse("script", 4, 2*time.Hour, 1, quota.ReasonBlocked)
	d.unblock()
	d.charge("a", 6)
	d.hand.at(time.Second)
	d.grant("a", 6)
	d.refuse("b", 5, time.Minute, 2, quota.ReasonWindow)
	d.hand.at(61*time.Second - time.Microsecond)
	d.refuse("b", 5, time.Millisecond, 2, quota.ReasonWindow)
	d.hand.at(61 * time.Second)
	d.grant("b", 5)
	d.grant("script", 4)
	d.used(9)
}

// Interactive ones sleep, though they could have come since the one before them left. A
// Scheduled one that needs more to leave than they alone free is promised what holds
// when they come at their promises, and not before.
func TestAPromiseCountsOnInteractiveOnesThatSleep(t *testing.T) {
	t.Parallel()
	d := open(t, window(4, time.Hour))
	d.shut(time.Minute)
	d.urgent("leaves", 4)
	sleepers := []quota.Decision{d.urgent("first", 1), d.urgent("second", 1)}
	d.leave("leaves")
	fits := d.charge("fits", 2)
	if !fits.At.Equal(d.hand.now().Add(time.Minute)) {
		t.Fatalf("it fits beside those that sleep: %+v", fits)
	}
	promised := d.charge("counts on them", 3)
	d.hand.set(fits.At)
	d.grant("fits", 2)
	for _, s := range sleepers {
		d.hand.set(s.At)
		if got := d.urgent(s.ID, 1); !got.Granted {
			t.Fatalf("at its promise: %+v", got)
		}
	}
	if promised.At.After(d.hand.now()) {
		d.hand.set(promised.At)
	}
	d.grant("counts on them", 3)
}

package quota_test

import (
	"fmt"
	"testing"
	"time"

	"feedwarden/quota"
)

func TestCancelledJobsLeaveTheLineAtOnce(t *testing.T) {
	t.Parallel()
	for how, cancel := range map[string]func(*desk, string){
		"leave":  (*desk).leave,
		"refund": func(d *desk, id string) { d.refund(id, 0) },
	} {
		d := open(t, window(10, time.Minute))
		d.grant("a", 10)
		d.charge("heavy", 10)
		next := d.charge("next", 5)
		last := d.charge("last", 5)
		if want := epoch.Add(2 * time.Minute); !next.At.Equal(want) || next.Position != 2 || last.Position != 3 {
			t.Fatalf("%s: %+v, %+v", how, next, last)
		}
		cancel(d, "heavy")
		if s := d.state(); s.Scheduled != (quota.Line{Waiting: 2, Units: 10}) {
			t.Errorf("%s: %+v", how, s.Scheduled)
		}
		// Nobody waits for it any more: not in place, nor in time.
		for i, id := range []string{"next", "last"} {
			got := d.charge(id, 5)
			if got.Granted || got.Position != int64(i+1) || got.At.After(epoch.Add(time.Minute+time.Microsecond)) {
				t.Errorf("%s: %s: %+v", how, id, got)
			}
		}
		d.hand.at(time.Minute + time.Microsecond)
		d.grant("last", 5)
		d.grant("next", 5)
	}
}

// One heavy charge in 40, and newcomers all the while, more than there is room for.
func TestLightChargesCannotStarveHeavyOnes(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, 10*time.Second))
	type job struct {
		id       string
		cost     int64
		promised time.Time // at first asking
		due      time.Time
	}
	var line []job
	var order []string
	heavies := 0
	granted := func(j job, at time.Time) {
		order = append(order, j.id)
		if !j.promised.IsZero() && at.After(j.promised) {
			t.Errorf("%s was promised %s and granted at %s", j.id, j.promised, at)
		}
		if j.cost > 1 && !j.promised.IsZero() {
			heavies++
		}
	}
	// Who waits comes back at its promise, and never before.
	serve := func(until time.Time) {
		for len(line) > 0 && !line[0].due.After(until) {
			j := line[0]
			if j.due.After(d.hand.now()) {
				d.hand.set(j.due)
			}
			got := d.charge(j.id, j.cost)
			if !got.Granted {
				t.Fatalf("%s, cost %d, at its promise: %+v", j.id, j.cost, got)
			}
			granted(j, got.At)
			line = line[1:]
		}
	}
	for i := range 400 {
		next := epoch.Add(time.Duration(i) * 50 * time.Millisecond)
		serve(next)
		if next.After(d.hand.now()) {
			d.hand.set(next)
		}
		j := job{id: fmt.Sprint("job", i), cost: 1}
		if i%40 == 39 {
			j.cost = 40
		}
		got := d.charge(j.id, j.cost)
		switch {
		case !got.Granted:
			j.promised, j.due = got.At, got.At
			line = append(line, j)
		case len(line) > 0:
			t.Fatalf("%s was granted while %d wait", j.id, len(line))
		default:
			granted(j, got.At)
		}
	}
	serve(epoch.Add(24 * time.Hour))
	if len(order) != 400 || heavies < 8 {
		t.Fatalf("%d jobs done, %d heavy ones of those that waited", len(order), heavies)
	}
	for i, id := range order {
		if want := fmt.Sprint("job", i); id != want {
			t.Fatalf("%s was served in the place of %s", id, want)
		}
	}
}

func TestNotBackAfterTheGraceIsDropped(t *testing.T) {
	t.Parallel()
	c := window(10, time.Minute)
	c.Grace = 5 * time.Second
	d := open(t, c)
	d.grant("a", 10)
	gone := d.charge("gone", 10)
	behind := d.charge("behind", 10)
	if want := epoch.Add(2 * time.Minute); !behind.At.Equal(want) {
		t.Fatalf("promised %s, want %s", behind.At, want)
	}
	d.hand.set(gone.At.Add(5*time.Second - time.Microsecond))
	if s := d.state(); s.Scheduled.Waiting != 2 {
		t.Fatalf("within the grace: %+v", s.Scheduled)
	}
	d.hand.set(gone.At.Add(5 * time.Second))
	if s := d.state(); s.Scheduled != (quota.Line{Waiting: 1, Units: 10}) || s.Waiters[0].ID != "behind" {
		t.Fatalf("after the grace: %+v", s.Waiters)
	}
	d.grant("behind", 10)
	// It has no place and no promise: it is a newcomer.
	if got := d.charge("gone", 10); got.Granted || got.Position != 1 || !got.At.Equal(d.hand.now().Add(time.Minute)) {
		t.Errorf("%+v", got)
	}
}

func TestLoweredLimitsShowNothingNegativeAndGiveNewPromises(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Hour))
	reload := func(limit int64) {
		t.Helper()
		c := window(limit, time.Hour)
		c.Name = d.name
		if err := d.l.Reload([]quota.Config{c}); err != nil {
			t.Fatal(err)
		}
	}
	d.grant("a", 40)
	d.hand.at(20 * time.Minute)
	d.grant("b", 40)
	d.hand.at(30 * time.Minute)
	d.refuse("w1", 30, 30*time.Minute, 1, quota.ReasonWindow) // when a has left
	d.refuse("w2", 30, 30*time.Minute+time.Millisecond, 2, quota.ReasonWindow)
	d.hand.at(31 * time.Minute)

	reload(50)
	if s := d.state(); s.Remaining != 0 || s.Windows[0].Used != 80 || s.Windows[0].Limit != 50 {
		t.Errorf("%+v", s)
	}
	d.refuse("w1", 30, 49*time.Minute, 1, quota.ReasonWindow) // when b has left, too
	d.refuse("w2", 30, 109*time.Minute, 2, quota.ReasonWindow)
	d.hand.at(80*time.Minute - time.Microsecond)
	d.refuse("w1", 30, time.Millisecond, 1, quota.ReasonWindow)
	d.hand.at(80 * time.Minute)
	d.grant("w1", 30)
	d.refuse("w2", 30, time.Hour, 1, quota.ReasonWindow)

	// What can never be granted now is told at once, and holds nobody up.
	d.refuse("w3", 10, time.Hour+time.Millisecond, 2, quota.ReasonLine)
	reload(25)
	if s := d.state(); s.Remaining != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := d.l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "w2", Cost: 30}); err == nil {
		t.Error("a cost of 30 of 25 was taken")
	}
	d.hand.at(140 * time.Minute)
	d.grant("w3", 10)

	// Raised: the log is kept, and who waits is early.
	d.refuse("w4", 20, time.Hour, 1, quota.ReasonWindow)
	reload(200)
	if s := d.state(); s.Remaining != 190 {
		t.Errorf("%+v", s)
	}
	d.grant("w4", 20)
}

// Even where there is room for all of them.
func TestANewcomerIsGrantedOnlyWhileNobodyOfItsClassWaits(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Hour))
	d.grant("a", 100)
	d.charge("waits", 5)
	d.refund("a", 100)
	if got := d.charge("new", 5); got.Granted || got.Position != 2 || got.Reason != quota.ReasonLine {
		t.Fatalf("%+v", got)
	}
	if got := d.ask(quota.Request{ID: "no line", Cost: 5, NoLine: true}); got.Granted || got.Position != 0 {
		t.Fatalf("%+v", got)
	}
	if got := d.urgent("another class", 5); !got.Granted {
		t.Fatalf("%+v", got)
	}
	d.grant("waits", 5)
	d.grant("new", 5)
	d.grant("no line", 5)
	d.used(20)
}

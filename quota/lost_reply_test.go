package quota_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

func TestALostReplyIsChargedOnce(t *testing.T) {
	t.Parallel()
	rdb, wire := breakable(t)
	d := &desk{t: t, ctx: context.Background(), rdb: rdb, name: testredis.Name("lost"), hand: newHand()}
	d.configure(window(100, time.Hour))
	lost := 0
	lose := func(whole bool) {
		lost++
		if whole {
			wire.Lose(1, "evalsha")
		} else {
			wire.LosePart(1, "evalsha")
		}
	}
	d.grant("warm", 1)
	for i, whole := range []bool{true, false} {
		lose(whole)
		if got := d.charge(fmt.Sprint("a", i), 10); !got.Granted || got.Windows[0].Used != int64(i)*10+11 {
			t.Fatalf("%+v", got)
		}
	}
	d.used(21)

	// Many at once.
	lose(true)
	for _, a := range d.l.ChargeAll(d.ctx, []quota.Request{{Quota: d.name, ID: "b", Cost: 2}, {Quota: d.name, ID: "c", Cost: 3}}) {
		if a.Err != nil || !a.Granted {
			t.Fatal(a)
		}
	}
	d.used(26)

	// A refusal: one place, at one promise.
	lose(true)
	d.refuse("w", 90, time.Hour+time.Millisecond, 1, quota.ReasonWindow)
	if s := d.state(); s.Scheduled.Waiting != 1 {
		t.Fatalf("%+v", s)
	}
	lose(true)
	d.leave("w")

	// A refund: what it gives back is given back once.
	lose(true)
	if _, err := d.l.Refund(d.ctx, d.name, "a0"); err != nil {
		t.Fatal(err)
	}
	d.used(16)
	lose(true)
	if err := d.l.Block(d.ctx, d.name, time.Minute, "why"); err != nil {
		t.Fatal(err)
	}
	if s := d.state(); !s.BlockedUntil.Equal(epoch.Add(time.Minute)) || s.Scheduled.Waiting != 0 {
		t.Fatalf("%+v", s)
	}
	if n := wire.Lost(); n != lost {
		t.Errorf("%d replies were lost, want %d", n, lost)
	}
	if n := len(d.entries()); n != 5 {
		t.Errorf("%d entries, want 5", n)
	}
}

// The client has given up; the charge was made all the same.
func TestAnUnknownOutcomeRefundedTwiceRestoresOnce(t *testing.T) {
	t.Parallel()
	rdb, wire := breakable(t)
	d := &desk{t: t, ctx: context.Background(), rdb: rdb, name: testredis.Name("unknown"), hand: newHand()}
	d.configure(window(100, time.Hour))
	d.grant("warm", 16)
	wire.Lose(1000, "evalsha")
	if got, err := d.l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "e", Cost: 40}); err == nil || got.Granted {
		t.Fatalf("%+v, %v", got, err)
	}
	wire.Lose(0, "")
	d.used(56)
	d.refund("e", 40)
	d.refund("e", 0)
	d.used(16)
	d.refund("never", 0)
}

func TestAnErrorIsNeverAGrant(t *testing.T) {
	t.Parallel()
	rdb, wire := breakable(t)
	d := &desk{t: t, ctx: context.Background(), rdb: rdb, name: testredis.Name("gone"), hand: newHand()}
	d.configure(window(100, time.Hour))
	d.grant("a", 1)
	r := quota.Request{Quota: d.name, ID: "b", Cost: 1}
	wire.Down(true)
	if got, err := d.l.Charge(d.ctx, r); err == nil || got.Granted {
		t.Errorf("down: %+v, %v", got, err)
	}
	if got := d.l.ChargeAll(d.ctx, []quota.Request{r}); got[0].Err == nil || got[0].Granted {
		t.Errorf("down: %+v", got[0])
	}
	if n, err := d.l.Refund(d.ctx, d.name, "a"); err == nil || n != 0 {
		t.Errorf("down: refunded %d, %v", n, err)
	}
	if s, err := d.l.State(d.ctx, d.name); err == nil || s.Remaining != 0 {
		t.Errorf("down: %+v, %v", s, err)
	}
	wire.Down(false)

	// Nobody answers.
	wire.Swallow(true)
	ctx, cancel := context.WithTimeout(d.ctx, 30*time.Millisecond)
	defer cancel()
	if got, err := d.l.Charge(ctx, r); err == nil || got.Granted {
		t.Errorf("no answer: %+v, %v", got, err)
	}
	wire.Swallow(false)
	wire.Break()
	for deadline := time.Now().Add(20 * time.Second); ; {
		got, err := d.l.Charge(d.ctx, r)
		if err == nil && got.Granted {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after it: %+v, %v", got, err)
		}
	}
	d.used(2)
}

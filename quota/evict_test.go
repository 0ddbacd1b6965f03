package quota_test

import (
	"fmt"
	"testing"
	"time"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// A server that is short of memory drops keys one by one, any of them. What is left must not
// hold the quota up: at worst what the key spoke of is forgotten.
func TestAnyKeyThatIsLostHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"state", "meta", "log:0", "log:1", "wait", "due", "line:scheduled", "line:interactive", "sums:scheduled", "sums:interactive", "series", "labels"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			c := window(100, time.Minute)
			c.Grace = time.Second
			d := open(t, c)
			for i := range 30 {
				d.grant(fmt.Sprint("b", i), 1)
				d.hand.add(2 * time.Minute)
			}
			d.grant("c", 1)
			d.hand.add(2 * time.Minute) // the next grant begins the second log
			for i := range 30 {
				d.ask(quota.Request{ID: fmt.Sprint("d", i), Cost: 3, Label: fmt.Sprint("feed-", i%3)})
			}
			d.refund("d3", 3)
			for i := range 8 {
				d.ask(quota.Request{ID: fmt.Sprint("w", i), Cost: 20})
				d.ask(quota.Request{ID: fmt.Sprint("x", i), Cost: 20, Priority: quota.Interactive})
			}
			if d.rdb.Del(d.ctx, d.key(lost)).Val() != 1 {
				t.Fatal("there was no such key")
			}
			d.ask(quota.Request{ID: "n1", Cost: 20})
			d.ask(quota.Request{ID: "n2", Cost: 20, Priority: quota.Interactive})
			d.state()
			for i := range 8 {
				d.ask(quota.Request{ID: fmt.Sprint("w", i), Cost: 20})
				d.ask(quota.Request{ID: fmt.Sprint("x", i), Cost: 20, Priority: quota.Interactive})
			}
			d.leave("w1")
			d.leave("x1")
			if _, err := d.l.Refund(d.ctx, d.name, "w2"); err != nil {
				t.Error(err)
			}
			d.hand.add(time.Hour)
			d.grant("e", 100)
			if s := d.state(); s.Scheduled != (quota.Line{}) || s.Interactive != (quota.Line{}) {
				t.Errorf("%+v, %+v wait", s.Scheduled, s.Interactive)
			}
			d.hand.add(time.Hour)
			for i := range 50 {
				d.grant(fmt.Sprint("f", i), 2)
			}
			d.refuse("g", 1, time.Minute, 1, "window")
		})
	}
}

// The same of a running limit.
func TestAnyKeyOfARunningLimitThatIsLostHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"meta", "held", "line", "due", "past"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			rdb := connection(t)
			g := openGate(t, rdb)
			g.Leases = quota.NewLeases(rdb, quota.WithClock(g.hand.now))
			name := testredis.Name("host:")
			limit, full := quota.Running{Name: name, Limit: 2}, quota.Running{Name: testredis.Name("host:"), Limit: 1}
			g.ask("z", full)
			g.ask("y", limit, full) // had its turn at the limit, and waits for the other one
			for i := range 10 {
				g.ask(fmt.Sprint("h", i), limit)
			}
			if rdb.Del(g.ctx, "fw:{running:"+name+"}:"+lost).Val() != 1 {
				t.Fatal("there was no such key")
			}
			for range 2 {
				for i := range 10 {
					g.ask(fmt.Sprint("h", i), limit)
				}
				g.ask("new", limit)
				if _, err := g.State(g.ctx, name); err != nil {
					t.Fatal(err)
				}
				g.hand.add(time.Second)
			}
			// All have died; who comes has its turn when leases and graces are over.
			for range 3 {
				g.hand.add(2 * time.Minute)
				g.ask("heir", limit)
			}
			if a := g.ask("heir", limit); !a.Held {
				t.Errorf("%+v", a)
			}
			if s, err := g.State(g.ctx, name); err != nil || s.Running != 1 || s.Waiting != 0 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

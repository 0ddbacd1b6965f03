package quota_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"feedwarden/quota"
)

// Most grants go the shortest way through the script. It must differ in nothing but speed.

func TestOneGrantGivesTheKeysItWritesTheirTTLAgain(t *testing.T) {
	t.Parallel()
	d := open(t, window(1000, time.Minute))
	for i := range 100 {
		d.grant(fmt.Sprint("c", i), 1)
		for _, key := range []string{"state", "log:0"} {
			d.rdb.Persist(d.ctx, d.key(key))
		}
		d.grant(fmt.Sprint("d", i), 1)
		for _, key := range []string{"state", "log:0"} {
			if ttl := d.rdb.PTTL(d.ctx, d.key(key)).Val(); ttl < time.Hour {
				t.Fatalf("after %d: %s lives for %s", 2*i+2, key, ttl)
			}
		}
	}
	// What it does not write has it again after 8 of them.
	d.charge("w", 999)
	if err := d.l.Leave(d.ctx, d.name, "w"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"meta", "series"} {
		d.rdb.Persist(d.ctx, d.key(key))
	}
	for i := range 8 {
		d.grant(fmt.Sprint("e", i), 1)
	}
	for _, key := range []string{"meta", "series"} {
		if ttl := d.rdb.PTTL(d.ctx, d.key(key)).Val(); ttl < time.Hour {
			t.Fatalf("%s lives for %s", key, ttl)
		}
	}
}

func TestAWindowThatBecomesADayAndBack(t *testing.T) {
	t.Parallel()
	noon := time.FixedZone("noon", 12*3600)
	whole := quota.Window{Limit: 10_000, Per: 50 * time.Hour} // as long as a log with a day is kept
	day := quota.Config{Windows: []quota.Window{{Limit: 1000, Calendar: "day", Location: noon}, whole}}
	trailing := quota.Config{Windows: []quota.Window{{Limit: 1000, Per: 10 * time.Hour}, whole}}
	d := open(t, trailing)
	model, err := quota.NewLedger(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		d.hand.add(time.Duration(i%13) * 7 * time.Minute)
		switch {
		case i%40 == 39:
			d.configure(trailing)
		case i%20 == 19:
			d.configure(day)
		}
		if err := model.Configure(d.cfg); err != nil {
			t.Fatal(err)
		}
		r := quota.Request{Quota: d.name, ID: fmt.Sprint("c", i), Cost: int64(i%5 + 1)}
		got, err := d.l.Charge(d.ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := model.Charge(d.hand.now(), r)
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("charge %d\n got   %+v\n model %+v, %v", i, got, want, err)
		}
	}
}

func TestADayThatBecomesAnotherZones(t *testing.T) {
	t.Parallel()
	east, west := time.FixedZone("east", 11*3600), time.FixedZone("west", -9*3600)
	in := func(zones ...*time.Location) (c quota.Config) {
		for i, zone := range zones {
			c.Windows = append(c.Windows, quota.Window{Limit: 40 + int64(i), Calendar: "day", Location: zone})
		}
		return c
	}
	configs := []quota.Config{in(east, west), in(west, east), in(west), in(east)}
	d := open(t, configs[0])
	model, err := quota.NewLedger(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		d.hand.add(time.Duration(i%13) * 3 * time.Minute)
		if i%5 == 4 {
			d.configure(configs[i/5%len(configs)])
			if err := model.Configure(d.cfg); err != nil {
				t.Fatal(err)
			}
		}
		r := quota.Request{Quota: d.name, ID: fmt.Sprint("c", i), Cost: int64(i%5 + 1), NoLine: true}
		got, err := d.l.Charge(d.ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := model.Charge(d.hand.now(), r)
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("charge %d\n got   %+v\n model %+v, %v", i, got, want, err)
		}
	}
}

// Whatever is the first to be asked after the loss.
func TestWhatIsLeftOfALostLogIsNeverCounted(t *testing.T) {
	t.Parallel()
	for what, ask := range map[string]func(d *desk){
		"unblock": func(d *desk) {
			if err := d.l.Unblock(d.ctx, d.name); err != nil {
				t.Error(err)
			}
		},
		"leave":           func(d *desk) { d.leave("w") },
		"refund a waiter": func(d *desk) { d.refund("w", 0) },
		"refund":          func(d *desk) { d.refund("c3", 0) },
	} {
		d := open(t, window(100, time.Minute))
		for i := range 20 {
			d.grant(fmt.Sprint("c", i), 5)
		}
		d.charge("w", 10)
		if err := d.l.Block(d.ctx, d.name, time.Second, "test"); err != nil {
			t.Fatal(err)
		}
		d.rdb.Del(d.ctx, d.key("state"))
		ask(d)
		d.hand.add(time.Second)
		d.leave("w")
		for i := range 20 {
			d.grant(fmt.Sprint("c", i), 1)
		}
		if got := d.state().Windows[0].Used; got != 20 {
			t.Errorf("%s: %d used", what, got)
		}
	}
}

func TestALogThatIsLostStartsEmpty(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"state", "log:0"} {
		d := open(t, window(100, time.Minute))
		for i := range 20 {
			d.grant(fmt.Sprint("c", i), 1)
		}
		d.rdb.Del(d.ctx, d.key(lost))
		for i := range 80 {
			d.grant(fmt.Sprint("d", i), 1)
		}
		if got := d.charge("d79", 1); !got.Granted || got.Windows[0].Used > 100 {
			t.Errorf("%s lost: %+v", lost, got)
		}
		d.hand.at(2 * time.Minute)
		d.grant("e", 100)
	}
}

func TestAStateOfAnotherFormIsAnError(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Minute))
	d.grant("a", 1)
	state := []byte(d.rdb.Get(d.ctx, d.key("state")).Val())
	state[4*8+6]++ // the version
	d.rdb.Set(d.ctx, d.key("state"), state, 0)
	if _, err := d.l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "b", Cost: 1}); err == nil || !strings.Contains(err.Error(), "another release") {
		t.Errorf("%v", err)
	}
	if got := d.rdb.Get(d.ctx, d.key("state")).Val(); got != string(state) {
		t.Error("the state was written")
	}
}

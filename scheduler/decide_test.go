package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func planOf(t testing.TB, e Entry) *planned {
	t.Helper()
	plans, err := plan([]Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	return plans[e.Name]
}

// TestDecide walks the decisions about one schedule, */10 from 08:00.
func TestDecide(t *testing.T) {
	at := func(text string) int64 {
		v, err := time.Parse("15:04:05", text)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 11, 30, v.Hour(), v.Minute(), v.Second(), 0, time.UTC).UnixMilli()
	}
	for _, c := range []struct {
		name    string
		policy  string
		outlook outlook
		want    decision
	}{
		{"nothing is due", "", outlook{now: at("08:05:00"), last: at("08:00:00")}, decision{verdict: wait, until: at("08:10:00")}},
		{"one is due", "", outlook{now: at("08:10:00"), last: at("08:00:00")}, decision{verdict: fire, instant: at("08:10:00")}},
		{"the oldest of three, attended", CatchUpNone, outlook{now: at("08:35:00"), last: at("08:00:00")}, decision{verdict: fire, instant: at("08:10:00")}},
		{"too old, though attended", CatchUpAll, outlook{now: at("09:25:00"), last: at("08:00:00")}, decision{verdict: miss, upTo: at("08:20:00"), count: 2}},
		{"not too old to the second", CatchUpAll, outlook{now: at("09:10:00"), last: at("08:00:00")}, decision{verdict: fire, instant: at("08:10:00")}},
		{"in the gap, none", CatchUpNone, outlook{now: at("08:35:00"), last: at("08:00:00"), gapFrom: at("08:05:00"), gapTo: at("08:35:00")}, decision{verdict: miss, upTo: at("08:30:00"), count: 3}},
		{"in the gap, latest", CatchUpLatest, outlook{now: at("08:35:00"), last: at("08:00:00"), gapFrom: at("08:05:00"), gapTo: at("08:35:00")}, decision{verdict: miss, upTo: at("08:20:00"), count: 2}},
		{"the latest", CatchUpLatest, outlook{now: at("08:35:00"), last: at("08:20:00"), gapFrom: at("08:05:00"), gapTo: at("08:35:00")}, decision{verdict: fire, instant: at("08:30:00"), misfire: true}},
		{"in the gap, all", CatchUpAll, outlook{now: at("08:35:00"), last: at("08:00:00"), gapFrom: at("08:05:00"), gapTo: at("08:35:00")}, decision{verdict: fire, instant: at("08:10:00"), misfire: true}},
		{"in the gap, all, beyond the cap", CatchUpAll, outlook{now: at("08:35:00"), last: at("08:00:00"), gapFrom: at("08:05:00"), gapTo: at("08:35:00"), catchUpCap: 2}, decision{verdict: miss, upTo: at("08:10:00"), count: 1}},
		{"before the gap", CatchUpNone, outlook{now: at("08:35:00"), last: at("08:00:00"), gapFrom: at("08:15:00"), gapTo: at("08:35:00")}, decision{verdict: fire, instant: at("08:10:00")}},
		{"after the gap", CatchUpNone, outlook{now: at("08:35:00"), last: at("08:20:00"), gapFrom: at("08:05:00"), gapTo: at("08:25:00")}, decision{verdict: fire, instant: at("08:30:00")}},
		{"paused", "", outlook{now: at("08:35:00"), last: at("08:00:00"), pauseFrom: at("08:15:00"), pauseTo: never}, decision{verdict: skip, upTo: at("08:30:00"), count: 3}},
		{"was paused", "", outlook{now: at("08:35:00"), last: at("08:10:00"), pauseFrom: at("08:15:00"), pauseTo: at("08:30:00")}, decision{verdict: skip, upTo: at("08:20:00"), count: 1}},
		{"before the pause", "", outlook{now: at("08:35:00"), last: at("08:00:00"), pauseFrom: at("08:15:00"), pauseTo: at("08:30:00")}, decision{verdict: fire, instant: at("08:10:00")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.outlook.catchUpCap == 0 {
				c.outlook.catchUpCap = defaultCatchUpCap
			}
			p := planOf(t, Entry{Name: "feed", Expression: "*/10 * * * *", CatchUp: CatchUp{Policy: c.policy}})
			if got := p.decide(c.outlook); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestDecideSettlesAll lets decisions run to the end from any outlook: they
// end, and every instant is settled once.
func TestDecideSettlesAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Name:       "feed",
			Expression: rapid.SampledFrom([]string{"* * * * *", "*/10 * * * *", "0 0 * * *", "@every 7m", "0,30 1-3 * * 0"}).Draw(t, "expression"),
			Timezone:   "America/New_York",
			Jitter:     time.Duration(rapid.Int64Range(0, 7200).Draw(t, "jitter")) * time.Second,
			Phase:      time.Duration(rapid.Int64Range(0, 7200).Draw(t, "phase")) * time.Second,
			CatchUp: CatchUp{
				Policy: rapid.SampledFrom([]string{CatchUpNone, CatchUpLatest, CatchUpAll}).Draw(t, "policy"),
				Within: time.Duration(rapid.Int64Range(1, 48*3600).Draw(t, "within")) * time.Second,
			},
		}
		plans, err := plan([]Entry{e})
		if err != nil {
			t.Fatal(err)
		}
		p := plans["feed"]
		now := rapid.Int64Range(1.70e12, 1.73e12).Draw(t, "now")
		back := func(what string) int64 { return now - rapid.Int64Range(0, 3*day*1000).Draw(t, what) }
		o := outlook{now: now, last: back("last"), gapFrom: back("gap from"), gapTo: back("gap to"), pauseFrom: back("pause from"), pauseTo: back("pause to"), catchUpCap: 50}
		begin, settled := o.last, int64(0)
		for range 5000 {
			d := p.decide(o)
			if d.verdict == wait {
				if d.until <= now {
					t.Fatalf("wait until %d, now is %d", d.until, now)
				}
				if all := p.count(begin, o.last); all != settled {
					t.Fatalf("%d settled of %d", settled, all)
				}
				return
			}
			upTo := d.upTo
			if d.verdict == fire {
				upTo, d.count = d.instant, 1
				if p.fireAt(d.instant) > now {
					t.Fatalf("fires before it is due: %+v", d)
				}
			}
			if upTo <= o.last || d.count < 1 {
				t.Fatalf("no way forward: %+v from %+v", d, o)
			}
			settled += d.count
			o.last = upTo
		}
		t.Fatal("no end")
	})
}

// TestFireAtGrows holds jitter to its bounds and order.
func TestFireAtGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Name: "feed", Timezone: "Australia/Lord_Howe",
			Expression: rapid.SampledFrom([]string{"* * * * *", "0,1,30 * * * *", "@every 10s", "15 2 * * *"}).Draw(t, "expression"),
			Jitter:     time.Duration(rapid.Int64Range(0, 300_000).Draw(t, "jitter")) * time.Millisecond,
			Spread:     time.Duration(rapid.Int64Range(0, 300).Draw(t, "spread")) * time.Second,
		}
		plans, err := plan([]Entry{e})
		if err != nil {
			t.Fatal(err)
		}
		p := plans["feed"]
		at, fired := rapid.Int64Range(1.70e12, 1.73e12).Draw(t, "from"), int64(math.MinInt64)
		for range 20 {
			at, _ = p.after(at)
			f := p.fireAt(at)
			if j := f - at - p.delay; f <= fired || j < 0 || j > 0 && j >= e.Jitter.Milliseconds() {
				t.Fatalf("instant %d fires at %d, the one before at %d", at, f, fired)
			}
			if got := p.firedBefore(f + 1); got != at {
				t.Fatalf("firedBefore(%d) is %d, want %d", f+1, got, at)
			}
			if got := p.firedBefore(f); got >= at {
				t.Fatalf("firedBefore(%d) is %d", f, got)
			}
			fired = f
		}
	})
}

func TestJitterIsTheSameEverywhere(t *testing.T) {
	e := Entry{Name: "trending-bd", Expression: "*/15 * * * *", Jitter: 30 * time.Second}
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC).UnixMilli()
	seen := map[int64]bool{}
	for range 3 {
		seen[planOf(t, e).fireAt(at)-at] = true
	}
	// Written down: another release must not move ticks.
	if len(seen) != 1 || !seen[2192] {
		t.Errorf("jitter in ms: %v", seen)
	}
}

func TestSpread(t *testing.T) {
	var byIndex, byHash []int64
	for i := range 8 {
		byIndex = append(byIndex, planOf(t, Entry{Name: fmt.Sprint("feed-", i), Expression: "* * * * *", Phase: PhaseOf(time.Minute, i, 8)}).delay)
		byHash = append(byHash, planOf(t, Entry{Name: fmt.Sprint("feed-", i), Expression: "* * * * *", Spread: time.Minute}).delay)
	}
	if want := []int64{0, 7500, 15000, 22500, 30000, 37500, 45000, 52500}; !slices.Equal(byIndex, want) {
		t.Errorf("by index %v", byIndex)
	}
	slices.Sort(byHash)
	if c := slices.Compact(byHash); len(c) < 6 || c[len(c)-1] >= 60_000 {
		t.Errorf("by hash %v", byHash)
	}
	every := planOf(t, Entry{Name: "feed", Expression: "@every 10m", Phase: 90*time.Second + 250*time.Millisecond})
	if at, _ := every.after(0); at != 90_000 || every.fireAt(at) != at+250 {
		t.Errorf("an @every's phase moves its instants: %d fires at %d", at, every.fireAt(at))
	}
	// The longest spread of the most feeds is no number of nanoseconds times their count.
	for i, last := 0, time.Duration(-1); i < 100_000; i += 777 {
		at := PhaseOf(365*24*time.Hour, i, 100_000)
		if at <= last || at >= 365*24*time.Hour {
			t.Fatalf("number %d of 100000 comes at %v, after %v", i, at, last)
		}
		last = at
	}
	if PhaseOf(time.Minute, 3, 0) != 0 {
		t.Error("no feeds have a phase")
	}
}

func TestTickID(t *testing.T) {
	tick := Tick{Schedule: "trending-bd", Instant: time.Date(2026, 11, 30, 14, 0, 0, 0, time.FixedZone("", 6*3600))}
	if got := tick.ID(); got != "trending-bd@2026-11-30T08:00:00Z" {
		t.Error(got)
	}
	tick.Manual = "trigger-1f2e3d4c"
	if got := tick.ID(); got != "trending-bd@2026-11-30T08:00:00Z~trigger-1f2e3d4c" {
		t.Error(got)
	}
}

func TestEntriesGiveEveryFault(t *testing.T) {
	_, err := plan([]Entry{
		{Name: "", Expression: "@daily"},
		{Name: "a", Expression: "0 0 31 2 *", Timezone: "Mars/Base"},
		{Name: "b", Expression: "@daily", CatchUp: CatchUp{Policy: "some", Within: -time.Second}, Overlap: "maybe", Jitter: -1, Phase: -1, Spread: -1},
		{Name: "c", Expression: "@daily"}, {Name: "c", Expression: "@daily"},
	})
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{
		`"": name`, `"a": expression`, `"a": timezone`, `"b": catch_up: policy "some"`, `"b": catch_up: -1s`, `"b": overlap`, `"b": jitter`, `"b": phase`, `"b": spread`, `"c": name`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not told in\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 10 {
		t.Errorf("%d faults", n)
	}
}

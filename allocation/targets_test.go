package allocation_test

import (
	"slices"
	"testing"
	"time"

	"feedwarden/allocation"
)

func (b *bench) tell(id, target string, o allocation.Outcome) {
	b.t.Helper()
	b.reportFull(allocation.Report{ID: id, Target: target, Outcome: o})
}

func (b *bench) targets() []allocation.Target {
	b.t.Helper()
	got, err := b.pools.Targets(b.t.Context(), b.pool)
	b.must(err)
	return got
}

// TestEveryEndpointFailsOnOneTarget: the target is paused, the pool stays whole.
func TestEveryEndpointFailsOnOneTarget(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 6, 20} {
		for _, o := range []allocation.Outcome{allocation.Unreachable, allocation.TLS, allocation.Timeout, allocation.Reset, allocation.Ban, allocation.Target5xx} {
			t.Run(string(o), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, allocation.Config{})
				ids := b.fill(n)
				b.tell(ids[0], "good.example", allocation.OK)
				for _, id := range ids {
					b.tell(id, "Bad.example.", o)
				}
				for _, e := range b.list() {
					if e.State != allocation.Active || e.Strikes != 0 || len(e.Bans) != 0 {
						t.Errorf("%d endpoints: %+v is blamed", n, e)
					}
				}
				if e := b.empty(allocation.TakeOptions{Target: "bad.example"}); e.Target != "bad.example" || e.RetryAfter != 30*time.Second {
					t.Errorf("%d endpoints: got %+v, want the target paused for 30 s", n, e)
				}
				b.takeFor(allocation.TakeOptions{Target: "good.example"})
				if got := b.targets(); len(got) != 1 || got[0].Name != "bad.example" || !got[0].Paused.Equal(b.clock.read().Add(30*time.Second)) {
					t.Errorf("targets are %+v", got)
				}
			})
		}
	}
}

func TestPausesBackOffAndEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Quarantine: allocation.QuarantineConfig{Base: 10 * time.Second, Max: 25 * time.Second}})
	ids := b.fill(4)
	o := allocation.TakeOptions{Target: "t.example"}
	fail := func(want time.Duration) {
		t.Helper()
		for _, id := range ids {
			b.tell(id, o.Target, allocation.Timeout)
		}
		if e := b.empty(o); e.RetryAfter != want {
			t.Errorf("paused for %s, want %s", e.RetryAfter, want)
		}
		b.clock.move(want)
		b.takeFor(o)
	}
	fail(10 * time.Second)
	fail(20 * time.Second)
	fail(25 * time.Second)
	for range 2 {
		b.tell(ids[0], o.Target, allocation.OK)
	}
	b.clock.move(10 * time.Minute) // what was seen before that speaks no more
	fail(20 * time.Second)

	for _, id := range ids {
		b.tell(id, o.Target, allocation.Timeout)
	}
	b.empty(o)
	b.must(b.pools.Resume(t.Context(), b.pool, "T.example"))
	b.takeFor(o)
	if got := b.targets(); len(got) != 0 {
		t.Errorf("after a resume the targets are %+v", got)
	}
}

// TestSomeEndpointsFail: below the share it is they who are to blame.
func TestSomeEndpointsFail(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(10)
	for _, id := range ids[5:] {
		b.tell(id, "t.example", allocation.OK)
	}
	for _, id := range ids[:5] {
		b.tell(id, "t.example", allocation.Reset)
	}
	if s := b.state(); s.Quarantined != 5 || s.Eligible != 5 {
		t.Errorf("state %+v, want the five that failed out", s)
	}
	b.takeFor(allocation.TakeOptions{Target: "t.example"})
	// One more makes it six of ten.
	b.tell(ids[5], "t.example", allocation.Reset)
	if s := b.state(); s.Eligible != 10 {
		t.Errorf("state %+v, want all back", s)
	}
	b.empty(allocation.TakeOptions{Target: "t.example"})
}

// TestDeadEndpointsSayNothingOfATarget: a list that is mostly dead does not stop the feeds.
func TestDeadEndpointsSayNothingOfATarget(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(10)
	for _, id := range ids[:9] {
		b.tell(id, "t.example", allocation.Connect)
	}
	if s := b.state(); s.Quarantined != 9 {
		t.Errorf("state %+v", s)
	}
	if a := b.takeFor(allocation.TakeOptions{Target: "t.example"}); a.ID != ids[9] {
		t.Errorf("took %s", a.ID)
	}
}

// TestPauseLeavesOthersOut: only what the target did is taken back.
func TestPauseLeavesOthersOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(6)
	b.tell(ids[0], "t.example", allocation.Connect)
	b.tell(ids[1], "other.example", allocation.Reset)
	b.must(b.pools.Quarantine(t.Context(), b.pool, ids[2], time.Hour))
	for _, id := range ids[3:] {
		b.tell(id, "t.example", allocation.Reset)
	}
	out := []string{}
	for _, e := range b.list() {
		if e.State == allocation.Quarantined {
			out = append(out, e.ID)
		}
	}
	if !slices.Equal(out, ids[:3]) {
		t.Errorf("out are %v, want %v", out, ids[:3])
	}
}

func TestBansArePerTarget(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Quarantine: allocation.QuarantineConfig{Base: 10 * time.Second, Max: 15 * time.Second, BlameTargetAbove: 1}})
	ids := b.fill(3)
	o := allocation.TakeOptions{Target: "t.example"}
	for i, want := range []time.Duration{10 * time.Second, 15 * time.Second, 15 * time.Second} {
		b.tell(ids[0], o.Target, allocation.Ban)
		b.tell(ids[0], o.Target, allocation.Ban) // of the same time
		e := b.endpoint(ids[0])
		if len(e.Bans) != 1 || e.Bans[0].Target != o.Target || e.Bans[0].Until.Sub(b.clock.read()) != want || e.State != allocation.Active {
			t.Fatalf("ban %d: it is %+v, want it banned for %s", i, e, want)
		}
		for range 4 {
			if b.takeFor(o).ID == ids[0] {
				t.Fatal("a banned endpoint is taken for the target")
			}
		}
		if b.clock.move(want - time.Microsecond); b.takeFor(o).ID == ids[0] {
			t.Error("the ban ends early")
		}
		b.clock.move(time.Microsecond)
		if a := b.takeFor(o); a.ID != ids[0] { // it is the least used by now
			t.Errorf("took %s after the ban", a.ID)
		}
	}
	// All banned: the next chance is the first end of a ban.
	b.tell(ids[0], o.Target, allocation.Ban)
	b.clock.move(10 * time.Second)
	b.tell(ids[1], o.Target, allocation.Ban)
	b.tell(ids[2], o.Target, allocation.Ban)
	if e := b.empty(o); e.RetryAfter != 5*time.Second || e.Target != "" {
		t.Errorf("got %+v, want 5 s", e)
	}
	b.take()
	if got := b.targets(); len(got) != 1 || got[0].Banned != 3 || !got[0].Paused.IsZero() {
		t.Errorf("targets are %+v", got)
	}
	b.must(b.pools.Restore(t.Context(), b.pool, ids[1]))
	if a := b.takeFor(o); a.ID != ids[1] {
		t.Errorf("took %s after its bans were lifted by hand", a.ID)
	}
}

// TestManyBans: the lowest hundreds are barred, and the take still finds the others, by every policy.
func TestManyBans(t *testing.T) {
	t.Parallel()
	for _, policy := range allPolicies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, allocation.Config{Policy: policy, Cap: 100, Quarantine: allocation.QuarantineConfig{BlameTargetAbove: 1}})
			ids := b.fill(300)
			b.counted(10, ids[290:]...) // the barred are the least used
			for _, id := range ids[:290] {
				b.tell(id, "t.example", allocation.Ban)
			}
			for range 30 {
				if a := b.takeFor(allocation.TakeOptions{Target: "t.example"}); !slices.Contains(ids[290:], a.ID) {
					t.Fatalf("took %s, which is banned", a.ID)
				}
			}
		})
	}
}

// TestTargetRecordsEnd: nothing of a target is kept for ever.
func TestTargetRecordsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(4)
	for _, o := range []allocation.Outcome{allocation.OK, allocation.Ban, allocation.Timeout} {
		for i, id := range ids {
			b.tell(id, []string{"a.example", "b.example"}[i%2], o)
		}
	}
	names, err := b.rdb.Keys(t.Context(), "fw:{pool:"+b.pool+"}:*").Result()
	b.must(err)
	ending := 0
	for _, name := range names {
		if b.rdb.PTTL(t.Context(), name).Val() > 0 {
			ending++
		}
	}
	if len(names)-ending > 6 { // endpoints, ready, deck, busy, parked, held
		t.Errorf("of the keys %v only %d have an end", names, ending)
	}
}

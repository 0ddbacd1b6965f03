package allocation_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"pgregory.net/rapid"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome allocation.Outcome
		target  string
		state   string
		banned  bool
	}{
		{allocation.OK, "", allocation.Active, false},
		{allocation.Connect, "", allocation.Quarantined, false},
		{allocation.Unreachable, "", allocation.Quarantined, false},
		{allocation.Unreachable, "t.example", allocation.Quarantined, false},
		{allocation.TLS, "", allocation.Quarantined, false},
		{allocation.Timeout, "", allocation.Quarantined, false},
		{allocation.Reset, "", allocation.Quarantined, false},
		{allocation.Ban, "", allocation.Quarantined, false},
		{allocation.ProxyAuth, "", allocation.AuthFailed, false},
		{allocation.Target5xx, "", allocation.Active, false},
		{allocation.Cancelled, "", allocation.Active, false},
		{allocation.OK, "t.example", allocation.Active, false},
		{allocation.Connect, "t.example", allocation.Quarantined, false},
		{allocation.TLS, "t.example", allocation.Quarantined, false},
		{allocation.Timeout, "t.example", allocation.Quarantined, false},
		{allocation.Reset, "t.example", allocation.Quarantined, false},
		{allocation.Ban, "t.example", allocation.Active, true},
		{allocation.ProxyAuth, "t.example", allocation.AuthFailed, false},
		{allocation.Target5xx, "t.example", allocation.Active, false},
		{allocation.Cancelled, "t.example", allocation.Active, false},
	} {
		t.Run(string(c.outcome)+" "+c.target, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, allocation.Config{})
			ids := b.fill(4)
			b.reportFull(allocation.Report{ID: ids[0], Outcome: c.outcome, Target: c.target})
			e := b.endpoint(ids[0])
			if e.State != c.state || len(e.Bans) == 1 != c.banned {
				t.Fatalf("it is %+v, want %s, banned: %v", e, c.state, c.banned)
			}
			s := b.state()
			want := allocation.State{Name: b.pool, Policy: allocation.LeastUsed, Total: 4, Eligible: 4}
			switch c.state {
			case allocation.Quarantined:
				want.Eligible, want.Quarantined, want.NextEligible = 3, 1, b.clock.read().Add(30*time.Second)
				if e.Why != string(c.outcome) || !e.Until.Equal(want.NextEligible) || !e.Since.Equal(b.clock.read()) || e.Strikes != 1 {
					t.Errorf("it is %+v", e)
				}
			case allocation.AuthFailed:
				want.Eligible, want.AuthFailed = 3, 1
			}
			if s != want {
				t.Errorf("state %+v, want %+v", s, want)
			}
			// The others serve, and so does this one where it may.
			seen := map[string]bool{}
			for range 8 {
				seen[b.takeFor(allocation.TakeOptions{Target: c.target}).ID] = true
			}
			if serves := c.state == allocation.Active && !c.banned; seen[ids[0]] != serves || len(seen) < 3 {
				t.Errorf("took %v", seen)
			}
		})
	}
}

func TestBackoffGrowsToACapAndShrinksOnSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Quarantine: allocation.QuarantineConfig{Base: 10 * time.Second, Max: time.Minute}})
	id := b.fill(1)[0]
	fail := func(want time.Duration) {
		t.Helper()
		b.take()
		b.report(id, allocation.Timeout)
		if got := b.endpoint(id).Until.Sub(b.clock.read()); got != want {
			t.Errorf("out for %s, want %s", got, want)
		}
		b.clock.move(want)
	}
	for _, s := range []time.Duration{10, 20, 40, 60, 60} {
		fail(s * time.Second)
	}
	// Neither time nor a person's restore makes it shorter.
	b.clock.move(240 * time.Hour)
	fail(time.Minute)
	b.must(b.pools.Quarantine(t.Context(), b.pool, id, time.Hour))
	b.must(b.pools.Restore(t.Context(), b.pool, id))
	fail(time.Minute)
	b.take()
	if e := b.endpoint(id); e.State != allocation.Probation || e.Strikes != 7 {
		t.Errorf("on its return it is %+v", e)
	}
	for range 5 {
		b.report(id, allocation.OK)
	}
	if e := b.endpoint(id); e.State != allocation.Active || e.Strikes != 2 {
		t.Errorf("after five successes it is %+v", e)
	}
	fail(40 * time.Second)
	b.take()
	for range 3 {
		b.report(id, allocation.OK)
	}
	fail(10 * time.Second)
}

func TestOneOutageIsOneStrike(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	id := b.fill(1)[0]
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { b.report(id, allocation.Reset) })
	}
	group.Wait()
	b.clock.move(10 * time.Second)
	b.report(id, allocation.Connect)
	b.report(id, allocation.OK) // late: of a request from before
	e := b.endpoint(id)
	if e.Strikes != 1 || e.State != allocation.Quarantined || e.Until.Sub(b.clock.read()) != 20*time.Second {
		t.Errorf("it is %+v, want one strike and 20 s more", e)
	}
}

func TestRetryAfterLengthensAQuarantine(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(4)
	for i, c := range []struct{ asked, want time.Duration }{
		{2 * time.Hour, 2 * time.Hour}, {time.Second, 30 * time.Second}, {-time.Second, 30 * time.Second}, {1 << 62, 24 * time.Hour},
	} {
		b.reportFull(allocation.Report{ID: ids[i], Outcome: allocation.Ban, RetryAfter: c.asked})
		if got := b.endpoint(ids[i]).Until.Sub(b.clock.read()); got != c.want {
			t.Errorf("asked for %s it is out for %s, want %s", c.asked, got, c.want)
		}
	}
}

func TestAuthFailedWaitsForAPerson(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	const id = "http://u@h.example:80"
	b.load("http://u:old@h.example:80")
	b.report(id, allocation.ProxyAuth)
	b.clock.move(1000 * time.Hour)
	if e := b.empty(allocation.TakeOptions{}); e.RetryAfter != 0 {
		t.Errorf("it comes back by itself in %s", e.RetryAfter)
	}
	b.report(id, allocation.OK)
	b.report(id, allocation.Reset)
	if e := b.endpoint(id); e.State != allocation.AuthFailed || e.Why != "proxy-auth" {
		t.Errorf("it is %+v", e)
	}
	if err := b.pools.Quarantine(t.Context(), b.pool, id, time.Second); !errors.Is(err, allocation.ErrHeld) {
		t.Errorf("a quarantine says %v, want ErrHeld: it would come back by itself", err)
	}
	if r := b.load("http://u:old@h.example:80"); r.Duplicates != 1 || r.Renewed != 0 {
		t.Errorf("the same password again: %+v", r)
	}
	b.empty(allocation.TakeOptions{})
	if r := b.load("http://u:new@h.example:80"); r.Duplicates != 1 || r.Renewed != 1 || r.Accepted != 0 {
		t.Errorf("a new password: %+v", r)
	}
	a := b.take()
	if password, _ := a.URL.User.Password(); password != "new" {
		t.Errorf("the password is %q", password)
	}
	if e := b.endpoint(id); e.State != allocation.Probation {
		t.Errorf("it is %+v, want it on probation", e)
	}
	b.report(id, allocation.ProxyAuth)
	b.must(b.pools.Restore(t.Context(), b.pool, id))
	b.take()
}

func TestDisabled(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	id := b.fill(1)[0]
	b.must(b.pools.Disable(t.Context(), b.pool, id))
	b.report(id, allocation.ProxyAuth)
	b.report(id, allocation.OK)
	b.load(id)
	if s := b.state(); s.Disabled != 1 || s.AuthFailed != 0 || s.Total != 1 {
		t.Errorf("state %+v", s)
	}
	b.empty(allocation.TakeOptions{})
	b.must(b.pools.Restore(t.Context(), b.pool, id))
	b.must(b.pools.Restore(t.Context(), b.pool, id))
	if a := b.take(); a.Count != 1 {
		t.Errorf("took %+v", a)
	}
	b.must(b.pools.Disable(t.Context(), b.pool, id))
	b.must(b.pools.Remove(t.Context(), b.pool, id))
	if s := b.state(); s.Total != 0 {
		t.Errorf("after its removal: %+v", s)
	}
}

func TestGateway(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Gateway: true})
	id := b.fill(1)[0]
	for _, o := range []allocation.Outcome{allocation.Reset, allocation.Timeout, allocation.OK, allocation.Reset, allocation.Connect} {
		b.report(id, o)
		b.take() // it never left
	}
	b.report(id, allocation.Reset)
	if e := b.endpoint(id); e.State != allocation.Quarantined || e.Strikes != 1 {
		t.Errorf("after three failures in a row it is %+v", e)
	}
	b.must(b.pools.Restore(t.Context(), b.pool, id))
	for range 2 {
		b.reportFull(allocation.Report{ID: id, Outcome: allocation.Ban, Target: "t.example"})
		b.takeFor(allocation.TakeOptions{Target: "t.example"})
	}
	b.reportFull(allocation.Report{ID: id, Outcome: allocation.OK, Target: "t.example"})
	for range 3 {
		b.takeFor(allocation.TakeOptions{Target: "t.example"})
		b.reportFull(allocation.Report{ID: id, Outcome: allocation.Ban, Target: "t.example"})
	}
	b.empty(allocation.TakeOptions{Target: "t.example"})
	b.take()
	b.report(id, allocation.ProxyAuth)
	if e := b.endpoint(id); e.State != allocation.AuthFailed {
		t.Errorf("after one 407 it is %+v", e)
	}
}

func TestHandErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	id := b.fill(1)[0]
	ctx := t.Context()
	for name, c := range map[string]struct{ got, want error }{
		"quarantine, no pool":     {b.pools.Quarantine(ctx, "x", id, time.Second), allocation.ErrUnknownPool},
		"quarantine, no endpoint": {b.pools.Quarantine(ctx, b.pool, "x", time.Second), allocation.ErrUnknownEndpoint},
		"quarantine, no time":     {b.pools.Quarantine(ctx, b.pool, id, 0), allocation.ErrDuration},
		"quarantine, too long":    {b.pools.Quarantine(ctx, b.pool, id, 1<<62), allocation.ErrDuration},
		"restore, no pool":        {b.pools.Restore(ctx, "x", id), allocation.ErrUnknownPool},
		"restore, no endpoint":    {b.pools.Restore(ctx, b.pool, "x"), allocation.ErrUnknownEndpoint},
		"disable, no endpoint":    {b.pools.Disable(ctx, b.pool, "x"), allocation.ErrUnknownEndpoint},
		"remove, no endpoint":     {b.pools.Remove(ctx, b.pool, "x"), allocation.ErrUnknownEndpoint},
		"report, no pool":         {b.pools.Report(ctx, allocation.Report{Pool: "x", ID: id, Outcome: "ok"}), allocation.ErrUnknownPool},
		"report, no endpoint":     {b.pools.Report(ctx, allocation.Report{Pool: b.pool, ID: "x", Outcome: "ok"}), allocation.ErrUnknownEndpoint},
		"report, no such outcome": {b.pools.Report(ctx, allocation.Report{Pool: b.pool, ID: id, Outcome: "404"}), allocation.ErrOutcome},
		"resume, not paused":      {b.pools.Resume(ctx, b.pool, "t.example"), allocation.ErrNotPaused},
		"resume, no pool":         {b.pools.Resume(ctx, "x", "t.example"), allocation.ErrUnknownPool},
		"import, no pool":         {func() error { _, err := b.pools.Import(ctx, "x", strings.NewReader(""), nil); return err }(), allocation.ErrUnknownPool},
		"list, no pool":           {func() error { _, err := b.pools.List(ctx, "x"); return err }(), allocation.ErrUnknownPool},
		"state, no pool":          {func() error { _, err := b.pools.State(ctx, "x"); return err }(), allocation.ErrUnknownPool},
		"targets, no pool":        {func() error { _, err := b.pools.Targets(ctx, "x"); return err }(), allocation.ErrUnknownPool},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	b.take() // nothing of this has touched the endpoint
}

// TestHealthModel reports any outcomes and any verdicts in any order of one
// endpoint and compares its state with a plain model.
func TestHealthModel(t *testing.T) {
	t.Parallel()
	const base, longest = 10 * time.Second, 100 * time.Second
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		gateway := rapid.Bool().Draw(rt, "gateway")
		c := allocation.Config{Gateway: gateway, Quarantine: allocation.QuarantineConfig{Base: base, Max: longest}}
		state, strikes, fails := allocation.Active, 0, 0
		if rapid.Bool().Draw(rt, "require") {
			c.Require, state = &whole, allocation.Candidate
		}
		b := benchOn(t, rdb, c)
		id := b.fill(1)[0]
		var until time.Time
		strike := func() {
			if fails++; gateway && fails < 3 {
				return
			}
			fails, strikes = 0, strikes+1
			state, until = allocation.Quarantined, b.clock.read().Add(min(base<<(strikes-1), longest))
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			serving := state == allocation.Active || state == allocation.Probation
			switch o := rapid.SampledFrom([]allocation.Outcome{"ok", "ok", "connect", "unreachable", "tls", "timeout", "reset", "ban",
				"proxy-auth", "target-5xx", "cancelled", "wait", "wait", "restore", "take",
				"check fits", "check fits", "check unfit", "check reset", "check 407"}).Draw(rt, "event"); o {
			case "check fits", "check unfit", "check reset", "check 407":
				v := map[allocation.Outcome]allocation.Verdict{"check fits": good, "check unfit": {OK: true},
					"check reset": broken(allocation.Reset), "check 407": broken(allocation.ProxyAuth)}[o]
				b.judge(id, v)
				if state == allocation.Quarantined && !until.After(b.clock.read()) {
					state, serving = allocation.Probation, true
				}
				fits := o == "check fits" || o == "check unfit" && c.Require == nil
				switch {
				case state == allocation.AuthFailed:
				case o == "check 407":
					state = allocation.AuthFailed
				case o == "check reset" && serving:
					strike()
				case o == "check unfit" && !fits:
					state = allocation.Candidate
				case fits && state == allocation.Candidate:
					state = allocation.Probation
				case fits && serving:
					state, strikes, fails = allocation.Active, max(strikes-1, 0), 0
				}
			case "wait":
				b.clock.move(time.Duration(rapid.IntRange(1, 60).Draw(rt, "seconds")) * time.Second)
			case "restore":
				b.must(b.pools.Restore(t.Context(), b.pool, id))
				if !serving {
					state = allocation.Probation
				}
			case "take":
				_, err := b.pools.Take(t.Context(), b.pool, allocation.TakeOptions{})
				if state == allocation.Quarantined && !until.After(b.clock.read()) {
					state, serving = allocation.Probation, true
				}
				if serving != (err == nil) {
					rt.Fatalf("take says %v of an endpoint that is %s", err, state)
				}
			default:
				b.report(id, o)
				switch {
				case o == "proxy-auth":
					state = allocation.AuthFailed
				case !serving || o == "target-5xx" || o == "cancelled":
				case o == "ok":
					state, strikes, fails = allocation.Active, max(strikes-1, 0), 0
				default:
					strike()
				}
			}
			want := state
			if state == allocation.Quarantined && !until.After(b.clock.read()) {
				want = allocation.Probation // as the next take will find it
			}
			e := b.endpoint(id)
			if e.State != want || e.Strikes != strikes || want == allocation.Quarantined && !e.Until.Equal(until) {
				rt.Fatalf("it is %s until %v with %d strikes, want %s until %v with %d", e.State, e.Until, e.Strikes, want, until, strikes)
			}
		}
	})
}

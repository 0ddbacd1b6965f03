package allocation_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
)

func (b *bench) judge(id string, v allocation.Verdict) allocation.Endpoint {
	b.t.Helper()
	e, err := b.pools.Judge(b.t.Context(), b.pool, id, v)
	b.must(err)
	return e
}

func (b *bench) candidates(n int) []string {
	b.t.Helper()
	list, err := b.pools.Candidates(b.t.Context(), b.pool, n)
	b.must(err)
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = a.ID
	}
	return ids
}

var (
	whole  = allocation.Require{HTTPS: true, MaxLatency: time.Second, Anonymous: true}
	good   = allocation.Verdict{OK: true, HTTPS: true, Latency: time.Second}
	broken = func(o allocation.Outcome) allocation.Verdict { return allocation.Verdict{Kind: o} }
)

// put brings an endpoint into a state.
func (b *bench) put(id, state string) {
	b.t.Helper()
	ctx := b.t.Context()
	switch state {
	case allocation.Candidate:
	case allocation.Probation:
		b.must(b.pools.Restore(ctx, b.pool, id))
	case allocation.Active:
		b.must(b.pools.Restore(ctx, b.pool, id))
		b.report(id, allocation.OK)
	case allocation.Quarantined:
		b.must(b.pools.Restore(ctx, b.pool, id))
		b.must(b.pools.Quarantine(ctx, b.pool, id, time.Hour))
	case allocation.AuthFailed:
		b.report(id, allocation.ProxyAuth)
	case allocation.Disabled:
		b.must(b.pools.Disable(ctx, b.pool, id))
	}
	if e := b.endpoint(id); e.State != state {
		b.t.Fatalf("it is %s, want %s", e.State, state)
	}
}

// TestVerdictsMoveEndpoints: every state, every kind of verdict, under a
// requirement and without one.
func TestVerdictsMoveEndpoints(t *testing.T) {
	t.Parallel()
	const (
		cand, act, prob, quar = allocation.Candidate, allocation.Active, allocation.Probation, allocation.Quarantined
		auth, dis             = allocation.AuthFailed, allocation.Disabled
	)
	states := []string{cand, prob, act, quar, auth, dis}
	slow, plain, reveals, alters := good, good, good, good
	slow.Latency += time.Millisecond
	plain.HTTPS = false
	reveals.Reveals = true
	alters.Alters = true
	for name, c := range map[string]struct {
		v    allocation.Verdict
		want [6]string // for each of states
		free [6]string // without a requirement; "" as want
		why  string
	}{
		"fits":             {good, [6]string{prob, act, act, quar, auth, dis}, [6]string{}, ""},
		"too slow":         {slow, [6]string{cand, cand, cand, cand, auth, dis}, [6]string{prob, act, act, quar}, "too slow"},
		"no https":         {plain, [6]string{cand, cand, cand, cand, auth, dis}, [6]string{prob, act, act, quar}, "no https"},
		"reveals":          {reveals, [6]string{cand, cand, cand, cand, auth, dis}, [6]string{prob, act, act, quar}, "reveals the caller"},
		"alters":           {alters, [6]string{cand, cand, cand, cand, auth, dis}, [6]string{prob, act, act, quar}, "alters content"},
		"login refused":    {broken(allocation.ProxyAuth), [6]string{auth, auth, auth, auth, auth, dis}, [6]string{}, "proxy-auth"},
		"unreachable":      {broken(allocation.Unreachable), [6]string{cand, quar, quar, quar, auth, dis}, [6]string{}, "unreachable"},
		"connect":          {broken(allocation.Connect), [6]string{cand, quar, quar, quar, auth, dis}, [6]string{}, "connect"},
		"tls":              {broken(allocation.TLS), [6]string{cand, quar, quar, quar, auth, dis}, [6]string{}, "tls"},
		"timeout":          {broken(allocation.Timeout), [6]string{cand, quar, quar, quar, auth, dis}, [6]string{}, "timeout"},
		"reset":            {broken(allocation.Reset), [6]string{cand, quar, quar, quar, auth, dis}, [6]string{}, "reset"},
		"ban":              {broken(allocation.Ban), [6]string{cand, quar, quar, quar, auth, dis}, [6]string{}, "ban"},
		"the judge is ill": {broken(allocation.Target5xx), [6]string{cand, prob, act, quar, auth, dis}, [6]string{}, ""},
		"cancelled":        {broken(allocation.Cancelled), [6]string{cand, prob, act, quar, auth, dis}, [6]string{}, ""},
	} {
		for _, require := range []*allocation.Require{&whole, nil} {
			t.Run(fmt.Sprintf("%s/required %v", name, require != nil), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, allocation.Config{Require: &whole})
				ids := b.fill(6)
				for i, id := range ids {
					b.put(id, states[i])
				}
				b.must(b.pools.Reload([]allocation.Config{{Name: b.pool, Require: require}}))
				b.clock.move(time.Second)
				for i, id := range ids {
					before := b.endpoint(id)
					want := c.want[i]
					if require == nil && c.free[i] != "" {
						want = c.free[i]
					}
					e := b.judge(id, c.v)
					if e.State != want {
						t.Errorf("%s became %s, want %s", states[i], e.State, want)
					}
					if moved := e.State != states[i]; moved && e.State != act && e.State != prob && (e.Why != c.why || !e.Since.Equal(b.clock.read())) {
						t.Errorf("%s became %s because of %q since %s, want %q now", states[i], e.State, e.Why, e.Since, c.why)
					}
					known := c.v.Kind != allocation.Target5xx && c.v.Kind != allocation.Cancelled
					if known != e.Checked.Equal(b.clock.read()) || known != (e.Verdict != nil) {
						t.Errorf("%s: checked at %s, verdict %+v", states[i], e.Checked, e.Verdict)
					}
					if e.State == quar && before.State != quar && e.Strikes != 1 {
						t.Errorf("quarantined with %d strikes", e.Strikes)
					}
				}
				s := b.state()
				if s.Total != 6 {
					t.Errorf("state %+v: somebody is lost", s)
				}
				served := map[string]bool{}
				for range 2 * s.Eligible {
					served[b.take().ID] = true
				}
				for _, e := range b.list() {
					if serves := e.State == act || e.State == prob; serves != served[e.ID] {
						t.Errorf("%s serves: %v", e.State, served[e.ID])
					}
				}
			})
		}
	}
}

func TestCandidatesDoNotServe(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Require: &whole})
	ids := b.fill(3)
	if e := b.empty(allocation.TakeOptions{}); e.RetryAfter != 0 {
		t.Errorf("a candidate would serve by itself in %s", e.RetryAfter)
	}
	if s := b.state(); s.Candidates != 3 || s.Total != 3 || s.Eligible != 0 {
		t.Errorf("state %+v", s)
	}
	if err := b.pools.Quarantine(t.Context(), b.pool, ids[0], time.Second); !errors.Is(err, allocation.ErrHeld) {
		t.Errorf("a quarantine of a candidate says %v: it would come back by itself", err)
	}
	b.report(ids[0], allocation.OK)
	b.load(strings.Join(ids, "\n")) // known already: nothing changes
	b.empty(allocation.TakeOptions{})
	b.judge(ids[1], good)
	if a := b.take(); a.ID != ids[1] {
		t.Errorf("took %s, want the one that was judged", a.ID)
	}
	b.report(ids[1], allocation.OK)
	if e := b.endpoint(ids[1]); e.State != allocation.Active {
		t.Errorf("after its first success it is %s", e.State)
	}
	// New credentials are to be checked too.
	b.load("http://u:old@h.example:80")
	b.judge("http://u@h.example:80", broken(allocation.ProxyAuth))
	b.load("http://u:new@h.example:80")
	if e := b.endpoint("http://u@h.example:80"); e.State != allocation.Candidate {
		t.Errorf("with a new password it is %s, want a candidate", e.State)
	}
}

// TestWhoIsCheckedNext: new candidates, then whoever was not checked for the longest; nothing is counted.
func TestWhoIsCheckedNext(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(6)
	b.must(b.pools.Disable(t.Context(), b.pool, ids[0]))
	b.report(ids[1], allocation.ProxyAuth)
	b.must(b.pools.Remove(t.Context(), b.pool, ids[2]))
	for _, id := range []string{ids[5], ids[3]} {
		b.clock.move(time.Second)
		b.judge(id, good)
	}
	if got, want := b.candidates(10), []string{ids[4], ids[5], ids[3]}; !slices.Equal(got, want) {
		t.Errorf("to be checked are %v, want %v", got, want)
	}
	b.must(b.pools.Reload([]allocation.Config{{Name: b.pool, Require: &whole}}))
	b.load("new.example:80")
	if got, want := b.candidates(2), []string{"http://new.example:80", ids[4]}; !slices.Equal(got, want) {
		t.Errorf("to be checked are %v, want %v", got, want)
	}
	b.clock.move(time.Second)
	b.judge("http://new.example:80", broken(allocation.Timeout))
	if got, want := b.candidates(9), []string{ids[4], ids[5], ids[3], "http://new.example:80"}; !slices.Equal(got, want) {
		t.Errorf("a dead candidate keeps the others waiting: %v, want %v", got, want)
	}
	b.must(b.pools.Restore(t.Context(), b.pool, ids[0]))
	if got := b.candidates(9); len(got) != 5 {
		t.Errorf("to be checked are %v, want the restored one too", got)
	}
	for _, e := range b.list() {
		if e.Count != 0 {
			t.Errorf("%s has count %d by being checked", e.ID, e.Count)
		}
	}
	if got := b.candidates(0); len(got) != 0 {
		t.Errorf("of none %v are to be checked", got)
	}
}

// TestManyCandidatesAreReadInChunks: each once.
func TestManyCandidatesAreReadInChunks(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Require: &whole})
	b.fill(2300)
	got := b.candidates(1 << 30)
	slices.Sort(got)
	if len(slices.Compact(got)) != 2300 {
		t.Errorf("%d are to be checked, want 2300", len(got))
	}
}

// TestJudgeThatFailsForAllIsBlamed: the pool stays whole.
func TestJudgeThatFailsForAllIsBlamed(t *testing.T) {
	t.Parallel()
	for _, o := range []allocation.Outcome{allocation.Timeout, allocation.Unreachable} {
		b := newBench(t, allocation.Config{})
		ids := b.fill(10)
		for _, id := range ids {
			b.judge(id, broken(o))
		}
		if s := b.state(); s.Eligible != 10 {
			t.Errorf("%s: state %+v: a judge that is away empties the pool", o, s)
		}
		if got := b.targets(); len(got) != 1 || got[0].Paused.IsZero() {
			t.Errorf("%s: targets are %+v, want the judge paused", o, got)
		}
	}
	// Dead candidates are no witnesses.
	c := newBench(t, allocation.Config{Require: &whole})
	for _, id := range c.fill(10) {
		c.judge(id, broken(allocation.Timeout))
	}
	if got := c.targets(); len(got) != 0 {
		t.Errorf("dead candidates have paused %+v", got)
	}
}

func TestJudgeErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	id := b.fill(1)[0]
	for name, c := range map[string]struct {
		pool, id string
		v        allocation.Verdict
		want     error
	}{
		"no pool":          {"x", id, good, allocation.ErrUnknownPool},
		"no endpoint":      {b.pool, "x", good, allocation.ErrUnknownEndpoint},
		"no outcome":       {b.pool, id, allocation.Verdict{}, allocation.ErrVerdict},
		"ok and not":       {b.pool, id, broken(allocation.OK), allocation.ErrVerdict},
		"ok with a fault":  {b.pool, id, allocation.Verdict{OK: true, Kind: allocation.Reset}, allocation.ErrVerdict},
		"no such outcome":  {b.pool, id, broken("404"), allocation.ErrOutcome},
		"nothing, nobody":  {b.pool, "x", broken(allocation.Cancelled), allocation.ErrUnknownEndpoint},
		"exits, no pool":   {"x", "", good, allocation.ErrUnknownPool},
		"another endpoint": {b.pool, id + "0", good, allocation.ErrUnknownEndpoint},
	} {
		if _, err := b.pools.Judge(t.Context(), c.pool, c.id, c.v); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if e := b.endpoint(id); e.Verdict != nil || e.State != allocation.Active {
		t.Errorf("it is %+v", e)
	}
}

// TestExitsOverTime: bounded, the latest first; shared and rotating ones are told.
func TestExitsOverTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(3)
	seen := func(id, addr string) allocation.Endpoint {
		v := good
		v.Exit = netip.MustParseAddr(addr)
		b.clock.move(time.Second)
		return b.judge(id, v)
	}
	first := b.clock.read().Add(time.Second)
	seen(ids[0], "203.0.113.1")
	seen(ids[0], "::ffff:203.0.113.1") // the same
	seen(ids[1], "203.0.113.1")
	e := seen(ids[1], "2001:db8::9")
	if !e.Rotates() || len(e.Exits) != 2 || e.Exits[0].Addr.String() != "2001:db8::9" {
		t.Errorf("exits are %+v", e.Exits)
	}
	if e := b.endpoint(ids[0]); e.Rotates() || len(e.Exits) != 1 || e.Exits[0].Seen != 2 || !e.Exits[0].First.Equal(first) || !e.Exits[0].Last.Equal(first.Add(time.Second)) {
		t.Errorf("exits are %+v", e.Exits)
	}
	groups, err := b.pools.Exits(t.Context(), b.pool)
	b.must(err)
	if len(groups) != 2 || groups[0].Addr.String() != "203.0.113.1" || !slices.Equal(groups[0].Endpoints, ids[:2]) ||
		groups[0].Rotating != 1 || groups[0].Seen != 3 || !groups[0].First.Equal(first) {
		t.Errorf("groups are %+v", groups)
	}
	for i := range 40 {
		e = seen(ids[2], fmt.Sprintf("198.51.100.%d", i))
	}
	if len(e.Exits) != 16 || e.Exits[0].Addr.String() != "198.51.100.39" || e.Exits[15].Addr.String() != "198.51.100.24" {
		t.Errorf("of 40 exits %d are kept: %+v", len(e.Exits), e.Exits)
	}
	b.must(b.pools.Remove(t.Context(), b.pool, ids[2]))
	b.load(ids[2])
	if e := b.endpoint(ids[2]); e.Exits != nil || e.Verdict != nil {
		t.Errorf("after its return it has %+v and %+v", e.Exits, e.Verdict)
	}
}

// TestChangedRequireMovesTheJudged: at once those who were judged, the others at their first check.
func TestChangedRequireMovesTheJudged(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	ids := b.fill(6)
	plain := good
	plain.HTTPS = false
	for _, id := range ids[:2] {
		b.judge(id, plain)
	}
	b.judge(ids[2], good)
	b.judge(ids[3], plain)
	b.must(b.pools.Quarantine(t.Context(), b.pool, ids[3], time.Minute))
	b.judge(ids[4], broken(allocation.Connect))
	fit := func(r *allocation.Require, want int) {
		t.Helper()
		b.must(b.pools.Reload([]allocation.Config{{Name: b.pool, Require: r}}))
		moved, err := b.pools.Fit(t.Context(), b.pool)
		b.must(err)
		again, err := b.pools.Fit(t.Context(), b.pool)
		b.must(err)
		if moved != want || again != 0 {
			t.Errorf("%d moved, then %d; want %d, then none", moved, again, want)
		}
	}
	states := func(want ...string) {
		t.Helper()
		var got []string
		for _, e := range b.list() {
			got = append(got, e.State)
		}
		if !slices.Equal(got, want) {
			t.Errorf("they are %v, want %v", got, want)
		}
	}
	const cand, act, prob, quar = allocation.Candidate, allocation.Active, allocation.Probation, allocation.Quarantined
	fit(&whole, 3)
	// The fifth failed its check and was never found unfit; the last was never judged.
	states(cand, cand, act, cand, quar, act)
	b.clock.move(time.Hour)
	for range 8 {
		if a := b.take(); slices.Contains([]string{ids[0], ids[1], ids[3]}, a.ID) {
			t.Errorf("took %s, which does not fit", a.ID)
		}
	}
	fit(&allocation.Require{Anonymous: true}, 3)
	states(prob, prob, act, prob, prob, act)
	fit(&whole, 3)
	b.load("never.example:80")
	fit(nil, 4)
	if s := b.state(); s.Candidates != 0 || s.Eligible != 7 {
		t.Errorf("without a requirement: %+v", s)
	}
}

package quota_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// gate is Leases under test, with a clock that the test moves.
type gate struct {
	*quota.Leases
	t    *testing.T
	ctx  context.Context
	hand *hand
}

func openGate(t *testing.T, rdb redis.UniversalClient) *gate {
	g := &gate{t: t, ctx: context.Background(), hand: newHand()}
	g.Leases = quota.NewLeases(rdb, quota.WithClock(g.hand.now), quota.WithPrefix(testredis.Name("fw")+":"))
	return g
}

func (g *gate) ask(holder string, limits ...quota.Running) quota.Acquired {
	g.t.Helper()
	a, err := g.Acquire(g.ctx, holder, time.Minute, limits...)
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

func (g *gate) held(holder string, limits ...quota.Running) {
	g.t.Helper()
	if a := g.ask(holder, limits...); !a.Held {
		g.t.Fatalf("%s: %+v, want it held", holder, a)
	}
}

// refused checks the place as well.
func (g *gate) refused(full string, position int64, holder string, limits ...quota.Running) quota.Acquired {
	g.t.Helper()
	a := g.ask(holder, limits...)
	if a.Held || a.Full.Name != full || a.Position != position || a.RetryAfter < time.Millisecond {
		g.t.Fatalf("%s: %+v, want a refusal by %s, place %d", holder, a, full, position)
	}
	return a
}

func (g *gate) release(holder string, names ...string) []string {
	g.t.Helper()
	next, err := g.Release(g.ctx, holder, names...)
	if err != nil {
		g.t.Fatal(err)
	}
	return next
}

func (g *gate) counts(name string, running, waiting int64) {
	g.t.Helper()
	s, err := g.State(g.ctx, name)
	if err != nil || s.Running != running || s.Waiting != waiting {
		g.t.Fatalf("%s: %+v, %v, want %d running, %d waiting", name, s, err, running, waiting)
	}
}

func TestAKilledHoldersLeaseEndsByRedissClock(t *testing.T) {
	t.Parallel()
	g := openGate(t, testredis.Client(t))
	one := quota.Running{Name: "host:a", Limit: 1}
	g.held("dead", one)
	if a := g.refused("host:a", 1, "b", one); a.RetryAfter != time.Minute || a.Reason != quota.ReasonRunning {
		t.Fatalf("%+v", a)
	}
	if a := g.refused("host:a", 2, "c", one); a.RetryAfter != 2*time.Minute {
		t.Fatalf("%+v", a)
	}
	g.hand.at(time.Minute - time.Microsecond)
	g.refused("host:a", 1, "b", one)
	g.hand.at(time.Minute)
	g.refused("host:a", 2, "c", one) // it is b's turn
	g.held("b", one)
	// Fenced: what the dead one's process does late changes nothing.
	if next := g.release("dead", "host:a"); len(next) != 0 {
		t.Fatal(next)
	}
	if err := g.Extend(g.ctx, "dead", time.Minute, "host:a"); !errors.Is(err, quota.ErrNotHeld) {
		t.Fatal(err)
	}
	g.counts("host:a", 1, 1)
	if err := g.Extend(g.ctx, "b", time.Hour, "host:a"); err != nil {
		t.Fatal(err)
	}
	g.hand.at(30 * time.Minute)
	g.counts("host:a", 1, 0) // c did not come back within the grace
}

// By Redis's own clock, with nobody's help.
func TestALeaseEndsByItself(t *testing.T) {
	t.Parallel()
	l := quota.NewLeases(testredis.Client(t))
	ctx := context.Background()
	one := quota.Running{Name: testredis.Name("host:"), Limit: 1}
	if a, err := l.Acquire(ctx, "dead", 50*time.Millisecond, one); err != nil || !a.Held {
		t.Fatal(a, err)
	}
	asked := 0
	for deadline := time.Now().Add(10 * time.Second); ; asked++ {
		a, err := l.Acquire(ctx, "b", time.Minute, one)
		if err != nil || time.Now().After(deadline) {
			t.Fatal(a, err)
		}
		if a.Held {
			break
		}
		<-time.After(a.RetryAfter)
	}
	if asked > 1 {
		t.Errorf("refused %d times on the way", asked)
	}
}

func TestFirstComeFirstServedWithALine(t *testing.T) {
	t.Parallel()
	g := openGate(t, testredis.Client(t))
	two := quota.Running{Name: "host:a", Limit: 2}
	g.held("a", two)
	g.held("b", two)
	for i, h := range []string{"c", "d", "e"} {
		g.refused("host:a", int64(i+1), h, two)
	}
	g.refused("host:a", 2, "d", two) // asking again does not change its place
	if next := g.release("a", "host:a"); !slices.Equal(next, []string{"c"}) {
		t.Fatal(next)
	}
	g.refused("host:a", 4, "new", two)
	g.refused("host:a", 2, "d", two)
	g.held("c", two)
	// One that leaves the line makes room for those behind.
	if err := g.Leave(g.ctx, "d", "host:a"); err != nil {
		t.Fatal(err)
	}
	if next := g.release("b", "host:a"); !slices.Equal(next, []string{"e"}) {
		t.Fatal(next)
	}
	// e is named once, and again when it has not come; the reply may have been lost, or its process.
	if next := g.release("nobody-in-2s", "host:b"); len(next) != 0 {
		t.Fatal(next)
	}
	if a := g.refused("host:a", 3, "later", two); len(a.Next) != 0 {
		t.Fatalf("%+v", a)
	}
	g.hand.add(3 * time.Second)
	if a := g.refused("host:a", 3, "later", two); !slices.Equal(a.Next, []string{"e"}) {
		t.Fatalf("%+v", a)
	}
	// It never comes: after the grace it holds up nobody.
	g.hand.add(28 * time.Second)
	g.held("new", two)
	g.counts("host:a", 2, 1)
}

// A retry after a lost reply names them again: nobody sleeps on.
func TestAReleaseSaidTwiceNamesThemTwice(t *testing.T) {
	t.Parallel()
	g := openGate(t, testredis.Client(t))
	one := quota.Running{Name: "host:a", Limit: 1}
	g.held("a", one)
	g.refused("host:a", 1, "b", one)
	for range 2 {
		if next := g.release("a", "host:a"); !slices.Equal(next, []string{"b"}) {
			t.Fatal(next)
		}
	}
}

func TestAllLimitsOrNone(t *testing.T) {
	t.Parallel()
	g := openGate(t, testredis.Client(t))
	q, h := quota.Running{Name: "quota:q", Limit: 1}, quota.Running{Name: "host:a", Limit: 1}
	g.held("host's", h)
	g.refused("host:a", 1, "x", q, h)
	g.counts("quota:q", 0, 0)
	// While x waits for the host, the quota is free for others, …
	g.held("other", q)
	g.refused("quota:q", 1, "y", q)
	g.refused("quota:q", 2, "z", q)
	// … and when its turn comes there, it has the place that it had.
	if next := g.release("host's", "host:a"); !slices.Equal(next, []string{"x"}) {
		t.Fatal(next)
	}
	g.refused("quota:q", 1, "x", q, h)
	if next := g.release("other", "quota:q"); !slices.Equal(next, []string{"x"}) {
		t.Fatal(next)
	}
	g.held("x", q, h)
	g.counts("quota:q", 1, 2)
	g.counts("host:a", 1, 0)

	// What a refused one took for an instant was another's: it is named.
	g.release("x", "quota:q", "host:a")
	g.held("host's", h)
	if err := g.Leave(g.ctx, "z", "quota:q"); err != nil {
		t.Fatal(err)
	}
	if a := g.refused("host:a", 1, "y", q, h); len(a.Next) != 0 {
		t.Fatalf("%+v", a)
	}
	g.counts("quota:q", 0, 0)
	// No limits at all.
	g.held("free")
}

func TestTheSameHolderHasTheSameLease(t *testing.T) {
	t.Parallel()
	g := openGate(t, testredis.Client(t))
	two := quota.Running{Name: "host:a", Limit: 2}
	g.held("a", two, two) // named twice
	g.held("a", two)
	g.counts("host:a", 1, 0)
	g.held("b", two)
	g.hand.at(40 * time.Second)
	g.held("a", two) // extended, though the limit is reached
	g.hand.at(70 * time.Second)
	g.counts("host:a", 1, 0) // b's has ended
	// A shorter one does not cut it.
	if a, err := g.Acquire(g.ctx, "a", time.Second, two); err != nil || !a.Held {
		t.Fatal(a, err)
	}
	g.hand.at(99 * time.Second)
	g.counts("host:a", 1, 0)
}

func TestLimitsChangeWithEachCall(t *testing.T) {
	t.Parallel()
	g := openGate(t, testredis.Client(t))
	at := func(n int64) quota.Running { return quota.Running{Name: "quota:q", Limit: n} }
	for _, h := range []string{"a", "b", "c"} {
		g.held(h, at(0)) // no limit, and counted all the same
	}
	g.counts("quota:q", 3, 0)
	g.refused("quota:q", 1, "d", at(1))
	g.refused("quota:q", 2, "e", at(1))
	for _, h := range []string{"a", "b"} {
		if next := g.release(h, "quota:q"); len(next) != 0 {
			t.Fatal(next) // one runs of one
		}
	}
	// Raised: the asker is granted, since there is room for it and all before it, and they are named.
	if a := g.ask("f", at(5)); !a.Held || !slices.Equal(a.Next, []string{"d", "e"}) {
		t.Fatalf("%+v", a)
	}
	if s, err := g.State(g.ctx, "quota:q"); err != nil || s.Limit != 5 {
		t.Fatal(s, err)
	}
}

func TestABlockedNameGivesNoLeases(t *testing.T) {
	t.Parallel()
	g := openGate(t, testredis.Client(t))
	free := quota.Running{Name: "quota:q"}
	g.held("a", free)
	if err := g.Block(g.ctx, "quota:q", 10*time.Second, "the target says no"); err != nil {
		t.Fatal(err)
	}
	if err := g.Block(g.ctx, "quota:q", time.Second, "shorter"); err != nil {
		t.Fatal(err)
	}
	if a := g.refused("quota:q", 1, "b", free); a.Reason != quota.ReasonBlocked || a.RetryAfter != 10*time.Second {
		t.Fatalf("%+v", a)
	}
	g.held("a", free) // who runs goes on
	if next := g.release("a", "quota:q"); len(next) != 0 {
		t.Fatal(next)
	}
	s, err := g.State(g.ctx, "quota:q")
	if err != nil || !s.BlockedUntil.Equal(epoch.Add(10*time.Second)) || s.BlockReason != "the target says no" || s.Blocks != 2 || s.Waiting != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if next, err := g.Unblock(g.ctx, "quota:q"); err != nil || !slices.Equal(next, []string{"b"}) {
		t.Fatal(next, err)
	}
	g.held("c", free)
	g.held("b", free)
	if s, err := g.State(g.ctx, "quota:q"); err != nil || !s.BlockedUntil.IsZero() || s.BlockReason != "" || s.Running != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
}

func TestEveryErrandSetsTheTTLAgain(t *testing.T) {
	t.Parallel()
	rdb := connection(t)
	g := openGate(t, rdb)
	one := quota.Running{Name: testredis.Name("r"), Limit: 1}
	g.held("a", one)
	g.refused(one.Name, 1, "b", one)
	for what, errand := range map[string]func(){
		"the same lease again": func() { g.held("a", one) },
		"a refusal":            func() { g.refused(one.Name, 1, "b", one) },
		"an extension": func() {
			if err := g.Extend(g.ctx, "a", time.Minute, one.Name); err != nil {
				t.Error(err)
			}
		},
	} {
		keys := rdb.Keys(g.ctx, "*{running:"+one.Name+"}:*").Val()
		for _, k := range keys {
			rdb.Persist(g.ctx, k)
		}
		errand()
		for _, k := range keys {
			if ttl := rdb.PTTL(g.ctx, k).Val(); ttl < time.Hour {
				t.Errorf("after %s: %s lives for %s", what, k, ttl)
			}
		}
		if len(keys) < 4 {
			t.Errorf("only %q", keys)
		}
	}
}

func TestWhatALeaseMustBe(t *testing.T) {
	t.Parallel()
	l := quota.NewLeases(nil) // nothing is sent
	ctx := context.Background()
	ok := quota.Running{Name: "host:a", Limit: 1}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no holder":      {second(l.Acquire(ctx, "", time.Minute, ok)), "holder must be"},
		"no name":        {second(l.Acquire(ctx, "a", time.Minute, quota.Running{})), `name ""`},
		"a brace":        {second(l.Release(ctx, "a", "host:{")), `name "host:{"`},
		"a blank":        {l.Leave(ctx, "a", "a b"), `name "a b"`},
		"negative limit": {second(l.Acquire(ctx, "a", time.Minute, quota.Running{Name: "x", Limit: -1})), `limit -1 of "x"`},
		"no time":        {second(l.Acquire(ctx, "a", 0, ok)), "a lease lasts from 1ms to 24h"},
		"too long":       {l.Extend(ctx, "a", 25*time.Hour, "x"), "a lease lasts from 1ms to 24h"},
		"block for 0":    {l.Block(ctx, "x", 0, ""), "from 1µs to ten years"},
		"state of none":  {second(l.State(ctx, "")), `name ""`},
		"unblock none":   {second(l.Unblock(ctx, "")), `name ""`},
		"prefix":         {second(quota.NewLeases(nil, quota.WithPrefix("{")).State(ctx, "x")), "hash tag"},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), "quota: ") || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, c.err, c.want)
		}
	}
	if err := second(l.Acquire(ctx, "", time.Minute, ok)); !errors.Is(err, quota.ErrHolder) {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

package allocation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
)

var allPolicies = []string{allocation.LeastUsed, allocation.Random, allocation.NoRepeat, allocation.Shuffled, allocation.LeastBusy, allocation.Sticky}

// walk uses every call of a pool once or more.
func walk(t *testing.T, b *bench) {
	t.Helper()
	o := allocation.TakeOptions{Key: "client", Target: "t.example"}
	b.empty(o)
	ids := b.fill(5)
	for i := range 10 {
		a := b.takeFor(o)
		b.reportFull(allocation.Report{ID: a.ID, Lease: a.Lease, Target: o.Target, Outcome: []allocation.Outcome{allocation.OK, allocation.Target5xx}[i/9]})
	}
	b.report(ids[0], allocation.Timeout)
	b.report(ids[1], allocation.ProxyAuth)
	b.tell(ids[2], o.Target, allocation.Ban)
	for range 4 {
		a := b.takeFor(o)
		if a.ID != ids[3] && a.ID != ids[4] {
			t.Errorf("took %s, which is out", a.ID)
		}
		b.reportFull(allocation.Report{ID: a.ID, Lease: a.Lease, Outcome: allocation.OK})
	}
	b.must(b.pools.Disable(t.Context(), b.pool, ids[3]))
	b.must(b.pools.Quarantine(t.Context(), b.pool, ids[4], time.Minute))
	if e := b.empty(o); e.RetryAfter != 30*time.Second {
		t.Errorf("the next chance is in %s, want 30s", e.RetryAfter)
	}
	b.clock.move(30 * time.Second)
	if a := b.take(); a.ID != ids[0] && a.ID != ids[2] {
		t.Errorf("took %s", a.ID)
	}
	b.must(b.pools.Restore(t.Context(), b.pool, ids[1]))
	b.must(b.pools.Remove(t.Context(), b.pool, ids[2]))
	for _, id := range []string{ids[0], ids[1]} {
		for range 3 {
			b.tell(id, "u.example", allocation.Reset)
		}
	}
	if e := b.empty(allocation.TakeOptions{Key: "x", Target: "u.example"}); e.Target == "" {
		t.Errorf("got %+v, want a paused target", e)
	}
	b.must(b.pools.Resume(t.Context(), b.pool, "u.example"))
	s := b.state()
	if s.Total != 4 || s.Disabled != 1 || s.Quarantined != 1 || s.Eligible != 2 {
		t.Errorf("state %+v", s)
	}
	if l := b.list(); len(l) != 4 {
		t.Errorf("listed are %+v", l)
	}
	_ = b.targets()
	walkChecks(t, b)
}

// walkChecks uses every call about lists and checks.
func walkChecks(t *testing.T, b *bench) {
	t.Helper()
	const old, next = "http://u:p@followed.example:80", "http://followed-too.example:80"
	ctx := t.Context()
	require := &allocation.Require{HTTPS: true}
	strict := b.another(allocation.Config{Require: require})
	r, err := strict.Sync(ctx, b.pool, "a list", strings.NewReader(old), nil)
	b.must(err)
	if r.Accepted != 1 || b.state().Candidates != 1 {
		t.Errorf("followed: %+v, %+v", r, b.state())
	}
	who, err := strict.Candidates(ctx, b.pool, 1)
	b.must(err)
	if len(who) != 1 || who[0].ID != "http://u@followed.example:80" || who[0].URL.String() != old {
		t.Fatalf("to be checked: %+v", who)
	}
	e, err := strict.Judge(ctx, b.pool, who[0].ID, allocation.Verdict{OK: true, HTTPS: true, Exit: netip.MustParseAddr("203.0.113.7")})
	b.must(err)
	if e.State != allocation.Probation || !e.Checked.Equal(b.clock.read()) {
		t.Errorf("judged: %+v", e)
	}
	_, err = strict.Judge(ctx, b.pool, who[0].ID, allocation.Verdict{OK: true})
	b.must(err)
	moved, err := b.pools.Fit(ctx, b.pool)
	b.must(err)
	if moved != 1 {
		t.Errorf("%d moved, want 1", moved)
	}
	groups, err := b.pools.Exits(ctx, b.pool)
	b.must(err)
	page, err := b.pools.ListPage(ctx, b.pool, allocation.Page{State: allocation.Probation, Limit: 10})
	b.must(err)
	if len(groups) != 1 || len(page.Endpoints) == 0 {
		t.Errorf("exits %+v, page %+v", groups, page)
	}
	r, err = strict.Sync(ctx, b.pool, "a list", strings.NewReader(next), nil)
	b.must(err)
	retired, err := strict.Retire(ctx, b.pool, "a list")
	b.must(err)
	if r.Retired != 1 || retired != 1 || b.state().Total != 4 {
		t.Errorf("retired %+v, then %d: %+v", r, retired, b.state())
	}
}

func TestMiniredis(t *testing.T) {
	t.Parallel()
	for _, policy := range allPolicies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			walk(t, benchOn(t, rdb, allocation.Config{Policy: policy}))
		})
	}
}

// TestCluster runs every policy through a cluster client on a node in cluster mode, which refuses keys of several slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--save", "", "--cluster-enabled", "yes")
	node := srv.Client()
	t.Cleanup(func() { _ = node.Close() })
	if err := node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(15 * time.Second); node.Set(t.Context(), "ready", 1, 0).Err() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not come up")
		}
		<-time.After(20 * time.Millisecond)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: "node:1"}}}}, nil
		},
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", srv.Socket())
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, policy := range allPolicies {
		t.Run(policy, func(t *testing.T) { walk(t, benchOn(t, rdb, allocation.Config{Policy: policy})) })
	}
}

// spy records the keys of every script call and command.
type spy struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (s *spy) note(cmd redis.Cmder) {
	args := cmd.Args()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := strings.ToLower(fmt.Sprint(args[0])); name {
	case "evalsha", "eval":
		n, _ := args[2].(int)
		for _, k := range args[3 : 3+n] {
			s.keys[fmt.Sprint(k)] = true
		}
	case "hscan", "hmget", "zcard", "zrangebyscore", "zrangebylex", "zrem":
		s.keys[fmt.Sprint(args[1])] = true
	}
}

func (s *spy) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { s.note(cmd); return next(ctx, cmd) }
}

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			s.note(c)
		}
		return next(ctx, cmds)
	}
}

// TestKeys: all keys of a pool share its hash tag, all that a script touches
// are declared, and all that it leaves behind are of the documented names.
func TestKeys(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^fw:\{pool:[^{}]+\}:(endpoints|ready|deck|busy|parked|held|gone|ends|loans|leases|targets|checks|names|call:[0-9a-f]{24}-[0-9]+|(sticky|target|bad|good|strikes|source):[0-9a-f]{24})$`)
	for _, policy := range allPolicies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			rdb := testredis.Client(t)
			s := &spy{keys: map[string]bool{}}
			rdb.AddHook(s)
			b := benchOn(t, rdb, allocation.Config{Policy: policy})
			walk(t, b)
			for k := range s.keys {
				if !name.MatchString(k) || !strings.HasPrefix(k, "fw:{pool:"+b.pool+"}:") {
					t.Errorf("the key %q is declared", k)
				}
			}
			left, err := b.rdb.Keys(t.Context(), "*"+b.pool+"*").Result()
			b.must(err)
			for _, k := range left {
				if !s.keys[k] {
					t.Errorf("the key %q is written and was never declared", k)
				}
			}
		})
	}
}

func TestScriptFlush(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--save", "", "--appendonly", "no")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	b := benchOn(t, rdb, allocation.Config{Policy: allocation.LeastBusy})
	ids := b.fill(3)
	for i, call := range []func(){
		func() { b.take() },
		func() { b.report(ids[0], allocation.OK) },
		func() { b.fill(4) },
		func() { b.state() },
		func() { b.must(b.pools.Quarantine(t.Context(), b.pool, ids[0], time.Second)) },
	} {
		b.must(rdb.ScriptFlush(t.Context()).Err())
		call()
		if t.Failed() {
			t.Fatalf("call %d", i)
		}
	}
	if s := b.state(); s.Total != 4 || s.Quarantined != 1 {
		t.Errorf("state %+v", s)
	}
}

// TestRedisGone: every call says so, and works again when Redis does.
func TestRedisGone(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: srv.Socket(), MaxRetries: -1, DialTimeout: time.Second, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	b := benchOn(t, rdb, allocation.Config{})
	b.load("http://u:canary-9d2f@h.example:80")
	id := b.take().ID
	srv.Kill()
	ctx := t.Context()
	_, takeErr := b.pools.Take(ctx, b.pool, allocation.TakeOptions{})
	_, stateErr := b.pools.State(ctx, b.pool)
	_, listErr := b.pools.List(ctx, b.pool)
	_, targetsErr := b.pools.Targets(ctx, b.pool)
	_, importErr := b.pools.Import(ctx, b.pool, strings.NewReader("http://u:canary-9d2f@i.example:80"), nil)
	for name, err := range map[string]error{
		"take": takeErr, "state": stateErr, "list": listErr, "targets": targetsErr, "import": importErr,
		"report":  b.pools.Report(ctx, allocation.Report{Pool: b.pool, ID: id, Outcome: allocation.OK}),
		"restore": b.pools.Restore(ctx, b.pool, id),
		"remove":  b.pools.Remove(ctx, b.pool, id),
		"resume":  b.pools.Resume(ctx, b.pool, "t"),
	} {
		var empty *allocation.EmptyError
		if err == nil || errors.As(err, &empty) || !strings.HasPrefix(err.Error(), "allocation: "+name) {
			t.Errorf("%s without Redis says %v", name, err)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s shows the password: %v", name, err)
		}
	}
	srv.Start(t)
	if a := b.take(); a.ID != id || a.Count != 2 {
		t.Errorf("then took %+v, want the count to go on at 2", a)
	}
}

// TestRedisClock: without a clock of its own the scripts use the server's.
func TestRedisClock(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	pool := testredis.Name("pool")
	p, err := allocation.New(rdb, []allocation.Config{{Name: pool}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, rdb: rdb, pool: pool, pools: p}
	id := b.fill(1)[0]
	b.must(p.Quarantine(t.Context(), pool, id, 50*time.Millisecond))
	if e := b.empty(allocation.TakeOptions{}); e.RetryAfter <= 0 || e.RetryAfter > 50*time.Millisecond {
		t.Errorf("the next chance is in %s", e.RetryAfter)
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		if _, err := p.Take(t.Context(), pool, allocation.TakeOptions{}); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the quarantine does not end")
		}
	}
	if e := b.list()[0]; e.State != allocation.Probation || time.Since(e.Since) > time.Minute {
		t.Errorf("it is %+v", e)
	}
}

// TestNoSecretLeaves looks for a password in all that is shown.
func TestNoSecretLeaves(t *testing.T) {
	t.Parallel()
	const canary = "k7Qz-canary"
	b := newBench(t, allocation.Config{})
	b.load("http://user:" + canary + "@h.example:80\nsocks5://" + canary + "@h.example:1080\nh.example:81:user:" + canary + "\n")
	shown, err := json.Marshal([]any{b.list(), b.state(), b.targets()})
	b.must(err)
	for range 3 {
		a := b.take()
		if !strings.Contains(a.URL.String(), canary) {
			t.Errorf("the allocation's URL has lost its credentials: %s", a.URL)
		}
		shown = append(shown, a.ID...)
	}
	_, err = b.pools.Import(t.Context(), b.pool, strings.NewReader("http://user:"+canary+"@h.example:port\nh.example:99999:user:"+canary), func(_ int, err error) {
		shown = append(shown, err.Error()...)
	})
	b.must(err)
	// Whoever gives a URL or a line in place of an ID does not see it again in the error.
	for _, id := range []string{"http://user:" + canary + "@nosuch.example:80", canary + "@nosuch.example:80", "http://" + canary + "@nosuch.example:80",
		"nosuch.example:80:user:" + canary, "http://nosuch.example:80/" + canary, "http://user:%" + canary + "@h:80", canary} {
		_, err := b.pools.Endpoint(t.Context(), b.pool, id)
		_, jerr := b.pools.Judge(t.Context(), b.pool, id, allocation.Verdict{OK: true})
		for _, err := range []error{err, jerr, b.pools.Report(t.Context(), allocation.Report{Pool: b.pool, ID: id, Outcome: allocation.OK}),
			b.pools.Quarantine(t.Context(), b.pool, id, time.Minute), b.pools.Restore(t.Context(), b.pool, id),
			b.pools.Disable(t.Context(), b.pool, id), b.pools.Remove(t.Context(), b.pool, id)} {
			if !errors.Is(err, allocation.ErrUnknownEndpoint) {
				t.Errorf("%v", err)
			}
			shown = append(shown, fmt.Sprint(err)...)
		}
	}
	shown = append(shown, fmt.Sprintf("%+v %v", b.list(), b.pools)...)
	if strings.Contains(string(shown), canary) {
		t.Errorf("the password is shown in %s", shown)
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	var p *allocation.Pools
	app := fxtest.New(t, allocation.Module, fx.NopLogger,
		fx.Supply(fx.Annotate(rdb, fx.As(new(redis.UniversalClient)))),
		fx.Supply([]allocation.Config{{Name: testredis.Name("pool")}}),
		fx.Populate(&p))
	app.RequireStart().RequireStop()
	if len(p.Names()) != 1 {
		t.Errorf("the pools are %v", p.Names())
	}
}

// TestLuaHeaders: every script file says what it does and what it costs, first of all.
func TestLuaHeaders(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("lua/*.lua")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\n\n")
		if !strings.HasPrefix(head, "-- ") || !strings.Contains(head, "cost") {
			t.Errorf("%s has no header with its cost", f)
		}
	}
}

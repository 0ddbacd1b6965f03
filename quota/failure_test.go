package quota_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

func limiter(t *testing.T, rdb redis.UniversalClient, c quota.Config, opts ...quota.Option) *quota.Limiter {
	t.Helper()
	l, err := quota.New(rdb, []quota.Config{c}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// flushScripts makes every server forget the scripts.
func flushScripts(ctx context.Context, rdb redis.UniversalClient) error {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.ScriptFlush(ctx).Err() })
	}
	return rdb.ScriptFlush(ctx).Err()
}

func TestAFlushedScriptCacheIsRefilled(t *testing.T) {
	t.Parallel()
	rdb := connection(t)
	ctx := context.Background()
	var all []quota.Config
	names := [2]string{testredis.Name("a"), testredis.Name("b")}
	for _, name := range names {
		c := window(1000, time.Hour)
		c.Name = name
		all = append(all, c)
	}
	l, err := quota.New(rdb, all)
	if err != nil {
		t.Fatal(err)
	}
	flush := func() {
		t.Helper()
		if err := flushScripts(ctx, rdb); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		flush()
		if d, err := l.Charge(ctx, quota.Request{Quota: names[0], ID: fmt.Sprint("one", i), Cost: 1}); err != nil || !d.Granted {
			t.Fatal(d, err)
		}
		flush()
		var batch []quota.Request
		for k := range 150 {
			batch = append(batch, quota.Request{Quota: names[k%2], ID: fmt.Sprint("many", i, "-", k), Cost: 1})
		}
		batch = append(batch, quota.Request{Quota: "other", ID: "x", Cost: 1}, quota.Request{Quota: names[0], ID: "x", Cost: 0})
		answers := l.ChargeAll(ctx, batch)
		// Others on the same server load the scripts between two parts of a
		// batch: then the parts that were refused come after the rest.
		var used [2][]int64
		for k, a := range answers[:150] {
			if a.Err != nil || !a.Granted || a.ID != batch[k].ID {
				t.Fatalf("round %d, %d: %+v", i, k, a)
			}
			used[k%2] = append(used[k%2], a.Windows[0].Used)
		}
		for n, have := range used {
			slices.Sort(have)
			for k, u := range have {
				if u != int64(i*75+k+1)+int64(i+1)*int64(1-n) {
					t.Fatalf("round %d: quota %d says %v", i, n, have)
				}
			}
		}
		if !errors.Is(answers[150].Err, quota.ErrUnknownQuota) || !errors.Is(answers[151].Err, quota.ErrCost) {
			t.Fatalf("%v, %v", answers[150].Err, answers[151].Err)
		}
	}
	if got := l.ChargeAll(ctx, nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for name, call := range map[string]func() error{
		"refund":  func() error { _, err := l.Refund(ctx, names[0], "one0"); return err },
		"leave":   func() error { return l.Leave(ctx, names[0], "one0") },
		"block":   func() error { return l.Block(ctx, names[0], time.Second, "why") },
		"unblock": func() error { return l.Unblock(ctx, names[0]) },
		"state":   func() error { _, err := l.State(ctx, names[0]); return err },
	} {
		flush()
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRedisIsRestartedInMidRun(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: srv.Socket(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	ctx := context.Background()
	c := window(100, time.Hour)
	c.Name = "q"
	l := limiter(t, rdb, c)
	before, err := l.Charge(ctx, quota.Request{Quota: "q", ID: "a", Cost: 60})
	if err != nil || !before.Granted {
		t.Fatal(before, err)
	}
	waits, err := l.Charge(ctx, quota.Request{Quota: "q", ID: "w", Cost: 50})
	if err != nil || waits.Granted {
		t.Fatal(waits, err)
	}
	if n, err := l.Refund(ctx, "q", "none"); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	srv.Kill()
	if d, err := l.Charge(ctx, quota.Request{Quota: "q", ID: "a", Cost: 60}); err == nil || d.Granted {
		t.Fatalf("without Redis: %+v, %v", d, err)
	}
	if a := l.ChargeAll(ctx, []quota.Request{{Quota: "q", ID: "b", Cost: 1}}); a[0].Err == nil || a[0].Granted {
		t.Fatalf("without Redis: %+v", a[0])
	}
	srv.Start(t)
	deadline := time.Now().Add(10 * time.Second)
	for {
		d, err := l.Charge(ctx, quota.Request{Quota: "q", ID: "a", Cost: 60})
		if err == nil {
			if !d.Granted || !d.At.Equal(before.At) || d.Windows[0].Used != 60 {
				t.Fatalf("%+v, was %+v", d, before)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if d, err := l.Charge(ctx, quota.Request{Quota: "q", ID: "w", Cost: 50}); err != nil || d.Granted || !d.At.Equal(waits.At) || d.Position != 1 {
		t.Fatalf("%+v, %v, was %+v", d, err, waits)
	}
}

// The embedded server of a machine without Redis.
func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	now := epoch
	m.SetTime(now)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	ctx := context.Background()
	zone := time.FixedZone("noon", 12*3600)
	c := quota.Config{Name: "q", Reserve: 5, Windows: []quota.Window{{Limit: 100, Per: time.Minute}, {Limit: 1000, Calendar: "day", Location: zone}}}
	// The edges are worked out from the host's clock, which must be near the server's.
	l := limiter(t, rdb, c, quota.WithClock(func() time.Time { return now }))
	ledger, err := quota.NewLedger(c)
	if err != nil {
		t.Fatal(err)
	}
	step := func(r quota.Request) {
		t.Helper()
		r.Quota = "q"
		got, err := l.Charge(ctx, r)
		want, wantErr := ledger.Charge(now, r)
		if err != nil || wantErr != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%+v\n got   %+v, %v\n model %+v, %v", r, got, err, want, wantErr)
		}
	}
	for i := range 120 {
		step(quota.Request{ID: fmt.Sprint("c", i%50), Cost: int64(i%9 + 1), Priority: quota.Priority(i / 7 % 2)})
		if i%10 == 9 {
			id := fmt.Sprint("c", i%7)
			n, err := l.Refund(ctx, "q", id)
			if want := ledger.Refund(now, id); err != nil || n != want {
				t.Fatalf("refunded %d, %v, model %d", n, err, want)
			}
		}
		now = now.Add(700 * time.Millisecond)
	}
	s, err := l.State(ctx, "q")
	if err != nil || s.Grants == 0 || s.Refusals == 0 || s.Refunds == 0 || fmt.Sprint(s.Windows) != fmt.Sprint(ledger.Windows(now)) {
		t.Fatalf("%+v, %v", s, err)
	}
	// By the server's own clock.
	m.SetTime(time.Time{})
	c2 := window(1, time.Hour)
	c2.Name = "own"
	own := limiter(t, rdb, c2)
	for i, want := range []bool{true, false} {
		d, err := own.Charge(ctx, quota.Request{Quota: "own", ID: fmt.Sprint(i), Cost: 1})
		if err != nil || d.Granted != want || !want && (d.RetryAfter < 59*time.Minute || d.RetryAfter > time.Hour) {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	for _, err := range []error{own.Block(ctx, "own", time.Hour, "x"), own.Unblock(ctx, "own"), own.Leave(ctx, "own", "1")} {
		if err != nil {
			t.Error(err)
		}
	}
}

// Many goroutines of several processes, on a wire that loses replies, by Redis's own clock.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	rdb, wire := breakable(t)
	wire.LoseEvery(97, "evalsha")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := quota.Config{Name: testredis.Name("many"), Windows: []quota.Window{{Limit: 40, Per: 200 * time.Millisecond}, {Limit: 25, Per: 100 * time.Millisecond}}}
	const procs, each, charges = 4, 8, 8
	var wg sync.WaitGroup
	var granted, asked atomic.Int64
	for p := range procs {
		l := limiter(t, rdb, c)
		for g := range each {
			wg.Go(func() {
				for i := range charges {
					r := quota.Request{Quota: c.Name, ID: fmt.Sprint(p, "-", g, "-", i), Cost: int64(i%4 + 1), Priority: quota.Priority(g % 2)}
					for ctx.Err() == nil {
						d, err := l.Charge(ctx, r)
						asked.Add(1)
						if err != nil {
							continue // unknown: ask again with the same ID
						}
						if d.Granted {
							granted.Add(1)
							break
						}
						select {
						case <-ctx.Done():
						case <-time.After(d.RetryAfter):
						}
					}
				}
			})
		}
	}
	wg.Wait()
	if n := granted.Load(); n != procs*each*charges {
		t.Fatalf("%d granted, want %d", n, procs*each*charges)
	}
	wire.LoseEvery(0, "")
	d := &desk{t: t, ctx: context.Background(), rdb: rdb, name: c.Name}
	log := d.entries()
	if len(log) != procs*each*charges {
		t.Errorf("%d entries for %d charges", len(log), procs*each*charges)
	}
	checkLaw(t, log, c)
	t.Logf("asked %.2f times a charge", float64(asked.Load())/float64(granted.Load()))
}

// checkLaw reads a log back, and checks every position of every window.
func checkLaw(t *testing.T, log []redis.Z, c quota.Config) {
	t.Helper()
	var sums, stamps []int64
	for _, e := range log {
		var sum int64
		if _, err := fmt.Sscan(e.Member.(string), &sum); err != nil {
			t.Fatal(err)
		}
		sums, stamps = append(sums, sum), append(stamps, int64(e.Score))
	}
	for _, w := range c.Windows {
		first := 0 // the oldest entry of the window that ends with entry i
		for i := range log {
			for stamps[first] <= stamps[i]-w.Per.Microseconds() {
				first++
			}
			var before int64
			if first > 0 {
				before = sums[first-1]
			}
			if got := sums[i] - before; got > w.Limit {
				t.Fatalf("%d units in a window of %d per %s", got, w.Limit, w.Per)
			}
		}
	}
}

// between lets something happen after the first command of each pipeline of scripts.
type between struct{ do func() }

func (between) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (between) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (b between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "evalsha" { // a connection that begins
			return next(ctx, cmds)
		}
		err := next(ctx, cmds[:1])
		if b.do(); len(cmds) > 1 {
			err = errors.Join(err, next(ctx, cmds[1:]))
		}
		return err
	}
}

// Another process brings a flushed script back while a call of many is half done.
func TestManyOfOneQuotaStayInOrderThoughTheScriptComesBackAmongThem(t *testing.T) {
	t.Parallel()
	server := testredis.Own(t, "--save", "", "--appendonly", "no")
	rdb, other := server.Client(), server.Client()
	defer rdb.Close()
	defer other.Close()
	c := window(1000, time.Hour)
	c.Name = "q"
	beside := c
	beside.Name = "beside"
	second := limiter(t, other, beside)
	rdb.AddHook(between{func() {
		if d, err := second.Charge(t.Context(), quota.Request{Quota: "beside", ID: "x", Cost: 1}); err != nil || !d.Granted {
			t.Error(d, err)
		}
	}})
	l, err := quota.New(rdb, []quota.Config{c, beside})
	if err != nil {
		t.Fatal(err)
	}
	var batch []quota.Request
	for k := range 150 {
		batch = append(batch, quota.Request{Quota: "q", ID: fmt.Sprint(k), Cost: 1})
	}
	batch = append(batch, quota.Request{Quota: "beside", ID: "y", Cost: 1})
	for k, a := range l.ChargeAll(t.Context(), batch)[:150] {
		if a.Err != nil || !a.Granted || a.Windows[0].Used != int64(k+1) {
			t.Fatalf("%d: %+v", k, a)
		}
	}
}

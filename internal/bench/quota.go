package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// line is a row of the quota's table: a subject, and what its speed is compared with.
type line struct {
	subject
	base string  // name of another row; "" for none
	aim  float64 // least ratio to it; 0 for none
}

// quotaReport is the table of charges and that of memory.
type quotaReport struct {
	report
	lines  []line
	memory []size
}

// size is what a full window takes.
type size struct {
	name  string
	bytes int64
}

func (q quotaReport) print() {
	fmt.Printf("\n%s\n", q.title)
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "a second\t\tratio\tto\taim\t\t")
	for _, l := range q.lines {
		speed := fmt.Sprintf("%.0f", median(q.speeds[l.name]))
		if l.base == "" {
			fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\n", speed, l.name)
			continue
		}
		ratio := q.ratio(l.name, l.base)
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%s\t\n", speed, l.name, ratio, l.base, verdict(ratio, l.aim))
	}
	_ = w.Flush()
	fmt.Println("\nMemory of a full window of 10,000 units, all keys together")
	w = tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	for _, s := range q.memory {
		fmt.Fprintf(w, "%.1f KB\t%s\t%.2f\tof %s\t\n", float64(s.bytes)/1000, s.name, float64(s.bytes)/float64(q.memory[0].bytes), q.memory[0].name)
	}
	_ = w.Flush()
}

func verdict(ratio, aim float64) string {
	switch {
	case aim == 0:
		return "\t"
	case ratio >= aim:
		return fmt.Sprintf("%.2f\tmet", aim)
	default:
		return fmt.Sprintf("%.2f\tMISS", aim)
	}
}

// naiveScript is the usual sliding log: one member for each unit.
var naiveScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
local cost = tonumber(ARGV[3])
if redis.call('ZCARD', KEYS[1]) + cost > tonumber(ARGV[1]) then
  return 0
end
for i = 1, cost do
  redis.call('ZADD', KEYS[1], now, ARGV[4] .. ':' .. i)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2] / 1000)
return 1`)

// quotaBench holds what the quota's rows share.
type quotaBench struct {
	ctx  context.Context //nolint:containedctx // the benchmark's own, for its rows
	rdb  *redis.Client
	l    *quota.Limiter
	span time.Duration
	n    int64 // charges so far: no ID comes twice
}

const (
	long  = time.Hour             // a window that nothing leaves while the benchmark runs
	short = 40 * time.Millisecond // one that holds about 10,000 of the naive script's units at its own pace
)

// benchQuota measures grants, refusals and memory.
func benchQuota(ctx context.Context, srv *server, rounds int, span time.Duration) (quotaReport, error) {
	rdb := srv.client()
	defer rdb.Close()
	b := &quotaBench{ctx: ctx, rdb: rdb, span: span}
	q := quotaReport{}
	l, err := quota.New(rdb, b.quotas(rounds))
	if err != nil {
		return q, err
	}
	b.l = l
	if err := b.fill(); err != nil {
		return q, err
	}
	q.lines = b.lines()
	subjects := make([]subject, len(q.lines))
	for i, l := range q.lines {
		subjects[i] = l.subject
	}
	if q.report, err = measure("Quota: charges, and what they are measured by", "", rounds, nil, subjects...); err != nil {
		return q, err
	}
	q.memory, err = b.memory()
	return q, err
}

func (b *quotaBench) quotas(rounds int) []quota.Config {
	wide := func(name string, limit int64, per time.Duration) quota.Config {
		return quota.Config{Name: name, Windows: []quota.Window{{Limit: limit, Per: per}}}
	}
	all := []quota.Config{
		wide("10,000", quota.MaxLimit, long), wide("100,000", quota.MaxLimit, long), wide("leaving", quota.MaxLimit, short),
		wide("crowd", quota.MaxLimit, long), wide("alone", quota.MaxLimit, long), wide("labelled", quota.MaxLimit, long), wide("batch", quota.MaxLimit, long), wide("naive's", quota.MaxLimit, short),
		wide("no-line", 1000, long), wide("line", 1000, long),
		wide("memory-1", 10_000, long), wide("memory-10", 10_000, long), wide("memory-100", 10_000, long), wide("memory-label", 10_000, long),
	}
	for round := range rounds + 1 {
		for _, cost := range costs {
			all = append(all, wide(empty(cost, round), quota.MaxLimit, long))
		}
	}
	return all
}

// empty is a quota whose log is empty when the round begins.
func empty(cost int64, round int) string { return fmt.Sprintf("empty-%d-%d", cost, round) }

var costs = []int64{1, 100, 10_000}

// fill puts entries into logs, and waiters into lines.
func (b *quotaBench) fill() error {
	for _, f := range []struct {
		name string
		n    int
	}{{"10,000", 10_000}, {"100,000", 100_000}, {"no-line", 1000}, {"line", 11_000}} {
		if err := b.batches(f.name, f.n, 1); err != nil {
			return err
		}
	}
	return nil
}

// batches asks n times, 500 in a call.
func (b *quotaBench) batches(name string, n int, cost int64) error {
	for ; n > 0; n -= 500 {
		batch := make([]quota.Request, min(n, 500))
		for i := range batch {
			batch[i] = b.request(name, cost)
		}
		for _, a := range b.l.ChargeAll(b.ctx, batch) {
			if a.Err != nil {
				return a.Err
			}
		}
	}
	return nil
}

func (b *quotaBench) request(name string, cost int64) quota.Request {
	b.n++
	return quota.Request{Quota: name, ID: fmt.Sprintf("trending-bd@2026-11-30T08:00:00Z/%d", b.n), Cost: cost}
}

const (
	aloneEmpty = "a caller alone: empty EVALSHA"
	aloneRate  = "a caller alone: redis_rate"
	aloneGrant = "a caller alone: grant, cost 1"
	manyEmpty  = "64 callers, a call each: empty EVALSHA"
	manyRate   = "64 callers, a call each: redis_rate"
	naive100   = "64 callers, cost 100: naive, one member a unit"
	first      = "refusal, nobody waits"
)

func (b *quotaBench) lines() []line {
	all := []line{
		{subject: b.script(aloneEmpty, 1)},
		{subject: b.rate(aloneRate, 1), base: aloneEmpty},
		{subject: b.grants(aloneGrant, 1, func(int) string { return "alone" }, 1), base: aloneRate, aim: 0.75},
		{subject: b.labelled("a caller alone: grant with a label, cost 1"), base: aloneGrant},
		{subject: b.script(manyEmpty, callers)},
		{subject: b.rate(manyRate, callers), base: manyEmpty},
		{subject: b.single("64 callers, a call each: grant, cost 1", "crowd"), base: manyRate, aim: 0.75},
		{subject: b.grants("64 callers of one Limiter, which batches: grant, cost 1", callers, func(int) string { return "crowd" }, 1), base: manyRate, aim: 1.5},
		{subject: b.worker("a worker, 64 charges in a call: grant, cost 1"), base: manyRate, aim: 1.5},
		{subject: b.naive(naive100, 100)},
		{subject: b.grants("64 callers of one Limiter, cost 100: grant", callers, func(int) string { return "naive's" }, 100), base: naive100, aim: 10},
	}
	for _, cost := range costs {
		base := fmt.Sprintf("grant, cost %d, log empty at first", cost)
		all = append(all,
			line{subject: b.grants(base, 1, func(round int) string { return empty(cost, round) }, cost)},
			line{subject: b.grants(fmt.Sprintf("grant, cost %d, log of 10,000", cost), 1, func(int) string { return "10,000" }, cost), base: base, aim: 1 / 1.3},
			line{subject: b.grants(fmt.Sprintf("grant, cost %d, log of 100,000", cost), 1, func(int) string { return "100,000" }, cost), base: base, aim: 1 / 1.3})
	}
	return append(all,
		line{subject: b.grants("grant, cost 1, an entry leaves at each", 1, func(int) string { return "leaving" }, 1), base: "grant, cost 1, log empty at first"},
		line{subject: b.refusals(first, "no-line")},
		line{subject: b.refusals("refusal, 10,000 wait", "line"), base: first, aim: 0.7})
}

func (b *quotaBench) script(name string, callers int) subject {
	return subject{name: name, run: func(int) (float64, error) {
		return loop(b.ctx, b.span, callers, func(ctx context.Context, _ int64) error {
			return emptyScript.Run(ctx, b.rdb, []string{"k"}).Err()
		})
	}}
}

func (b *quotaBench) rate(name string, callers int) subject {
	rate := redis_rate.NewLimiter(b.rdb)
	return subject{name: name, run: func(int) (float64, error) {
		return loop(b.ctx, b.span, callers, func(ctx context.Context, _ int64) error {
			_, err := rate.AllowN(ctx, "r", redis_rate.Limit{Rate: 1e9, Burst: 1e9, Period: long}, 1)
			return err
		})
	}}
}

func (b *quotaBench) naive(name string, cost int) subject {
	return subject{name: name, run: func(round int) (float64, error) {
		return loop(b.ctx, b.span, callers, func(ctx context.Context, n int64) error {
			return naiveScript.Run(ctx, b.rdb, []string{"naive"}, int64(math.MaxInt32), short.Microseconds(), cost, fmt.Sprintf("%d-%d", round, n)).Err()
		})
	}}
}

func id(name string, round int, n int64) string {
	return fmt.Sprintf("%s@2026-11-30T08:%02d:00Z/%d", name, round, n)
}

// granted is the fault of an answer that is none.
func granted(d quota.Decision, err error) error {
	if err == nil && !d.Granted {
		err = fmt.Errorf("refused: %+v", d)
	}
	return err
}

// grants charges as a program does, through Charge.
func (b *quotaBench) grants(name string, callers int, of func(round int) string, cost int64) subject {
	return subject{name: name, run: func(round int) (float64, error) {
		q := of(round)
		return loop(b.ctx, b.span, callers, func(ctx context.Context, n int64) error {
			return granted(b.l.Charge(ctx, quota.Request{Quota: q, ID: id(name, round, n), Cost: cost}))
		})
	}}
}

// labelled charges as jobs do: under the name of one of eighty feeds.
func (b *quotaBench) labelled(name string) subject {
	return subject{name: name, run: func(round int) (float64, error) {
		return loop(b.ctx, b.span, 1, func(ctx context.Context, n int64) error {
			return granted(b.l.Charge(ctx, quota.Request{Quota: "labelled", ID: id(name, round, n), Cost: 1, Label: feedOf(n)}))
		})
	}}
}

func feedOf(n int64) string { return fmt.Sprintf("trending-%02d", n%80) }

// single makes a call for each charge, whatever the crowd.
func (b *quotaBench) single(name, of string) subject {
	return subject{name: name, run: func(round int) (float64, error) {
		return loop(b.ctx, b.span, callers, func(ctx context.Context, n int64) error {
			a := b.l.ChargeAll(ctx, []quota.Request{{Quota: of, ID: id("single", round, n), Cost: 1}})[0]
			return granted(a.Decision, a.Err)
		})
	}}
}

// worker charges for 64 jobs in one call, from one goroutine.
func (b *quotaBench) worker(name string) subject {
	return subject{name: name, run: func(round int) (float64, error) {
		batch := make([]quota.Request, 64)
		calls, err := loop(b.ctx, b.span, 1, func(ctx context.Context, n int64) error {
			for i := range batch {
				batch[i] = quota.Request{Quota: "batch", ID: id("worker", round, 64*n+int64(i)), Cost: 1}
			}
			for _, a := range b.l.ChargeAll(ctx, batch) {
				if err := granted(a.Decision, a.Err); err != nil {
					return err
				}
			}
			return nil
		})
		return 64 * calls, err
	}}
}

// refusals asks for what is not there, each time under a new ID, and gives the
// place up again, outside of the time that is measured.
func (b *quotaBench) refusals(name, of string) subject {
	return subject{name: name, run: func(int) (float64, error) {
		var spent time.Duration
		n := 0
		for begun := time.Now(); time.Since(begun) < b.span; n++ {
			r := b.request(of, 1)
			at := time.Now()
			d, err := b.l.Charge(b.ctx, r)
			spent += time.Since(at)
			if err == nil && d.Granted {
				err = fmt.Errorf("granted: %+v", d)
			}
			if err == nil {
				err = b.l.Leave(b.ctx, of, r.ID)
			}
			if err != nil {
				return 0, err
			}
		}
		return float64(n) / spent.Seconds(), nil
	}}
}

// memory fills windows of 10,000 units.
func (b *quotaBench) memory() ([]size, error) {
	const key = "naive full"
	for i := range 10_000 {
		if err := naiveScript.Run(b.ctx, b.rdb, []string{key}, 10_000, long.Microseconds(), 1, fmt.Sprint("m", i)).Err(); err != nil {
			return nil, err
		}
	}
	use := func(pattern string) (sum int64, err error) {
		keys, err := b.rdb.Keys(b.ctx, pattern).Result()
		for _, k := range keys {
			n, e := b.rdb.MemoryUsage(b.ctx, k, 0).Result()
			if e != nil {
				return 0, e
			}
			sum += n
		}
		return sum, err
	}
	n, err := use(key)
	all := []size{{"naive, one member a unit", n}}
	for _, cost := range []int64{1, 10, 100} {
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("memory-%d", cost)
		if err := b.batches(name, int(10_000/cost), cost); err != nil {
			return nil, err
		}
		n, err = use("fw:{quota:" + name + "}:*")
		all = append(all, size{fmt.Sprintf("one entry a charge, cost %d (%d charges)", cost, 10_000/cost), n})
	}
	for n := range int64(10_000) {
		r := b.request("memory-label", 1)
		r.Label = feedOf(n)
		if err := granted(b.l.Charge(b.ctx, r)); err != nil {
			return nil, err
		}
	}
	n, err = use("fw:{quota:memory-label}:*")
	all = append(all, size{"one entry a charge, cost 1 (10000 charges), each with a label", n})
	return all, err
}

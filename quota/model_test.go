package quota_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// paired drives the limiter on Redis and the ledger in memory by the same steps.
type paired struct {
	ctx    context.Context
	hand   *hand
	name   string
	cfg    quota.Config
	l      *quota.Limiter
	ledger *quota.Ledger
	grants map[string]quota.Decision // what is charged now, by ID
	waits  []quota.Decision          // promises given
	long   bool                      // days among the windows, always: how long the log is kept does not change
}

func newPaired(rdb redis.UniversalClient, rt *rapid.T) *paired {
	p := &paired{ctx: context.Background(), hand: newHand(), name: testredis.Name("m"), grants: map[string]quota.Decision{}}
	p.long = rapid.Bool().Draw(rt, "long")
	p.cfg = p.anyConfig(rt)
	l, err := quota.New(rdb, []quota.Config{p.cfg}, quota.WithClock(p.hand.now))
	if err != nil {
		rt.Fatal(err)
	}
	p.l = l
	if p.ledger, err = quota.NewLedger(p.cfg); err != nil {
		rt.Fatal(err)
	}
	return p
}

func (p *paired) anyConfig(rt *rapid.T) quota.Config {
	lengths := []time.Duration{time.Microsecond * 5, time.Second, 10 * time.Second, time.Minute, time.Hour}
	if p.long {
		lengths = append(lengths, 20*time.Hour)
	}
	c := quota.Config{Name: p.name, Grace: rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second}).Draw(rt, "grace")}
	most := int64(0)
	for i := range rapid.IntRange(1, 3).Draw(rt, "windows") {
		w := quota.Window{Limit: rapid.Int64Range(1, 60).Draw(rt, "limit")}
		if p.long && i == 0 {
			w.Calendar, w.Location = "day", time.FixedZone("noon", 12*3600)
		} else {
			w.Per = rapid.SampledFrom(lengths).Draw(rt, "per")
		}
		c.Windows = append(c.Windows, w)
		most = max(most, w.Limit)
	}
	c.Reserve = rapid.Int64Range(0, most/2).Draw(rt, "reserve")
	return c
}

func (p *paired) charge(rt *rapid.T, r quota.Request) {
	r.Quota = p.name
	got, err := p.l.Charge(p.ctx, r)
	p.check(rt, r, got, err)
}

// chargeAll asks for several at once: as one after another.
func (p *paired) chargeAll(rt *rapid.T, requests []quota.Request) {
	for i := range requests {
		requests[i].Quota = p.name
	}
	answers := p.l.ChargeAll(p.ctx, requests)
	// What can never be granted is answered before any is asked.
	for _, never := range []bool{true, false} {
		for i, a := range answers {
			if (a.Err != nil) == never {
				p.check(rt, requests[i], a.Decision, a.Err)
			}
		}
	}
}

// check compares an answer with the model's.
func (p *paired) check(rt *rapid.T, r quota.Request, got quota.Decision, err error) {
	want, wantErr := p.ledger.Charge(p.hand.now(), r)
	if (err == nil) != (wantErr == nil) {
		rt.Fatalf("%+v: error %v, model %v", r, err, wantErr)
	}
	if err != nil {
		return
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		rt.Fatalf("%+v\n got   %+v\n model %+v", r, got, want)
	}
	before, known := p.grants[r.ID]
	switch {
	case !got.Granted:
		if got.RetryAfter < time.Millisecond || !got.At.After(p.hand.now()) {
			rt.Fatalf("refused, and told to come back at once: %+v", got)
		}
		p.waits = append(p.waits, got)
	case known && before.At.Equal(got.At):
		// The same charge, told again.
	default:
		p.grants[r.ID] = got
		p.law(rt, r, got.At)
	}
}

// law checks every window that ends with a new grant. A window that ends
// elsewhere holds no more than the one that ends with its newest entry.
func (p *paired) law(rt *rapid.T, r quota.Request, at time.Time) {
	for _, w := range p.cfg.Windows {
		var sum int64
		for _, g := range p.grants {
			in := g.At.After(at.Add(-w.Per))
			if w.Calendar != "" {
				in = g.At.In(w.Location).Format(time.DateOnly) == at.In(w.Location).Format(time.DateOnly)
			}
			if in && !g.At.After(at) {
				sum += g.Cost
			}
		}
		limit := w.Limit
		if r.Priority == quota.Scheduled && p.cfg.Reserve < limit {
			limit -= p.cfg.Reserve
		}
		if sum > limit {
			rt.Fatalf("%d units in a window of %d per %s that ends at %s", sum, limit, w.Per, at)
		}
	}
	stamps := map[int64]bool{}
	for _, g := range p.grants {
		if stamps[g.At.UnixMicro()] {
			rt.Fatalf("two grants at %s", g.At)
		}
		stamps[g.At.UnixMicro()] = true
	}
}

func (p *paired) compare(rt *rapid.T) {
	s, err := p.l.State(p.ctx, p.name)
	if err != nil {
		rt.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Windows), fmt.Sprint(p.ledger.Windows(p.hand.now())); got != want {
		rt.Fatalf("windows %s, model %s", got, want)
	}
	if s.Remaining < 0 {
		rt.Fatalf("remaining %d", s.Remaining)
	}
	for _, c := range []struct {
		p    quota.Priority
		line quota.Line
	}{{quota.Scheduled, s.Scheduled}, {quota.Interactive, s.Interactive}} {
		want, err := p.ledger.Line(p.hand.now(), c.p)
		if err != nil || c.line != want {
			rt.Fatalf("line of %s: %+v, model %+v, %v", c.p, c.line, want, err)
		}
	}
}

var someIDs = rapid.Custom(func(rt *rapid.T) string { return fmt.Sprint("id", rapid.IntRange(0, 30).Draw(rt, "id")) })

func TestAsTheModelSays(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := newPaired(rdb, rt)
		request := func(rt *rapid.T) quota.Request {
			r := quota.Request{ID: someIDs.Draw(rt, "who"), Cost: rapid.Int64Range(1, 12).Draw(rt, "cost")}
			if rapid.IntRange(0, 3).Draw(rt, "class") == 0 {
				r.Priority = quota.Interactive
			}
			r.NoLine = rapid.IntRange(0, 7).Draw(rt, "no line") == 0
			return r
		}
		ask := func(rt *rapid.T) { p.charge(rt, request(rt)) }
		rt.Repeat(map[string]func(*rapid.T){
			"ask": ask, "ask too": ask,
			"ask for many": func(rt *rapid.T) {
				many := make([]quota.Request, rapid.IntRange(2, 6).Draw(rt, "many"))
				for i := range many {
					many[i] = request(rt)
				}
				p.chargeAll(rt, many)
			},
			"come back": func(rt *rapid.T) {
				if len(p.waits) == 0 {
					return
				}
				d := rapid.SampledFrom(p.waits).Draw(rt, "waiter")
				off := rapid.SampledFrom([]time.Duration{-time.Microsecond, 0, 0, time.Millisecond, time.Second}).Draw(rt, "late")
				if at := d.At.Add(off); at.After(p.hand.now()) {
					p.hand.set(at)
				}
				p.charge(rt, quota.Request{ID: d.ID, Cost: d.Cost})
			},
			"refund": func(rt *rapid.T) {
				id := someIDs.Draw(rt, "whose")
				got, err := p.l.Refund(p.ctx, p.name, id)
				if want := p.ledger.Refund(p.hand.now(), id); err != nil || got != want {
					rt.Fatalf("refund %s: %d, %v, model %d", id, got, err, want)
				}
				delete(p.grants, id)
			},
			"leave": func(rt *rapid.T) {
				id := someIDs.Draw(rt, "who")
				p.ledger.Leave(id)
				if err := p.l.Leave(p.ctx, p.name, id); err != nil {
					rt.Fatal(err)
				}
			},
			"block": func(rt *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{time.Millisecond, 3 * time.Second, time.Minute}).Draw(rt, "for")
				p.ledger.Block(p.hand.now(), d)
				if err := p.l.Block(p.ctx, p.name, d, "why"); err != nil {
					rt.Fatal(err)
				}
			},
			"unblock": func(rt *rapid.T) {
				p.ledger.Unblock()
				if err := p.l.Unblock(p.ctx, p.name); err != nil {
					rt.Fatal(err)
				}
			},
			"time goes on": func(rt *rapid.T) {
				p.hand.add(rapid.SampledFrom([]time.Duration{time.Microsecond, 4 * time.Microsecond, time.Millisecond, 900 * time.Millisecond,
					7 * time.Second, 31 * time.Second, time.Hour, 13 * time.Hour}).Draw(rt, "by"))
			},
			"the clock steps back": func(rt *rapid.T) {
				p.hand.add(-rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 5 * time.Second}).Draw(rt, "by"))
			},
			"new limits": func(rt *rapid.T) {
				if rapid.IntRange(0, 2).Draw(rt, "now") > 0 {
					return
				}
				p.cfg = p.anyConfig(rt)
				if err := p.l.Reload([]quota.Config{p.cfg}); err != nil {
					rt.Fatal(err)
				}
				if err := p.ledger.Configure(p.cfg); err != nil {
					rt.Fatal(err)
				}
			},
			"": p.compare,
		})
	})
}

// Everybody comes back at its promise, no sooner and no later: then each promise
// is kept, whoever asks, leaves or is refunded meanwhile.
func TestPromisesAreKept(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := newPaired(rdb, rt)
		for i := range p.cfg.Windows {
			if p.cfg.Windows[i].Calendar == "" {
				p.cfg.Windows[i].Per = max(p.cfg.Windows[i].Per, time.Second)
			}
		}
		if err := p.l.Reload([]quota.Config{p.cfg}); err != nil {
			rt.Fatal(err)
		}
		most := int64(1000)
		for _, w := range p.cfg.Windows {
			room := w.Limit
			if p.cfg.Reserve < room {
				room -= p.cfg.Reserve
			}
			most = min(most, room)
		}
		var line []quota.Decision
		freed := false // since the promises were given, somebody left: now they may be early
		serve := func(until time.Time) {
			for len(line) > 0 && !line[0].At.After(until) {
				w := line[0]
				if !freed && w.At.Add(-time.Microsecond).After(p.hand.now()) {
					p.hand.set(w.At.Add(-time.Microsecond))
					got, err := p.l.Charge(p.ctx, quota.Request{Quota: p.name, ID: w.ID, Cost: w.Cost})
					// Promised for no other reason than that stamps are distinct, it is granted with that very stamp.
					if err != nil || !got.At.Equal(w.At) {
						rt.Fatalf("1 µs before its promise %s: %+v, %v", w.At, got, err)
					}
				}
				if w.At.After(p.hand.now()) {
					p.hand.set(w.At)
				}
				got, err := p.l.Charge(p.ctx, quota.Request{Quota: p.name, ID: w.ID, Cost: w.Cost})
				if err != nil || !got.Granted {
					rt.Fatalf("at its promise %s: %+v, %v", w.At, got, err)
				}
				line = line[1:]
			}
			if len(line) == 0 {
				freed = false
			}
		}
		var charged []string
		for i := range rapid.IntRange(5, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				to := p.hand.now().Add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 20 * time.Second}).Draw(rt, "by"))
				serve(to)
				if to.After(p.hand.now()) {
					p.hand.set(to)
				}
			case 1:
				if len(line) > 0 {
					k := rapid.IntRange(0, len(line)-1).Draw(rt, "who")
					if err := p.l.Leave(p.ctx, p.name, line[k].ID); err != nil {
						rt.Fatal(err)
					}
					line = slices.Delete(line, k, k+1)
					freed = true
				}
			case 2:
				if len(charged) > 0 {
					if _, err := p.l.Refund(p.ctx, p.name, rapid.SampledFrom(charged).Draw(rt, "whose")); err != nil {
						rt.Fatal(err)
					}
					freed = true
				}
			default:
				r := quota.Request{Quota: p.name, ID: fmt.Sprint("w", i), Cost: rapid.Int64Range(1, most).Draw(rt, "cost")}
				got, err := p.l.Charge(p.ctx, r)
				if err != nil {
					rt.Fatal(err)
				}
				if got.Granted {
					if len(line) > 0 {
						rt.Fatalf("a newcomer was granted while %d wait", len(line))
					}
					charged = append(charged, r.ID)
				} else {
					line = append(line, got)
				}
			}
		}
		serve(p.hand.now().Add(1000 * 24 * time.Hour))
	})
}

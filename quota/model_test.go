package quota_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// paired drives the limiter on Redis and the ledger in memory by the same steps.
type paired struct {
	ctx      context.Context
	rdb      redis.UniversalClient
	hand     *hand
	name     string
	cfg      quota.Config
	l        *quota.Limiter
	ledger   *quota.Ledger
	log      []grant         // all that was told to be granted
	last     map[string]int  // the grant of an ID, by place in log
	latest   time.Time       // the clock at its furthest
	promises promises        // those that bind
	waits    []quota.Request // those who were given one
	long     bool            // days among the windows, always: how long the log is kept does not change
	shifts   bool            // days of 23 and 25 hours; the line then never comes to more than a week
	year     bool            // a window of a leap year, always
}

// grant is one that was told, and the config by which it was made.
type grant struct {
	entry
	quota.Priority
	cfg quota.Config
}

func newPaired(rdb redis.UniversalClient, rt *rapid.T) *paired {
	p := &paired{ctx: context.Background(), rdb: rdb, hand: newHand(), name: testredis.Name("m"), last: map[string]int{}, promises: promises{}}
	p.long = rapid.Bool().Draw(rt, "long")
	p.shifts = p.long && rapid.Bool().Draw(rt, "shifts")
	p.year = !p.shifts && rapid.IntRange(0, 3).Draw(rt, "year") == 0
	if p.shifts {
		p.hand.set(rapid.SampledFrom([]time.Time{
			time.Date(2026, 10, 31, 20, 0, 0, 0, time.UTC), time.Date(2027, 3, 13, 20, 0, 0, 0, time.UTC),
		}).Draw(rt, "before a change"))
	}
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

var someZones = []*time.Location{time.FixedZone("noon", 12*3600), time.FixedZone("west", -7*3600), time.FixedZone("half", 9*3600+1800)}

var shifting = func() *time.Location {
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic(err)
	}
	return la
}()

func (p *paired) anyConfig(rt *rapid.T) quota.Config {
	lengths := []time.Duration{time.Microsecond, time.Microsecond * 5, time.Millisecond, time.Second, 10 * time.Second, time.Minute, time.Hour}
	if p.long {
		lengths = append(lengths, 20*time.Hour)
	}
	c := quota.Config{Name: p.name, Grace: rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second}).Draw(rt, "grace")}
	most := int64(0)
	for i := range rapid.IntRange(1, 3).Draw(rt, "windows") {
		w := quota.Window{Limit: rapid.OneOf(rapid.Int64Range(1, 60), rapid.Int64Range(1, 60), rapid.SampledFrom([]int64{1, quota.MaxLimit})).Draw(rt, "limit")}
		if p.shifts {
			w.Limit = rapid.Int64Range(50, 60).Draw(rt, "limit")
		}
		if p.long && (i == 0 || rapid.Bool().Draw(rt, "day")) {
			w.Calendar, w.Location = "day", rapid.SampledFrom(someZones).Draw(rt, "zone")
			if p.shifts && rapid.Bool().Draw(rt, "of a zone that shifts") {
				w.Location = shifting
			}
		} else if p.year && (i == 0 || !p.long && rapid.IntRange(0, 3).Draw(rt, "of a year") == 0) {
			w.Per = 366 * 24 * time.Hour
		} else {
			w.Per = rapid.SampledFrom(lengths).Draw(rt, "per")
		}
		c.Windows = append(c.Windows, w)
		most = max(most, w.Limit)
	}
	if p.year && p.long { // the first is the day
		c.Windows = append(c.Windows, quota.Window{Limit: rapid.Int64Range(1, 60).Draw(rt, "limit"), Per: 366 * 24 * time.Hour})
	}
	c.Reserve = rapid.Int64Range(0, min(most/2, 30)).Draw(rt, "reserve")
	if p.shifts {
		c.Reserve = min(c.Reserve, 10)
	}
	return c
}

func (p *paired) charge(rt *rapid.T, r quota.Request) {
	r.Quota = p.name
	p.l.Eager(p.name)
	got, err := p.l.Charge(p.ctx, r)
	p.check(rt, r, got, err)
}

// chargeAll asks for several at once: as one after another.
func (p *paired) chargeAll(rt *rapid.T, requests []quota.Request) {
	for i := range requests {
		requests[i].Quota = p.name
	}
	asked := slices.Clone(requests)
	stranger := rapid.IntRange(-len(asked), len(asked)).Draw(rt, "of a quota that is none")
	if stranger >= 0 {
		asked = slices.Insert(asked, stranger, quota.Request{Quota: p.name + "-none", ID: "id1", Cost: 1})
	}
	answers := p.l.ChargeAll(p.ctx, asked)
	if stranger >= 0 {
		if a := answers[stranger]; !errors.Is(a.Err, quota.ErrUnknownQuota) || a.Granted {
			rt.Fatalf("of a quota that is none: %+v", a)
		}
		answers = slices.Delete(answers, stranger, stranger+1)
	}
	for i, a := range answers {
		p.check(rt, requests[i], a.Decision, a.Err)
	}
}

// check compares an answer with the model's.
func (p *paired) check(rt *rapid.T, r quota.Request, got quota.Decision, err error) {
	want, wantErr := p.ledger.Charge(p.hand.now(), r)
	if (err == nil) != (wantErr == nil) {
		rt.Fatalf("%+v: error %v, model %v", r, err, wantErr)
	}
	if err != nil {
		delete(p.promises, r.ID)
		return
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		rt.Fatalf("%+v\n got   %+v\n model %+v", r, got, want)
	}
	if !got.Granted {
		if got.RetryAfter < time.Millisecond || !got.At.After(p.hand.now()) {
			rt.Fatalf("refused, and told to come back at once: %+v", got)
		}
		p.waits = append(p.waits, r)
	} else {
		stamp := got.At.UnixMicro()
		if k, known := p.last[r.ID]; known && p.log[k].stamp == stamp {
			return // the same charge, told again
		}
		p.last[r.ID] = len(p.log)
		p.log = append(p.log, grant{entry{id: r.ID, stamp: stamp, cost: got.Cost}, r.Priority, p.cfg})
	}
	if err := p.promises.told(r, got, p.hand.now(), p.grace()); err != nil {
		rt.Fatal(err)
	}
}

func (p *paired) grace() time.Duration {
	if p.cfg.Grace == 0 {
		return 30 * time.Second
	}
	return p.cfg.Grace
}

// keep is how long IDs are remembered, as the package says.
func (p *paired) keep() time.Duration {
	switch {
	case p.year:
		return 366 * 24 * time.Hour
	case p.long:
		return 50 * time.Hour
	}
	return time.Hour
}

func (p *paired) remembered(g grant) bool {
	return !g.refunded && time.UnixMicro(g.stamp).Add(p.keep()).After(p.hand.now())
}

// law reads the log back: it is what was told, nothing lost and nothing twice; and
// in no position of any window did grants add up to more than the limit there was.
func (p *paired) law(rt *rapid.T) {
	log, ids, err := readBack(p.ctx, p.rdb, p.name)
	if err != nil {
		rt.Fatal(err)
	}
	gone := len(p.log) - len(log) // what no window counts is forgotten, from the oldest on
	if gone < 0 {
		rt.Fatalf("%d entries for %d grants", len(log), len(p.log))
	}
	told := make([]entry, len(p.log))
	for i, g := range p.log {
		told[i] = g.entry
		if i < gone {
			if !time.UnixMicro(g.stamp).Add(p.keep()).Before(p.latest) {
				rt.Fatalf("a grant that may count is lost: %+v", g)
			}
			continue
		}
		if e := log[i-gone]; e.stamp != g.stamp || e.cost != g.cost || e.refunded != g.refunded {
			rt.Fatalf("entry %d is %+v, told %+v", i, e, g.entry)
		}
	}
	for id, k := range p.last {
		g := p.log[k].entry
		got, ok := ids[id]
		ok = ok && p.remembered(grant{entry: got})
		if ok != p.remembered(p.log[k]) || ok && got != g {
			rt.Fatalf("ID %s: %+v is kept, told %+v", id, got, g)
		}
	}
	for id := range ids {
		if _, ok := p.last[id]; !ok {
			rt.Fatalf("ID %s was never granted", id)
		}
	}
	for i, g := range p.log {
		for _, w := range g.cfg.Windows {
			limit := w.Limit
			if g.Priority == quota.Scheduled && g.cfg.Reserve < limit {
				limit -= g.cfg.Reserve
			}
			if sum := heaviest(told, i, w); sum > limit && !g.refunded {
				rt.Fatalf("%d units in a window of %d per %s%s that ends with %+v", sum, limit, w.Per, w.Calendar, g)
			}
		}
	}
}

func (p *paired) compare(rt *rapid.T) {
	if now := p.hand.now(); now.After(p.latest) {
		p.latest = now
	}
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
	p.promises.drop(p.hand.now())
	p.law(rt)
}

var someIDs = rapid.Custom(func(rt *rapid.T) string {
	k := rapid.IntRange(0, 30).Draw(rt, "id")
	if k < len(oddIDs) {
		return oddIDs[k]
	}
	return fmt.Sprint("id", k)
})

// oddIDs could be taken for something else.
var oddIDs = []string{" ", "1", "-1", "nan", "%d", "+feed", "\\t1", `"`, "until", strings.Repeat("~", 200)}

// onBoth runs a model on a real server and on the embedded one, whose Lua is
// slow: there, one schedule in five.
func onBoth(t *testing.T, property func(*rapid.T, redis.UniversalClient)) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) redis.UniversalClient{
		"redis":     func(t *testing.T) redis.UniversalClient { return testredis.Client(t) },
		"miniredis": func(t *testing.T) redis.UniversalClient { return onMiniredis(t).open(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := open(t)
			t.Cleanup(func() { _ = rdb.Close() })
			run, every := 0, name == "redis"
			rapid.Check(t, func(rt *rapid.T) {
				if run++; every || run%5 == 0 {
					before := every
					every = true // stays so after a failure, which is then looked into
					property(rt, rdb)
					every = before
				}
			})
		})
	}
}

func TestAsTheModelSays(t *testing.T) {
	onBoth(t, func(rt *rapid.T, rdb redis.UniversalClient) {
		p := newPaired(rdb, rt)
		request := func(rt *rapid.T) quota.Request {
			r := quota.Request{ID: someIDs.Draw(rt, "who"), Cost: rapid.Int64Range(1, 12).Draw(rt, "cost")}
			if rapid.IntRange(0, 3).Draw(rt, "class") == 0 {
				r.Priority = quota.Interactive
			}
			r.NoLine = rapid.IntRange(0, 7).Draw(rt, "no line") == 0
			r.Label = rapid.SampledFrom([]string{"", "", "feed", "1 feed", strings.Repeat("~", 64)}).Draw(rt, "label")
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
			"come at the promise": func(rt *rapid.T) {
				// The next who is due, and then those behind it.
				due := slices.SortedFunc(maps.Values(p.promises), func(a, b *promise) int {
					return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
				})
				for _, next := range due[:min(len(due), rapid.IntRange(1, 8).Draw(rt, "so many"))] {
					if next.at.After(p.hand.now()) {
						p.hand.set(next.at)
					}
					p.charge(rt, next.Request)
				}
			},
			"come back": func(rt *rapid.T) {
				if len(p.waits) == 0 {
					return
				}
				r := rapid.SampledFrom(p.waits).Draw(rt, "waiter")
				off := rapid.SampledFrom([]time.Duration{-time.Microsecond, 0, 0, time.Millisecond, time.Second}).Draw(rt, "late")
				if w := p.promises[r.ID]; w != nil && w.at.Add(off).After(p.hand.now()) {
					p.hand.set(w.at.Add(off))
				}
				p.charge(rt, r)
			},
			"refund": func(rt *rapid.T) {
				id := someIDs.Draw(rt, "whose")
				got, err := p.l.Refund(p.ctx, p.name, id)
				if want := p.ledger.Refund(p.hand.now(), id); err != nil || got != want {
					rt.Fatalf("refund %s: %d, %v, model %d", id, got, err, want)
				}
				if k, ok := p.last[id]; ok && p.remembered(p.log[k]) {
					p.log[k].refunded = true
				}
				delete(p.promises, id)
			},
			"leave": func(rt *rapid.T) {
				id := someIDs.Draw(rt, "who")
				p.ledger.Leave(id)
				delete(p.promises, id)
				if err := p.l.Leave(p.ctx, p.name, id); err != nil {
					rt.Fatal(err)
				}
			},
			"block": func(rt *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{time.Millisecond, 3 * time.Second, time.Minute}).Draw(rt, "for")
				p.ledger.Block(p.hand.now(), d)
				p.promises.loosen(nil)
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
				by := rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 5 * time.Second, 50 * time.Second}).Draw(rt, "by")
				if to := p.hand.now().Add(-by); p.latest.Sub(to) < time.Minute { // as far back as logs are kept for
					p.hand.set(to)
				}
				p.promises.loosen(nil)
			},
			"new limits": func(rt *rapid.T) {
				if rapid.IntRange(0, 2).Draw(rt, "now") > 0 {
					return
				}
				p.cfg = p.anyConfig(rt)
				p.promises.loosen(nil)
				if err := p.l.Reload([]quota.Config{p.cfg}); err != nil {
					rt.Fatal(err)
				}
				if err := p.ledger.Configure(p.cfg); err != nil {
					rt.Fatal(err)
				}
			},
			"taken out, and put back": func(rt *rapid.T) {
				if err := p.l.Reload(nil); err != nil {
					rt.Fatal(err)
				}
				if _, err := p.l.Charge(p.ctx, quota.Request{Quota: p.name, ID: "id1", Cost: 1}); !errors.Is(err, quota.ErrUnknownQuota) {
					rt.Fatalf("it is taken out: %v", err)
				}
				if err := p.l.Reload([]quota.Config{p.cfg}); err != nil {
					rt.Fatal(err)
				}
			},
			"": p.compare,
		})
	})
}

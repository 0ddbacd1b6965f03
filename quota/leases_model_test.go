package quota_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

const (
	leaseGrace = int64(30 * time.Second / time.Microsecond)
	day        = int64(24 * time.Hour / time.Microsecond)
)

// limitModel is one running limit, by plain lists and walks. Instants are µs.
type limitModel struct {
	held   map[string]int64
	line   []spot // in order
	past   []spot
	limit  int64
	closed int64
}

type spot struct {
	holder     string
	since, due int64
}

func (m *limitModel) sweep(now int64) {
	for h, end := range m.held {
		if end <= now {
			delete(m.held, h)
		}
	}
	dead := func(s spot) bool { return s.due <= now }
	m.line, m.past = slices.DeleteFunc(m.line, dead), slices.DeleteFunc(m.past, dead)
}

func (m *limitModel) find(list []spot, holder string) int {
	return slices.IndexFunc(list, func(s spot) bool { return s.holder == holder })
}

func (m *limitModel) forget(holder string) {
	is := func(s spot) bool { return s.holder == holder }
	m.line, m.past = slices.DeleteFunc(m.line, is), slices.DeleteFunc(m.past, is)
}

type modelTurn struct {
	done           bool
	since          int64
	wait, position int64
	reason         string
	next           []string
}

func (m *limitModel) acquire(now int64, holder string, ttl, limit int64) modelTurn {
	m.sweep(now)
	m.limit = limit
	if end, ok := m.held[holder]; ok {
		m.held[holder] = max(end, now+ttl)
		return modelTurn{done: true, since: now, next: m.ring(now, false)}
	}
	since, rank := now, len(m.line)
	if rank > 0 {
		since = max(since, m.line[rank-1].since+1)
	}
	mine := m.find(m.line, holder)
	if mine >= 0 {
		since, rank = m.line[mine].since, mine
	} else if p := m.find(m.past, holder); p >= 0 {
		since, rank = m.past[p].since, 0
		for _, s := range m.line {
			if s.since < since {
				rank++
			}
		}
	}
	if m.closed <= now && (limit == 0 || int64(len(m.held)+rank) < limit) {
		m.forget(holder)
		m.held[holder] = now + ttl
		return modelTurn{done: true, since: since, next: m.ring(now, false)}
	}
	at := m.ends(now, rank, ttl)
	t := modelTurn{since: since, wait: at - now, position: int64(rank) + 1, reason: quota.ReasonRunning}
	if m.closed > now {
		t.reason = quota.ReasonBlocked
	}
	m.forget(holder)
	m.line = append(m.line, spot{holder, since, at + leaseGrace})
	slices.SortFunc(m.line, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.holder, b.holder))
	})
	t.next = m.ring(now, false)
	return t
}

// ends plays what happens when nobody releases: leases end in order, and each end lets one in.
func (m *limitModel) ends(now int64, rank int, ttl int64) int64 {
	at := max(now+1, m.closed)
	if m.limit == 0 {
		return min(at, now+day)
	}
	var ends []int64
	for _, e := range m.held {
		ends = append(ends, e)
	}
	slices.Sort(ends)
	running := len(ends)
	last := int64(0)
	if running > 0 {
		last = ends[running-1]
	}
	for int64(len(ends)) < m.limit {
		ends = append(ends, max(now+ttl, last))
	}
	for taker := range rank + 1 {
		n := running + taker + 1 - int(m.limit) // so many must have ended
		if n <= 0 {
			continue
		}
		if n > len(ends) {
			ends = append(ends, ends[n-1-int(m.limit)]+ttl)
		}
		at = max(at, ends[n-1])
	}
	return min(at, now+day)
}

func (m *limitModel) ring(now int64, all bool) []string {
	room := m.limit - int64(len(m.held))
	if m.limit == 0 {
		room = 1000
	}
	if m.closed > now {
		room = 0
	}
	var named []string
	for i := range m.line {
		if int64(i) >= room {
			break
		}
		s := &m.line[i]
		expected := s.due - leaseGrace
		if all || expected > now || expected <= now-2e6 {
			named = append(named, s.holder)
		}
		if expected > now {
			s.due = now + leaseGrace
		}
	}
	return named
}

func (m *limitModel) yield(now int64, holder string, since, keep int64) []string {
	m.sweep(now)
	delete(m.held, holder)
	m.forget(holder)
	m.past = append(m.past, spot{holder, since, now + keep})
	return m.ring(now, false)
}

func (m *limitModel) release(now int64, holder string) []string {
	m.sweep(now)
	_, had := m.held[holder]
	delete(m.held, holder)
	return m.ring(now, !had)
}

// crowd drives Leases and the models by the same steps.
type crowd struct {
	ctx    context.Context
	hand   *hand
	leases *quota.Leases
	names  []string
	models map[string]*limitModel
}

func newCrowd(rdb redis.UniversalClient, limits int) *crowd {
	c := &crowd{ctx: context.Background(), hand: newHand(), models: map[string]*limitModel{}}
	c.leases = quota.NewLeases(rdb, quota.WithClock(c.hand.now))
	for range limits {
		name := testredis.Name("host:")
		c.names = append(c.names, name)
		c.models[name] = &limitModel{held: map[string]int64{}}
	}
	return c
}

func (c *crowd) now() int64 { return c.hand.now().UnixMicro() }

func (c *crowd) acquire(rt *rapid.T, holder string, ttl time.Duration, limits []quota.Running) {
	got, err := c.leases.Acquire(c.ctx, holder, ttl, limits...)
	if err != nil {
		rt.Fatal(err)
	}
	want := quota.Acquired{Held: true}
	turns := make([]modelTurn, len(limits))
	var next []string
	refused := -1
	for i, r := range limits {
		m := c.models[r.Name]
		m.sweep(c.now())
		_, had := m.held[holder]
		turns[i] = m.acquire(c.now(), holder, ttl.Microseconds(), r.Limit)
		next = append(next, turns[i].next...)
		if got.Held && !had && r.Limit > 0 && int64(len(m.held)) > r.Limit {
			rt.Fatalf("%s is let in as one of %d at %+v", holder, len(m.held), r)
		}
		if !turns[i].done && refused < 0 {
			refused = i
			t := turns[i]
			want = quota.Acquired{Full: r, RetryAfter: time.Duration((t.wait+999)/1000) * time.Millisecond, Position: t.position, Reason: t.reason}
		}
	}
	for i, r := range limits {
		if refused >= 0 && i != refused {
			next = append(next, c.models[r.Name].yield(c.now(), holder, turns[i].since, turns[refused].wait+leaseGrace)...)
		}
	}
	want.Next = once(next, holder)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		rt.Fatalf("%s asks %v for %s\n got   %+v\n model %+v", holder, limits, ttl, got, want)
	}
}

func once(names []string, but string) []string {
	var kept []string
	for _, n := range names {
		if n != but && !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	return kept
}

func (c *crowd) compare(rt *rapid.T) {
	for _, name := range c.names {
		s, err := c.leases.State(c.ctx, name)
		if err != nil {
			rt.Fatal(err)
		}
		m := c.models[name]
		m.sweep(c.now())
		first := int64(0)
		for _, end := range m.held {
			if first == 0 || end < first {
				first = end
			}
		}
		got := fmt.Sprint(s.Running, s.Waiting, s.Limit, s.NextExpiry.IsZero(), !s.BlockedUntil.IsZero())
		want := fmt.Sprint(len(m.held), len(m.line), m.limit, first == 0, m.closed > c.now())
		if got != want || first > 0 && s.NextExpiry.UnixMicro() != first {
			rt.Fatalf("%s: %+v, model %s, first ends at %d", name, s, want, first)
		}
	}
}

// leasesAsTheModelSays plays schedules, most of them at most.
func leasesAsTheModelSays(t *testing.T, rdb redis.UniversalClient, most int) {
	rapid.Check(t, func(rt *rapid.T) {
		if most--; most < 0 {
			return
		}
		c := newCrowd(rdb, 3)
		holder := func(rt *rapid.T) string { return fmt.Sprint("h", rapid.IntRange(0, 9).Draw(rt, "holder")) }
		some := func(rt *rapid.T) []string {
			names := slices.Clone(c.names)
			from := rapid.IntRange(0, len(names)-1).Draw(rt, "from")
			return names[from : from+rapid.IntRange(1, len(names)-from).Draw(rt, "names")]
		}
		limits := map[string]int64{}
		for _, n := range c.names {
			limits[n] = rapid.Int64Range(0, 3).Draw(rt, "limit")
		}
		ask := func(rt *rapid.T) {
			var all []quota.Running
			for _, n := range some(rt) {
				all = append(all, quota.Running{Name: n, Limit: limits[n]})
			}
			ttl := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Minute, 12 * time.Hour}).Draw(rt, "ttl")
			c.acquire(rt, holder(rt), ttl, all)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"ask": ask, "ask too": ask, "ask again": ask,
			"release": func(rt *rapid.T) {
				h, names := holder(rt), some(rt)
				got, err := c.leases.Release(c.ctx, h, names...)
				var want []string
				for _, n := range names {
					want = append(want, c.models[n].release(c.now(), h)...)
				}
				if want = once(want, h); err != nil || !slices.Equal(got, want) {
					rt.Fatalf("%s releases %v: next %v, %v, model %v", h, names, got, err, want)
				}
			},
			"extend": func(rt *rapid.T) {
				h, names := holder(rt), some(rt)
				err := c.leases.Extend(c.ctx, h, 2*time.Minute, names...)
				all := true
				for _, n := range names {
					m := c.models[n]
					m.sweep(c.now())
					end, ok := m.held[h]
					if ok {
						m.held[h] = max(end, c.now()+(2*time.Minute).Microseconds())
					}
					all = all && ok
				}
				if all != (err == nil) {
					rt.Fatalf("%s extends %v: %v, model %t", h, names, err, all)
				}
			},
			"leave": func(rt *rapid.T) {
				h, names := holder(rt), some(rt)
				if err := c.leases.Leave(c.ctx, h, names...); err != nil {
					rt.Fatal(err)
				}
				for _, n := range names {
					c.models[n].sweep(c.now())
					c.models[n].forget(h)
				}
			},
			"block": func(rt *rapid.T) {
				n := rapid.SampledFrom(c.names).Draw(rt, "name")
				d := rapid.SampledFrom([]time.Duration{time.Second, 45 * time.Second}).Draw(rt, "for")
				c.models[n].closed = max(c.models[n].closed, c.now()+d.Microseconds())
				if err := c.leases.Block(c.ctx, n, d, "why"); err != nil {
					rt.Fatal(err)
				}
			},
			"unblock": func(rt *rapid.T) {
				n := rapid.SampledFrom(c.names).Draw(rt, "name")
				m := c.models[n]
				m.sweep(c.now())
				m.closed = 0
				want := m.ring(c.now(), true)
				if got, err := c.leases.Unblock(c.ctx, n); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					rt.Fatalf("unblock: next %v, %v, model %v", got, err, want)
				}
			},
			"another limit": func(rt *rapid.T) {
				limits[rapid.SampledFrom(c.names).Draw(rt, "name")] = rapid.Int64Range(0, 4).Draw(rt, "limit")
			},
			"time goes on": func(rt *rapid.T) {
				c.hand.add(rapid.SampledFrom([]time.Duration{time.Microsecond, time.Millisecond, 3 * time.Second, 29 * time.Second, time.Minute, 13 * time.Hour}).Draw(rt, "by"))
			},
			"the clock steps back": func(rt *rapid.T) {
				c.hand.add(-rapid.SampledFrom([]time.Duration{time.Microsecond, 5 * time.Second}).Draw(rt, "by"))
			},
			"": c.compare,
		})
	})
}

func TestLeasesAreAsTheModelSays(t *testing.T) {
	t.Parallel()
	leasesAsTheModelSays(t, testredis.Client(t), math.MaxInt)
}

func TestLeasesAreAsTheModelSaysOnMiniredis(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	leasesAsTheModelSays(t, rdb, 15) // its Lua is slow
}

package allocation_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"pgregory.net/rapid"
)

// endpointModel is an endpoint as plain as can be.
type endpointModel struct {
	in           bool // in the pool
	until        time.Time
	strikes      int
	count, score int
	turn         int // the pass in which it is next; -1: none is kept
}

type leaseModel struct {
	id, token string
	end       time.Time
}

// poolModel says, slowly, what every policy must do: which endpoints a take may
// give, and what the take changes.
type poolModel struct {
	policy, alone string
	limit         int
	life          time.Duration
	now           func() time.Time

	all    map[string]*endpointModel
	leases []leaseModel
	keys   map[string]string
	last   string
	pass   int
}

func (m *poolModel) eligible() (ids []string) {
	for id, e := range m.all {
		if e.in && e.until.IsZero() {
			ids = append(ids, id)
		}
	}
	return ids
}

// least gives those of ids for which value is the lowest, and that value.
func least(ids []string, value func(id string) int) (low int, out []string) {
	for _, id := range ids {
		v := value(id)
		if len(out) == 0 || v < low {
			low, out = v, nil
		}
		if v == low {
			out = append(out, id)
		}
	}
	return low, out
}

func (m *poolModel) score(id string) int { return m.all[id].score }
func (m *poolModel) turn(id string) int  { return m.all[id].turn }
func (m *poolModel) flying(id string) (n int) {
	for _, l := range m.leases {
		if l.id == id {
			n++
		}
	}
	return n
}

// enter makes an endpoint eligible: level with the others, and in what is left of the pass.
func (m *poolModel) enter(id string) {
	e, others := m.all[id], m.eligible()
	others = slices.DeleteFunc(others, func(o string) bool { return o == id })
	if low, ids := least(others, m.score); len(ids) > 0 {
		e.score = low
	}
	if e.turn < m.pass {
		low, _ := least(others, m.turn)
		e.turn = max(low, m.pass)
	}
	e.until = time.Time{}
}

// due lets those whose quarantine is over return, in order.
func (m *poolModel) due() {
	var ids []string
	for id, e := range m.all {
		if e.in && !e.until.IsZero() && !e.until.After(m.now()) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return m.all[a].until.Compare(m.all[b].until) })
	for _, id := range ids {
		m.enter(id)
	}
}

// may gives the endpoints that a take can have; none and busy: all are at their cap.
func (m *poolModel) may(key string) (ids []string, busy bool) {
	ids = m.eligible()
	switch m.policy {
	case allocation.LeastUsed:
		_, ids = least(ids, m.score)
	case allocation.NoRepeat:
		if len(ids) > 1 || m.alone != allocation.AloneReuse {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == m.last })
		}
	case allocation.Shuffled:
		_, ids = least(ids, m.turn)
		if len(ids) > 1 {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == m.last })
		}
	case allocation.LeastBusy:
		m.leases = slices.DeleteFunc(m.leases, func(l leaseModel) bool { return !l.end.After(m.now()) })
		low, free := least(ids, m.flying)
		if len(free) > 0 && low >= m.limit {
			return nil, true
		}
		ids = free
	case allocation.Sticky:
		if had := m.keys[key]; had != "" && slices.Contains(ids, had) {
			return []string{had}, false
		}
		_, ids = least(ids, m.score)
	}
	return ids, false
}

// took records a take.
func (m *poolModel) took(a allocation.Allocation, key string) {
	e := m.all[a.ID]
	e.count++
	e.score++
	m.last = a.ID
	switch m.policy {
	case allocation.Shuffled:
		m.pass = max(m.pass, e.turn)
		e.turn = m.pass + 1
	case allocation.LeastBusy:
		m.leases = append(m.leases, leaseModel{a.ID, a.Lease, m.now().Add(m.life)})
	case allocation.Sticky:
		if key != "" {
			m.keys[key] = a.ID
		}
	}
}

// reported records an outcome.
func (m *poolModel) reported(id, lease string, o allocation.Outcome) {
	m.leases = slices.DeleteFunc(m.leases, func(l leaseModel) bool { return l.id == id && l.token == lease })
	e := m.all[id]
	if !e.in || !e.until.IsZero() {
		return
	}
	switch o {
	case allocation.OK:
		e.strikes = max(e.strikes-1, 0)
	case allocation.Connect:
		e.strikes++
		e.until = m.now().Add(min(30*time.Second<<(e.strikes-1), time.Hour))
	}
}

// TestPoliciesAgainstAModel does what comes to a pool in any order, taking, reporting,
// importing, removing, restoring, waiting and changing the policy while it runs,
// and compares every answer with the model's.
func TestPoliciesAgainstAModel(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := allocation.Config{Cap: 2, Lease: 20 * time.Second}
		configure := func() {
			c.Policy = rapid.SampledFrom(allPolicies).Draw(rt, "policy")
			c.Alone = rapid.SampledFrom([]string{allocation.AloneReuse, allocation.AloneWait}).Draw(rt, "alone")
		}
		configure()
		b := benchOn(t, rdb, c)
		c.Name = b.pool
		workers := []*allocation.Pools{b.pools, b.another(c)}
		m := &poolModel{policy: c.Policy, alone: c.Alone, limit: c.Cap, life: c.Lease, now: b.clock.read, all: map[string]*endpointModel{}, keys: map[string]string{}}
		names := make([]string, 5)
		for i := range names {
			names[i] = fmt.Sprintf("http://h%d.example:80", i)
		}
		var given []allocation.Allocation
		endpoint := func(rt *rapid.T) string { return rapid.SampledFrom(names).Draw(rt, "endpoint") }
		known := func(id string) bool { return m.all[id] != nil && m.all[id].in }
		// answered checks an error of a call that names an endpoint.
		answered := func(rt *rapid.T, id string, err error) {
			if known(id) != (err == nil) || err != nil && !errors.Is(err, allocation.ErrUnknownEndpoint) {
				rt.Fatalf("%s, known %v: %v", id, known(id), err)
			}
		}
		take := func(rt *rapid.T) {
			m.due()
			key := rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(rt, "key")
			ids, busy := m.may(key)
			a, err := workers[rapid.IntRange(0, 1).Draw(rt, "worker")].Take(t.Context(), b.pool, allocation.TakeOptions{Key: key})
			if e, ok := asEmpty(err); ok && len(ids) == 0 {
				if e.Busy != busy {
					rt.Fatalf("busy is %v, want %v", e.Busy, busy)
				}
				return
			}
			if err != nil || !slices.Contains(ids, a.ID) {
				rt.Fatalf("%s took %q with %v, want one of %v", m.policy, a.ID, err, ids)
			}
			m.took(a, key)
			given = append(given, a)
			if a.Count != int64(m.all[a.ID].count) {
				rt.Fatalf("count %d, want %d", a.Count, m.all[a.ID].count)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"take": take, "take again": take, "and again": take,
			"report": func(rt *rapid.T) {
				if len(given) == 0 {
					rt.Skip("nothing is taken")
				}
				a := rapid.SampledFrom(given).Draw(rt, "allocation")
				o := rapid.SampledFrom([]allocation.Outcome{allocation.OK, allocation.Connect, allocation.Cancelled}).Draw(rt, "outcome")
				b.clock.move(time.Millisecond) // each quarantine ends at an instant of its own
				err := b.pools.Report(t.Context(), allocation.Report{Pool: b.pool, ID: a.ID, Lease: a.Lease, Outcome: o})
				answered(rt, a.ID, err)
				m.reported(a.ID, a.Lease, o)
			},
			"import": func(rt *rapid.T) {
				m.due()
				id := endpoint(rt)
				b.load(id)
				if known(id) {
					return
				}
				if m.all[id] == nil {
					m.all[id] = &endpointModel{}
				}
				e := m.all[id]
				*e = endpointModel{in: true, count: e.count, score: e.count, turn: -1}
				m.enter(id)
			},
			"remove": func(rt *rapid.T) {
				m.due()
				id := endpoint(rt)
				answered(rt, id, b.pools.Remove(t.Context(), b.pool, id))
				if known(id) {
					m.all[id].in = false
				}
			},
			"restore": func(rt *rapid.T) {
				m.due()
				id := endpoint(rt)
				answered(rt, id, b.pools.Restore(t.Context(), b.pool, id))
				if known(id) && !m.all[id].until.IsZero() {
					m.enter(id)
				}
			},
			"wait": func(rt *rapid.T) {
				b.clock.move(time.Duration(rapid.IntRange(1, 40).Draw(rt, "seconds")) * time.Second)
			},
			"change the policy": func(*rapid.T) {
				configure()
				m.policy, m.alone = c.Policy, c.Alone
				for _, w := range workers {
					b.must(w.Reload([]allocation.Config{c}))
				}
			},
			"": func(rt *rapid.T) {
				listed := b.list()
				in := slices.DeleteFunc(slices.Collect(maps.Keys(m.all)), func(id string) bool { return !m.all[id].in })
				if len(listed) != len(in) {
					rt.Fatalf("%d endpoints are listed, want %v", len(listed), in)
				}
				for _, e := range listed {
					want := m.all[e.ID]
					if e.Count != int64(want.count) || want.until.IsZero() && e.Count+e.Handicap != int64(want.score) {
						rt.Fatalf("%s has count %d and score %d, want %d and %d", e.ID, e.Count, e.Count+e.Handicap, want.count, want.score)
					}
					if e.InFlight != int64(m.flying(e.ID)) {
						rt.Fatalf("%s has %d leases, want %d", e.ID, e.InFlight, m.flying(e.ID))
					}
				}
			},
		})
	})
}

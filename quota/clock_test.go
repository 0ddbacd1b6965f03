package quota_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// Two limiters ask for the same by the same Redis clock, over midnights. The host
// of the second one is five minutes off: nothing that it is told differs.
func TestAProcessWhoseClockIsFiveMinutesOff(t *testing.T) {
	t.Parallel()
	la := pacific(t)
	rdb := connection(t)
	for _, off := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		h := newHand()
		h.set(time.Date(2026, 11, 1, 23, 50, 0, 0, la)) // the end of a day of 25 hours
		var desks [2]*desk
		for i := range desks {
			d := &desk{t: t, ctx: t.Context(), rdb: rdb, name: testredis.Name("off"), hand: h}
			c := quota.Config{Name: d.name, Reserve: 5, Windows: []quota.Window{{Limit: 60, Calendar: "day", Location: la}, {Limit: 25, Per: 3 * time.Minute}}}
			clocks := []quota.Option{quota.WithClock(h.now)}
			if i == 1 {
				clocks = append(clocks, quota.WithEdgesAt(func() time.Time { return h.now().Add(off) }))
			}
			d.l = limiter(t, rdb, c, clocks...)
			d.cfg = c
			desks[i] = d
		}
		rnd := rand.New(rand.NewPCG(5, 5))
		var log []entry
		type waiter struct {
			quota.Decision
			class quota.Priority
		}
		var waits []waiter
		refusals := 0
		for step := range 300 {
			r := quota.Request{ID: fmt.Sprint("c", step), Cost: rnd.Int64N(9) + 1, Priority: quota.Priority(rnd.IntN(2))}
			// The first of those whose promise has come.
			if i := slices.IndexFunc(waits, func(w waiter) bool { return !w.At.After(h.now()) }); i >= 0 {
				r = quota.Request{ID: waits[i].ID, Cost: waits[i].Cost, Priority: waits[i].class}
				waits = slices.Delete(waits, i, i+1)
			}
			got := desks[0].ask(r)
			if other := desks[1].ask(r); fmt.Sprintf("%+v", other) != fmt.Sprintf("%+v", got) {
				t.Fatalf("off by %s, step %d\n got  %+v\n want %+v", off, step, other, got)
			}
			if got.Granted {
				log = append(log, entry{id: r.ID, stamp: got.At.UnixMicro(), cost: got.Cost})
			} else {
				refusals++
				waits = append(waits, waiter{got, r.Priority})
			}
			h.add(time.Duration(rnd.IntN(30_000)) * time.Millisecond)
		}
		kept, _, err := readBack(t.Context(), rdb, desks[1].name)
		if err != nil || len(kept) != len(log) {
			t.Fatalf("%d entries for %d grants, %v", len(kept), len(log), err)
		}
		if what := broken(kept, desks[1].cfg); what != "" {
			t.Error(what)
		}
		if refusals < 20 || len(log) < 20 || h.now().Before(time.Date(2026, 11, 2, 0, 10, 0, 0, la)) {
			t.Errorf("%d refusals, %d grants, the clock at %s", refusals, len(log), h.now().In(la))
		}
	}
}

// The replica that takes over is 5 s behind. What had been granted goes on to
// count, by the clock that all see.
func TestFailoverToAReplicaThatIsFiveSecondsBehind(t *testing.T) {
	t.Parallel()
	const behind = 5 * time.Second
	set := testredis.Sentinel(t, testredis.SentinelOptions{ReplicaClock: -behind})
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: set.Name, SentinelAddrs: set.Addrs(), MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 20 * time.Millisecond, DialerRetries: 1,
	})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	const per, limit = 2 * time.Second, 40
	c := window(limit, per)
	c.Name = testredis.Name("failover")
	l := limiter(t, rdb, c)

	var mu sync.Mutex
	var seen []told
	longest := time.Duration(0)
	workers := func(from, to int) {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := from + w; i < to && ctx.Err() == nil; i += 8 {
					s, wait := see(ctx, l, quota.Request{Quota: c.Name, ID: fmt.Sprint("job", i), Cost: int64(i%3 + 1)})
					mu.Lock()
					seen = append(seen, s)
					longest = max(longest, wait)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	// Every charge of the first part has reached the replica before the primary dies.
	workers(0, 20)
	primary := set.Primary.Client()
	defer primary.Close()
	waiting, err := l.Charge(ctx, quota.Request{Quota: c.Name, ID: "waits", Cost: limit})
	if err != nil || waiting.Granted {
		t.Fatal(waiting, err)
	}
	if n, err := primary.Wait(ctx, 1, 10*time.Second).Result(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	set.Primary.Kill()
	failedOver := time.Now()
	s, wait := see(ctx, l, quota.Request{Quota: c.Name, ID: "waits", Cost: limit})
	seen = append(seen, s)
	longest = max(longest, wait)
	if s.stamp < waiting.At.UnixMicro() {
		t.Errorf("granted %s by the new clock, promised %s", time.UnixMicro(s.stamp), waiting.At)
	}
	workers(20, 60)
	if ctx.Err() != nil {
		t.Fatal("the charges do not end")
	}
	t.Logf("back after %s, longest wait told %s", s.heard.Sub(failedOver).Round(time.Millisecond), longest)

	replica := set.Replica.Client()
	defer replica.Close()
	if now, err := replica.Time(ctx).Result(); err != nil || time.Since(now) < behind-time.Second {
		t.Fatalf("the replica's clock says %s, %v", now, err)
	}
	log, ids, err := readBack(ctx, replica, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	// Stamps rise, or readBack had said so, and no window of them is broken.
	if what := broken(log, c); what != "" {
		t.Error(what)
	}
	if len(log) != 61 || len(ids) != 61 {
		t.Errorf("%d entries and %d IDs for 61 charges", len(log), len(ids))
	}
	for _, s := range seen {
		if ids[s.id].stamp != s.stamp {
			t.Errorf("%s was told %d, kept is %+v", s.id, s.stamp, ids[s.id])
		}
	}
	// Nothing is early by the clock on the wall either: what was asked for and
	// answered within one length of the window was granted in it.
	for _, first := range seen {
		var sum int64
		for _, s := range seen {
			if !s.asked.Before(first.asked) && s.heard.Sub(first.asked) < per {
				sum += s.cost
			}
		}
		if sum > limit {
			t.Errorf("%d units within %s on the wall", sum, per)
		}
	}
	// A wait is at most what is before it takes, the whole limit among it, and the step.
	if most := 3*per + behind; longest > most {
		t.Errorf("a wait of %s was told, want %s at most", longest, most)
	}
}

// told is one charge as its caller saw it.
type told struct {
	entry
	asked, heard time.Time // on the wall, of the call that was granted
}

// see asks until it is granted. It gives the longest wait that it was told.
func see(ctx context.Context, l *quota.Limiter, r quota.Request) (s told, longest time.Duration) {
	s.entry = entry{id: r.ID, cost: r.Cost}
	s.asked = time.Now()
	for ctx.Err() == nil {
		asked := time.Now()
		d, err := l.Charge(ctx, r)
		switch {
		case err != nil:
			pause(ctx, 5*time.Millisecond) // it may have been granted: asked stays
			continue
		case d.Granted:
			s.stamp, s.heard = d.At.UnixMicro(), time.Now()
			return s, longest
		}
		longest = max(longest, d.RetryAfter)
		s.asked = asked
		pause(ctx, d.RetryAfter)
		s.asked = time.Now()
	}
	return s, longest
}

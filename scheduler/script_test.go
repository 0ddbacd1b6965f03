package scheduler

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/testredis"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// stores gives the scripts' two servers, each with a clock to set.
func stores(t *testing.T, each func(t *testing.T, rdb redis.UniversalClient, at func(ms int64, owner string) *store)) {
	bind := func(rdb redis.UniversalClient) func(int64, string) *store {
		return func(ms int64, owner string) *store {
			return &store{rdb: rdb, owner: owner, now: func() string { return strconv.FormatInt(ms, 10) }}
		}
	}
	t.Run("redis", func(t *testing.T) {
		rdb := freshRedis(t)
		each(t, rdb, bind(rdb))
	})
	t.Run("miniredis", func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		each(t, rdb, bind(rdb))
	})
}

// TestClaim takes claim.lua and advance.lua through each of their answers.
func TestClaim(t *testing.T) {
	stores(t, func(t *testing.T, rdb redis.UniversalClient, at func(int64, string) *store) {
		ctx := t.Context()
		p := planOf(t, Entry{Name: "feed", Expression: "@every 10s"})
		const zero = 1_700_000_000_000
		it := &item{plan: p}
		_, last, err := at(zero, "a").load(ctx, []*item{it}, zero)
		if err != nil || last[0] != zero {
			t.Fatalf("loaded %v, %v", last, err)
		}
		it.last = last[0]
		it.aim()
		one := func(ms int64, owner string, since int64) claim {
			t.Helper()
			now, claims, err := at(ms, owner).claim(ctx, []*item{it}, func(*item) int64 { return since })
			if err != nil || now != ms {
				t.Fatalf("at %d: %v", now, err)
			}
			return claims[0]
		}
		settle := func(ms int64, owner string, s step) bool {
			t.Helper()
			s.item, s.from = it, it.last
			s.ttl = 1000_000
			done, err := at(ms, owner).advance(ctx, []*step{&s})
			if err != nil {
				t.Fatal(err)
			}
			return done[0]
		}
		if c := one(zero+9_000, "a", zero); c.code != early || c.wait != 1000 {
			t.Errorf("early: %+v", c)
		}
		if c := one(zero+10_000, "a", zero); c.code != claimed || c.gapTo != 0 {
			t.Errorf("claimed: %+v", c)
		}
		if c := one(zero+10_500, "b", zero); c.code != taken || c.wait != leaseMS-500 {
			t.Errorf("taken: %+v", c)
		}
		if c := one(zero+10_500, "a", zero); c.code != claimed {
			t.Errorf("claimed again by the same: %+v", c)
		}
		// The claim ends, and another takes it; it came late, but the first had touched the tick.
		if c := one(zero+10_500+leaseMS, "b", zero+12_000); c.code != claimed || c.gapFrom != zero+10_500 || c.gapTo != zero+12_000 {
			t.Errorf("taken over: %+v", c)
		}
		// Back for a rest, which holds for all.
		if !settle(zero+16_000, "b", step{to: it.last, hold: "full", rest: 2000}) {
			t.Error("not given back")
		}
		if c := one(zero+17_000, "b", zero); c.code != taken || c.wait != 1000 {
			t.Errorf("at rest: %+v", c)
		}
		if h := rdb.HGet(ctx, stateKey("feed"), "hold").Val(); h != "full" {
			t.Errorf("hold %q", h)
		}
		if c := one(zero+18_000, "a", zero); c.code != claimed {
			t.Errorf("after the rest: %+v", c)
		}
		if !settle(zero+18_000, "a", step{to: it.last + 10_000, instant: it.last + 10_000, dispatched: 1, late: 1, lateness: 8000}) {
			t.Error("not settled")
		}
		if settle(zero+18_000, "b", step{to: it.last + 10_000, dispatched: 1}) {
			t.Error("settled twice")
		}
		if c := one(zero+18_000, "b", zero); c.code != moved || c.last != it.last+10_000 {
			t.Errorf("moved: %+v", c)
		}
		want := map[string]string{"dispatched": "1", "late": "1", "lateness": "8000", "ticked": strconv.FormatInt(it.last+10_000, 10), "ticked_at": strconv.Itoa(zero + 18_000)}
		h := rdb.HGetAll(ctx, stateKey("feed")).Val()
		for field, v := range want {
			if h[field] != v {
				t.Errorf("%s is %q, want %q", field, h[field], v)
			}
		}
		for _, field := range []string{"hold", "claim", "claim_until", "skipped", "missed"} {
			if v, ok := h[field]; ok {
				t.Errorf("%s is %q", field, v)
			}
		}
		if ttl := rdb.PTTL(ctx, stateKey("feed")).Val(); ttl <= 0 || ttl > 1000*time.Second {
			t.Errorf("ttl %v", ttl)
		}
		// A gap that still has ticks to settle grows, with one claimer after the other.
		it.last += 10_000
		it.aim()
		if c := one(zero+100_000, "c", zero+90_000); c.gapFrom != zero+18_000 || c.gapTo != zero+90_000 {
			t.Errorf("first gap: %+v", c)
		}
		if c := one(zero+200_000, "d", zero+190_000); c.gapFrom != zero+18_000 || c.gapTo != zero+190_000 {
			t.Errorf("grown gap: %+v", c)
		}
		// The record is lost.
		rdb.Del(ctx, stateKey("feed"))
		if c := one(zero+200_000, "a", zero); c.code != claimed || c.last != it.last || c.gapTo != 0 {
			t.Errorf("lost: %+v", c)
		}
	})
}

func TestBeat(t *testing.T) {
	stores(t, func(t *testing.T, rdb redis.UniversalClient, at func(int64, string) *store) {
		ctx := t.Context()
		for i, c := range []struct {
			ms    int64
			owner string
			want  []string
		}{
			{1_700_000_000_000, "b", []string{"b"}},
			{1_700_000_001_000, "a", []string{"a", "b"}},
			{1_700_000_003_000, "a", []string{"a"}},
			{1_600_000_000_000, "c", []string{"c"}}, // the clock went back
		} {
			now, requests, live, err := at(c.ms, c.owner).beat(ctx)
			slices.Sort(live)
			if err != nil || now != c.ms || requests != 0 || !slices.Equal(live, c.want) {
				t.Errorf("%d: %d, %d, %v, %v", i, now, requests, live, err)
			}
		}
		if err := at(0, "c").leave(ctx); err != nil || rdb.Exists(ctx, liveKey).Val() != 0 {
			t.Errorf("left: %v", err)
		}
	})
}

// TestServerClock runs the scripts on the server's time.
func TestServerClock(t *testing.T) {
	stores(t, func(t *testing.T, rdb redis.UniversalClient, _ func(int64, string) *store) {
		s := &store{rdb: rdb, owner: "a", now: func() string { return "" }}
		now, _, _, err := s.beat(t.Context())
		if d := time.Since(time.UnixMilli(now)); err != nil || d < -time.Minute || d > time.Minute {
			t.Errorf("the server is %v off, %v", d, err)
		}
	})
}

// TestOtherServers takes the road of a tick, a pause and a request on
// miniredis, and on a node of a Cluster, which refuses a script whose keys lie
// in two slots.
func TestOtherServers(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		road(t, rdb)
	})
	t.Run("cluster node", func(t *testing.T) {
		rdb := testredis.Own(t, "--cluster-enabled", "yes").Client()
		t.Cleanup(func() { _ = rdb.Close() })
		if err := rdb.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the cluster is up", func() bool {
			return strings.Contains(rdb.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
		})
		road(t, rdb)
	})
}

func road(t *testing.T, rdb redis.UniversalClient) {
	clock, q := newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	e, other := Entry{Name: "feed", Expression: "* * * * *"}, Entry{Name: "other", Expression: "* * * * *"}
	a, b := newDispatcher(t, rdb, clock, q, e, other), newDispatcher(t, rdb, clock, q, e, other)
	start(t, a)
	start(t, b)
	pump(t, clock, time.Second, "three jobs each", func() bool { return len(q.has("feed")) >= 3 && len(q.has("other")) >= 3 })
	if err := a.Pause(t.Context(), "feed", time.Time{}, "ops"); err != nil {
		t.Fatal(err)
	}
	pump(t, clock, time.Second, "three are skipped", func() bool { return listed(t, a, "feed").Skipped >= 3 })
	if err := b.Resume(t.Context(), "feed", "ops"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Trigger(t.Context(), "feed", "ops"); err != nil {
		t.Fatal(err)
	}
	pump(t, clock, time.Second, "the trigger is served", func() bool { return listed(t, a, "feed").ByHand == 1 })
	if s := a.Stats(); s.Faults > 0 {
		t.Errorf("%d faults", s.Faults)
	}
}

// TestRealClock runs a second's schedule on Redis's time.
func TestRealClock(t *testing.T) {
	rdb, q := freshRedis(t), newQueue()
	d, err := NewDispatcher(rdb, []Entry{{Name: "feed", Expression: "@every 1s", Overlap: OverlapAllow}}, q, WithLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, d)
	eventually(t, "three jobs", func() bool { return len(q.has("feed")) >= 3 })
	stop()
	if n := rdb.ZCard(context.Background(), liveKey).Val(); n != 0 {
		t.Errorf("%d dispatchers are left", n)
	}
	if s := d.Stats(); s.Missed > 0 || s.Lateness/s.Dispatched > 500 {
		t.Errorf("%+v", s)
	}
}

func TestFlushedScriptsAreSentAgain(t *testing.T) {
	rdb, clock, q := freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue()
	d := newDispatcher(t, rdb, clock, q, Entry{Name: "feed", Expression: "* * * * *"})
	start(t, d)
	for n := 1; n < 4; n++ {
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		pump(t, clock, time.Second, "a job", func() bool { return len(q.has("feed")) == n })
	}
}

package quota_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

func TestStateNamesSoManyOfEachClassAtMost(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]redis.UniversalClient{"redis": testredis.Client(t), "miniredis": onMiniredis(t).open(nil)} {
		t.Cleanup(func() { _ = rdb.Close() })
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &desk{t: t, ctx: context.Background(), rdb: rdb, name: testredis.Name("q"), hand: newHand()}
			d.configure(window(10, time.Hour))
			d.grant("a", 10)
			var line []quota.Request
			for i := range 501 { // read 500 at a time
				line = append(line, quota.Request{Quota: d.name, ID: fmt.Sprint("s", i), Cost: 1})
			}
			d.l.ChargeAll(d.ctx, line)
			d.hand.add(time.Minute)
			d.urgent("u0", 2)
			d.urgent("u1", 3)
			d.hand.add(time.Minute)
			for most, want := range map[int]int{-1: 0, 0: 0, 1: 2, 2: 4, 3: 5, 499: 501, 500: 502, 501: 503, 20_000: 503} {
				s, err := d.l.StateTo(d.ctx, d.name, most)
				if err != nil || len(s.Waiters) != want || s.LongestWait != 2*time.Minute || s.Scheduled.Waiting != 501 || s.Interactive.Units != 5 {
					t.Fatalf("%d of each: %d waiters, the longest waits %s, %v", most, len(s.Waiters), s.LongestWait, err)
				}
				for i, w := range s.Waiters {
					id, cost := fmt.Sprint("u", i), int64(i+2)
					if urgent := min(most, 2); i >= urgent {
						id, cost = fmt.Sprint("s", i-urgent), 1
					}
					if w.ID != id || w.Cost != cost || !w.Promised.After(s.Now) || (w.Priority == quota.Interactive) != (id[0] == 'u') {
						t.Fatalf("%d of each: waiter %d is %+v, want %s", most, i, w, id)
					}
				}
			}
		})
	}
}

package allocation_test

import (
	"fmt"
	"testing"
	"time"

	"feedwarden/allocation"

	"github.com/redis/go-redis/v9"
)

// TestLeasesOfAnOlderVersion: leases that were given one by one, with their number beside
// the endpoint, are seen, released and ended like those of now, and no count is lost.
func TestLeasesOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Policy: allocation.LeastBusy, Cap: 2, Lease: 10 * time.Second})
	ids := b.fill(2)
	k := "fw:{pool:" + b.pool + "}:"
	for i, id := range ids {
		for n := range 2 {
			b.must(b.rdb.ZAdd(t.Context(), k+"leases", redis.Z{
				Score:  float64(b.clock.read().Add(time.Duration(5+i) * time.Second).UnixMicro()),
				Member: fmt.Sprintf("token%d%d %s", i, n, id),
			}).Err())
		}
		b.must(b.rdb.HSet(t.Context(), k+"endpoints", "f:"+id, 2, "c:"+id, 2).Err())
		b.must(b.rdb.ZIncrBy(t.Context(), k+"busy", 2, id).Err())
		b.must(b.rdb.ZIncrBy(t.Context(), k+"ready", 2, id).Err())
	}
	flying := func(want ...int64) {
		t.Helper()
		for i, id := range ids {
			if e := b.endpoint(id); e.InFlight != want[i] {
				t.Errorf("%s has %d leases, want %d", id, e.InFlight, want[i])
			}
		}
		for i, e := range b.list() {
			if e.InFlight != want[i] {
				t.Errorf("%s is listed with %d leases, want %d", e.ID, e.InFlight, want[i])
			}
		}
	}
	flying(2, 2)
	if e := b.empty(allocation.TakeOptions{}); !e.Busy || e.RetryAfter != 5*time.Second {
		t.Errorf("got %+v, want busy for 5 s", e)
	}
	for range 2 { // the second time it is released already
		b.reportFull(allocation.Report{ID: ids[1], Lease: "token10", Outcome: allocation.OK})
		flying(2, 1)
	}
	a := b.take()
	if a.ID != ids[1] || a.Count != 3 {
		t.Errorf("took %s with count %d, want %s with 3", a.ID, a.Count, ids[1])
	}
	// It is out while one of its leases of each kind ends.
	b.must(b.pools.Quarantine(t.Context(), b.pool, ids[1], time.Hour))
	flying(2, 2)
	b.clock.move(6 * time.Second)
	if a := b.take(); a.ID != ids[0] || a.Count != 3 {
		t.Errorf("took %s with count %d, want %s with 3", a.ID, a.Count, ids[0])
	}
	flying(1, 1)
	b.reportFull(allocation.Report{ID: ids[1], Lease: a.Lease, Outcome: allocation.Cancelled})
	b.must(b.pools.Restore(t.Context(), b.pool, ids[1]))
	flying(1, 0)
	b.clock.move(10 * time.Second)
	b.take()
	if e := b.list(); e[0].InFlight+e[1].InFlight != 1 || e[0].Count+e[1].Count != 7 {
		t.Errorf("at the end they are %+v", e)
	}
}

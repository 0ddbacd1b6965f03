package quota_test

import (
	"fmt"
	"testing"
	"time"

	"feedwarden/quota"
)

// A full window of 10 000 units, all keys together. A log with a member for each unit takes 1.1 MB.
func TestMemoryOfAFullWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cost, most int64 }{{1, 3_000_000}, {10, 350_000}, {100, 40_000}} {
		d := open(t, window(10_000, time.Hour))
		batch := make([]quota.Request, 10_000/c.cost)
		for i := range batch {
			batch[i] = quota.Request{Quota: d.name, ID: fmt.Sprintf("trending-bd@2026-11-30T08:00:00Z/%d", i), Cost: c.cost}
		}
		for _, a := range d.l.ChargeAll(d.ctx, batch) {
			if a.Err != nil || !a.Granted {
				t.Fatal(a)
			}
		}
		var sum int64
		for _, key := range d.keys() {
			sum += d.rdb.MemoryUsage(d.ctx, key, 0).Val()
		}
		t.Logf("cost %d: %d bytes", c.cost, sum)
		if sum > c.most {
			t.Errorf("cost %d: %d bytes, want %d at most", c.cost, sum, c.most)
		}
	}
}

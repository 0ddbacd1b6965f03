package quota_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// cluster is a client of three nodes that share the slots, and one of each of
// them. stop ends the nodes.
func cluster(t *testing.T) (_ *redis.ClusterClient, nodes []*redis.Client, stop func()) {
	t.Helper()
	servers := testredis.Cluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: servers.Addrs()[:1], MaxRedirects: 2, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, s := range servers.Nodes {
		n := s.Client()
		t.Cleanup(func() { _ = n.Close() })
		nodes = append(nodes, n)
	}
	return rdb, nodes, func() {
		for _, s := range servers.Nodes {
			s.Kill()
		}
	}
}

func TestInACluster(t *testing.T) {
	t.Parallel()
	rdb, nodes, stop := cluster(t)
	ctx := context.Background()
	var all []quota.Config
	for i := range 6 {
		all = append(all, quota.Config{Name: fmt.Sprint("q", i), Windows: []quota.Window{{Limit: 10, Per: time.Hour}, {Limit: 30, Per: 2 * time.Hour}}})
	}
	h := newHand()
	l, err := quota.New(rdb, all, quota.WithClock(h.now))
	if err != nil {
		t.Fatal(err)
	}
	// Every script, every path through it: a key that was not declared, or one of another slot, is an error here.
	var batch []quota.Request
	for _, c := range all {
		for i := range 12 {
			batch = append(batch, quota.Request{Quota: c.Name, ID: fmt.Sprint("c", i), Cost: 1, Priority: quota.Priority(i % 2)})
		}
	}
	for i, a := range l.ChargeAll(ctx, batch) {
		if a.Err != nil || a.Granted != (i%12 < 10) {
			t.Fatalf("%d: %+v", i, a)
		}
	}
	for _, c := range all {
		if n, err := l.Refund(ctx, c.Name, "c3"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for _, err := range []error{l.Leave(ctx, c.Name, "c10"), l.Block(ctx, c.Name, time.Minute, "why"), l.Unblock(ctx, c.Name)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		d, err := l.Charge(ctx, quota.Request{Quota: c.Name, ID: "c11", Cost: 1, Priority: quota.Interactive})
		if err != nil || !d.Granted {
			t.Fatal(d, err)
		}
		if s, err := l.State(ctx, c.Name); err != nil || s.Windows[0].Used != 10 || s.Refunds != 1 {
			t.Fatal(s, err)
		}
	}
	// Each quota's keys are in one slot; the quotas are spread.
	slots := map[string]map[int64]int{}
	for _, n := range nodes {
		for _, key := range n.Keys(ctx, "*").Val() {
			name, _, _ := strings.Cut(key, "}")
			if slots[name] == nil {
				slots[name] = map[int64]int{}
			}
			slots[name][n.ClusterKeySlot(ctx, key).Val()]++
		}
	}
	used := map[int64]bool{}
	for name, s := range slots {
		if len(s) != 1 {
			t.Errorf("%s: slots %v", name, s)
		}
		for slot, n := range s {
			used[slot] = true
			if n < 3 {
				t.Errorf("%s: %d keys", name, n)
			}
		}
	}
	if len(slots) != 6 || len(used) < 3 {
		t.Errorf("%v", slots)
	}
	// Nobody serves the slots: an error, never a grant.
	stop()
	if d, err := l.Charge(ctx, quota.Request{Quota: "q0", ID: "x", Cost: 1}); err == nil || d.Granted {
		t.Errorf("%+v, %v", d, err)
	}
}

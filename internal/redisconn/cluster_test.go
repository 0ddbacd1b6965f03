package redisconn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := testredis.Cluster(t)
	for _, n := range nodes.Nodes {
		rdb := n.Client()
		defer rdb.Close()
		if err := rdb.ConfigSet(t.Context(), "requirepass", "hunter2").Err(); err != nil {
			t.Fatal(err)
		}
	}
	// The first host is dead: the second is enough.
	c := mustOpen(t, Config{URL: "redis+cluster://:hunter2@127.0.0.1:1," + nodes.Addrs()[1]})
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		set(t, c, key, key)
		wantValue(t, c, key, key)
	}
	if c.Mode() != "cluster" || strings.Contains(c.Where(), "hunter2") {
		t.Errorf("mode %q, where %q", c.Mode(), c.Where())
	}
	asynqs, ok := c.Asynq().MakeRedisClient().(*redis.ClusterClient)
	if !ok {
		t.Fatalf("asynq gets a %T", asynqs)
	}
	defer asynqs.Close()
	if got := asynqs.Get(t.Context(), "a").Val(); got != "a" {
		t.Errorf("asynq's client reads %q", got)
	}
	info, err := c.Info(t.Context())
	if err != nil || strings.Count(info.RunID, ",") != 2 || info.Role != "primary" {
		t.Errorf("info %+v, %v, want three run IDs", info, err)
	}
	clock, err := c.Clock(t.Context())
	if err != nil || clock.RoundTrip <= 0 || clock.Offset.Abs() > time.Second {
		t.Errorf("clock %+v, %v", clock, err)
	}
	clusterGuard(t, nodes)
	nodes.Nodes[2].Kill()
	eventually(t, 60*time.Second, "a Cluster with a hole is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		again, err := Open(ctx, Config{URL: "redis+cluster://:hunter2@" + nodes.Addrs()[0], LoadWait: time.Millisecond})
		if err == nil {
			again.Close()
		}
		return err != nil && !strings.Contains(err.Error(), "hunter2")
	})
}

// Whichever primary of a Cluster loses its data, nothing is written any more.
func clusterGuard(t *testing.T, nodes *testredis.ClusterNodes) {
	t.Helper()
	url := "redis+cluster://:hunter2@" + nodes.Addrs()[0]
	c := mustOpen(t, Config{URL: url, Guard: GuardAlways})
	looker := mustOpen(t, Config{URL: url, Guard: GuardNone})
	if id := c.Identity(); strings.Count(id.RunID, ",") != 2 || id.Role != "primary" {
		t.Errorf("identity %+v, want three run IDs", id)
	}
	for _, n := range nodes.Nodes {
		marked1(t, c)
		rdb := redis.NewClient(&redis.Options{Addr: n.Addr(), Password: "hunter2"})
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		rdb.Close()
		eventually(t, 30*time.Second, "writes are refused", func() bool { return errors.Is(c.Client().Set(context.Background(), "a", 1, 0).Err(), ErrBehind) })
		if had, err := looker.AcceptPrimary(t.Context()); err != nil || !had {
			t.Fatal(had, err)
		}
		wantWritten(t, c)
	}
}

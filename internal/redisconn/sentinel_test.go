package redisconn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
)

// What cannot be used is refused. After a failover every kind of call works again, and goes on working: no
// pooled connection is left to the old primary, neither when it lives on as a
// replica nor when it was killed.
func TestSentinel(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.SentinelOptions{Password: "hunter2", SentinelPassword: "watcher"})
	sentinelRefusals(t, set)
	url := "redis+sentinel://:hunter2@" + strings.Join(set.Addrs(), ",") + "/" + set.Name + "?sentinel_password=watcher"
	var log logged
	c := mustOpen(t, Config{URL: url, Logger: log.logger()})
	other, ok := c.NewClient().(*redis.Client)
	if !ok {
		t.Fatalf("client is a %T", other)
	}
	defer other.Close()
	if c.Mode() != "sentinel" || strings.Contains(c.Where(), "hunter2") {
		t.Errorf("mode %q, where %q", c.Mode(), c.Where())
	}
	clients := []redis.UniversalClient{c.Client(), other}
	for _, rdb := range clients {
		if err := writeAllWays(rdb); err != nil {
			t.Fatal(err)
		}
	}
	first, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := set.AskSentinel(set.Watch[0])
	defer ask.Close()

	if err := ask.Failover(t.Context(), set.Name).Err(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, w := range set.Watch {
			if text, _ := os.ReadFile(filepath.Join(w.Dir(), "redis.log")); t.Failed() {
				t.Logf("a Sentinel's log: %s", text)
			}
		}
	}()
	second := awaitOther(t, c, first.RunID)
	steady(t, clients)

	eventually(t, 30*time.Second, "the old primary is a replica in sync", func() bool {
		r, err := ask.Replicas(t.Context(), set.Name).Result()
		return err == nil && len(r) == 1 && r[0]["master-link-status"] == "ok" && r[0]["flags"] == "slave"
	})
	set.Replica.Kill() // which is the primary now
	awaitOther(t, c, second.RunID)
	steady(t, clients)
	if !log.has("sentinel: new master") {
		t.Error("the failover was not logged")
	}
}

// awaitOther writes until it succeeds on a primary with another run ID.
func awaitOther(t *testing.T, c *Conn, old string) (info Info) {
	t.Helper()
	eventually(t, 60*time.Second, "another primary takes writes", func() bool {
		if writeAllWays(c.Client()) != nil {
			return false
		}
		var err error
		info, err = c.Info(context.Background())
		return err == nil && info.RunID != old && info.Role == "primary"
	})
	return info
}

// steady wants every further call to succeed, on clients that were idle during the failover too.
func steady(t *testing.T, clients []redis.UniversalClient) {
	t.Helper()
	for range 50 {
		for _, rdb := range clients {
			if err := writeAllWays(rdb); err != nil {
				t.Fatalf("after the failover: %v", err)
			}
		}
	}
}

func writeAllWays(rdb redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	write := func(p redis.Pipeliner) error {
		p.Incr(ctx, "{k}:pipe")
		p.Incr(ctx, "{k}:pipe2")
		return nil
	}
	_, err1 := rdb.Pipelined(ctx, write)
	_, err2 := rdb.TxPipelined(ctx, write)
	return errors.Join(err1, err2, rdb.Incr(ctx, "{k}:plain").Err(),
		redis.NewScript(`return redis.call("INCR", KEYS[1])`).Run(ctx, rdb, []string{"{k}:script"}).Err())
}

func TestConnectionToAReplicaIsDropped(t *testing.T) {
	t.Parallel()
	primary := testredis.TCP(t)
	replica := testredis.TCP(t, "--replicaof", strings.Replace(primary.Addr(), ":", " ", 1))
	for addr, refused := range map[string]bool{primary.Addr(): false, replica.Addr(): true} {
		rdb := redis.NewClient(&redis.Options{Addr: addr, OnConnect: refuseReplica})
		if err := rdb.Ping(t.Context()).Err(); errors.Is(err, errReplica) != refused {
			t.Errorf("%v, want refused: %v", err, refused)
		}
		rdb.Close()
	}
}

func sentinelRefusals(t *testing.T, set *testredis.Sentinels) {
	t.Helper()
	at := strings.Join(set.Addrs(), ",")
	for name, tc := range map[string]struct{ url, says string }{
		"unknown primary":          {"redis+sentinel://:hunter2@" + at + "/other?sentinel_password=watcher", `no primary "other"`},
		"wrong password":           {"redis+sentinel://:hunter3@" + at + "/mymaster?sentinel_password=watcher", "refuses the user or password"},
		"no Sentinel password":     {"redis+sentinel://:hunter2@" + at + "/mymaster", "?sentinel_password="},
		"a Sentinel as the server": {"redis://:watcher@" + set.Watch[0].Addr(), "redis+sentinel://"},
	} {
		c, err := Open(t.Context(), Config{URL: tc.url})
		if err == nil {
			c.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "watcher") || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %q, want it to say %q", name, err, tc.says)
		}
	}
}

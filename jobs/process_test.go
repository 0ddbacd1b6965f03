package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

const (
	childSocket = "FW_TEST_SOCKET" // set in the environment of a child that is a worker
	childTarget = "FW_TEST_TARGET"
	childLease  = 1500 * time.Millisecond
)

func TestMain(m *testing.M) {
	if os.Getenv(childSocket) != "" {
		fmt.Fprintln(os.Stderr, workAsChild())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// polite is the config of both processes of the test.
func polite(target string) Config {
	return Config{
		Feeds: []Feed{{Name: "news", Source: source.Config{Kind: "syndication", URL: target + "/feed.xml"},
			Cost: 1, Attempts: 5, History: 10, TTL: time.Hour, MaxSnooze: 24 * time.Hour}},
		QueueLimits: map[string]int64{}, Concurrency: 8, Shutdown: 5 * time.Second, FetchTimeout: 30 * time.Second,
		PerHost: PerHost{Running: 2},
	}
}

// workAsChild is a worker's process, until it is killed.
func workAsChild() error {
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: os.Getenv(childSocket)})
	cfg := polite(os.Getenv(childTarget))
	if hook := os.Getenv(childHook); hook != "" {
		cfg = delivering(os.Getenv(childTarget), hook, os.Getenv(childDir))
	}
	if os.Getenv(childRush) != "" {
		if err := rushAsChild(rdb, cfg); err != nil {
			return err
		}
		os.Exit(0)
	}
	limiter, err := quota.New(rdb, nil)
	if err != nil {
		return err
	}
	pools, err := allocation.New(rdb, nil)
	if err != nil {
		return err
	}
	desk, log := luarun.NewDesk(rdb), slog.New(slog.DiscardHandler)
	h, err := NewHandler(cfg, rdb, desk, feed.New(rdb, desk), limiter, pools, fetch.New(fetch.Config{AllowPrivate: true, Timeout: 30 * time.Second}), log)
	if err != nil {
		return err
	}
	h.leaseLife = childLease
	if err := NewWorker(cfg, h, rdb, log).Start(context.Background()); err != nil {
		return err
	}
	select {}
}

func TestKilledWorkersLeasesAreFreeByTheirEndAndNothingIsStuck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg = polite(w.upstream.URL)
	arrived := make(chan struct{}, 9)
	w.upstream.on(func(n int, rw http.ResponseWriter, r *http.Request) bool {
		if n <= 2 {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
		return n <= 2
	})
	w.crowd("job", 2, func(int) string { return "news" })
	child := exec.Command(os.Args[0], "-test.run", "^$")
	child.Env = append(os.Environ(), childSocket+"="+w.redis.Socket(), childTarget+"="+w.upstream.URL)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	<-arrived
	<-arrived
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	killed := time.Now()

	w.crowd("later", 6, func(int) string { return "news" })
	h := w.handler()
	h.leaseLife = childLease
	w.start(NewWorker(w.cfg, h, w.rdb, w.log))
	w.ended(6, 10*time.Second)
	t.Logf("all run %s after the kill, leases last %s", time.Since(killed), childLease)
	w.idle(hostName(w.host()))
	if c, err := w.client.Counters(t.Context()); err != nil || c[string(Snoozed)] == 0 {
		t.Errorf("nobody waited for the dead worker's leases: %v %v", c, err)
	}
	if n := w.upstream.count(); n != 8 {
		t.Errorf("%d requests, want 8", n)
	}
}

package web

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
)

// TestOnMiniredis: all that is read can be read there too, since the embedded
// Redis of a machine without redis-server is one.
func TestOnMiniredis(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	log := slog.New(slog.DiscardHandler)
	limiter, err := quota.New(rdb, []quota.Config{{Name: "q", Windows: []quota.Window{{Limit: 10, Per: 1e9}}}})
	if err != nil {
		t.Fatal(err)
	}
	pools, err := allocation.New(rdb, []allocation.Config{{Name: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pools.Import(t.Context(), "p", strings.NewReader("proxy.example.org:3128\n"), nil); err != nil {
		t.Fatal(err)
	}
	store := feed.New(rdb, luarun.NewDesk(rdb))
	client, err := jobs.NewClient(jobs.Config{Feeds: testFeeds()}, rdb, store, limiter, log)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Listen: "127.0.0.1:0"}, Parts{
		Redis: rdb, Asynq: asynq.RedisClientOpt{Addr: mini.Addr()}, Jobs: client, Feeds: store, Quotas: limiter, Pools: pools, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	w := &world{TB: t, rdb: rdb, jobs: client, store: store, quotas: limiter, pools: pools, server: s}
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news"}`), 202)
	w.wantStatus(w.post("/v1/quotas/q/charge", `{"id":"a","cost":1}`), 200)
	for _, path := range []string{"/", "/readyz", "/v1/feeds", "/v1/jobs", "/v1/quotas", "/v1/pools/p", "/monitor/api/queues"} {
		w.wantStatus(w.get(path), 200)
	}
	wantParts(t, w.get("/metrics").Body.String(), "feedwarden_unread_parts 0", `feedwarden_queue_jobs{queue="interactive",state="pending"} 1`)
}

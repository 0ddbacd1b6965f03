package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

func TestMain(m *testing.M) {
	redis.SetLogger(&logging.VoidLogger{})
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("os/exec.(*Cmd).Wait"),
		goleak.IgnoreAnyFunction("feedwarden/internal/testredis.(*Server).start.func1"),
		// go-redis retires connections in the background for a moment after Close.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).Close"),
	)
}

// Secrets that stand in the fixture's config and must never come out.
const (
	apiKey        = "AIzaSECRETKEY0123456789"
	headerSecret  = "Bearer upstream-secret-4711"
	querySecret   = "query-secret-0815"
	proxyPassword = "proxypass-hunter2"
	readToken     = "read-token-0123456789"
	writeToken    = "write-token-0123456789"
	adminToken    = "admin-token-0123456789"
)

var allSecrets = []string{apiKey, "upstream-secret", querySecret, proxyPassword, readToken, writeToken, adminToken}

var threeTokens = []Token{{"reader", readToken, Read}, {"writer", writeToken, Write}, {"boss", adminToken, Admin}}

// world is a server with all that it asks, on a real Redis of its own.
type world struct {
	testing.TB
	redis     *testredis.Server
	rdb       *redis.Client
	jobs      *jobs.Client
	store     *feed.Store
	quotas    *quota.Limiter
	leases    *quota.Leases
	pools     *allocation.Pools
	schedules *fakeSchedules
	server    *Server
	logs      *syncBuffer
}

type setting func(*Config, *Parts, *pace)

func withTokens(c *Config, _ *Parts, _ *pace) { c.Tokens = threeTokens }

func newWorld(t testing.TB, settings ...setting) *world {
	t.Helper()
	w := &world{TB: t, redis: testredis.Own(t, "--save", "", "--appendonly", "no"), logs: &syncBuffer{}, schedules: newFakeSchedules()}
	// One try: what is tested is what follows when Redis is away.
	// A request's own time is what ends a command that gets no answer.
	w.rdb = redis.NewClient(&redis.Options{Network: "unix", Addr: w.redis.Socket(), MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Minute, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = w.rdb.Close() })
	log := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.quotas, err = quota.New(w.rdb, []quota.Config{
		{Name: "youtube", Windows: []quota.Window{{Limit: 10000, Per: 24 * time.Hour}, {Limit: 300, Per: time.Minute}}, Reserve: 20},
	})
	must(err)
	w.leases = quota.NewLeases(w.rdb)
	w.pools, err = allocation.New(w.rdb, []allocation.Config{{Name: "public"}})
	must(err)
	_, err = w.pools.Import(t.Context(), "public", strings.NewReader("http://user:"+proxyPassword+"@proxy-a.example.org:3128\nproxy-b.example.org:3128\nsocks5://proxy-c.example.org:1080\n"), nil)
	must(err)
	w.store = feed.New(w.rdb, luarun.NewDesk(w.rdb))
	w.jobs, err = jobs.NewClient(jobs.Config{Feeds: testFeeds(), QueueLimits: map[string]int64{"interactive": 50, "scheduled": 5}}, w.rdb, w.store, w.quotas, log)
	must(err)

	cfg := Config{Listen: "127.0.0.1:0", Version: "v1.2.3"}
	parts := Parts{
		Redis: w.rdb, Asynq: asynq.RedisClientOpt{Network: "unix", Addr: w.redis.Socket()}, Jobs: w.jobs, Feeds: w.store,
		Quotas: w.quotas, Leases: w.leases, Pools: w.pools, Schedules: w.schedules, Log: log,
	}
	pc := usualPace
	for _, set := range settings {
		set(&cfg, &parts, &pc)
	}
	w.server, err = newServer(cfg, parts, pc)
	must(err)
	w.server.events.life = 50 * time.Millisecond // tests that ask every route come by it
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := w.server.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return w
}

func testFeeds() []jobs.Feed {
	return []jobs.Feed{
		{
			Name: "trending-bd", Source: source.Config{Kind: "youtube", Method: "videos.list", Key: apiKey, Params: map[string]string{"chart": "mostPopular", "regionCode": "BD"}},
			Quota: "youtube", Cost: 100, Pool: "public", TTL: 20 * time.Minute, Schedule: "*/15 * * * *", Timezone: "Asia/Dhaka", History: 3,
		},
		{
			Name: "news", Source: source.Config{Kind: "syndication", URL: "https://example.org/feed.xml?key=" + querySecret, Headers: map[string]string{"Authorization": headerSecret}},
			TTL: 15 * time.Minute, Schedule: "@every 10m",
		},
		{Name: "by-hand", Source: source.Config{Kind: "syndication", URL: "https://example.org/other.xml"}},
	}
}

// put stores a version of a feed, fetched age ago.
func (w *world) put(name string, age time.Duration, raw [][]byte, items ...source.Item) feed.Stored {
	w.Helper()
	at := time.Now().Add(-age)
	for i := range items {
		items[i].Rank = i + 1
	}
	head, err := w.store.Head(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	defer w.server.copies.Doubt(name) // its message may still be on its way
	st, err := w.store.Put(w.Context(), head, at, at, feed.Content{Items: items, Raw: raw, ContentType: "application/json; charset=utf-8"}, 3)
	if err != nil {
		w.Fatal(err)
	}
	return st
}

// ended writes the record of a job that has ended, as a worker leaves it.
func (w *world) ended(id, name string, state jobs.State, lastError, result string) {
	w.Helper()
	now := time.Now().UnixMilli()
	ctx := w.Context()
	w.rdb.HSet(ctx, "fw:{job:"+id+"}:record", "feed", name, "queue", "scheduled", "state", string(state), "attempts", 1,
		"last_error", lastError, "result", result, "ended_ms", now)
	if err := w.rdb.ZAdd(ctx, "fw:{jobs}:ended", redis.Z{Score: float64(now), Member: name + "\x00" + id}).Err(); err != nil {
		w.Fatal(err)
	}
}

// snoozed enqueues a job and leaves its record as a refusal does.
func (w *world) snoozed(id, name, why string, until time.Time) {
	w.Helper()
	if _, err := w.jobs.Enqueue(w.Context(), jobs.Spec{Feed: name, ID: id, At: until, Priority: jobs.Background}); err != nil {
		w.Fatal(err)
	}
	if err := w.rdb.HSet(w.Context(), "fw:{job:"+id+"}:record", "feed", name, "queue", "scheduled", "state", "snoozed", "snoozes", 2,
		"last_error", why, "next_ms", until.UnixMilli()).Err(); err != nil {
		w.Fatal(err)
	}
}

// ask is one request: "GET /path", "Name: value" headers, and a body after "\n".
type ask struct {
	method, path string
	header       map[string]string
	body         string
}

func (w *world) do(a ask) *httptest.ResponseRecorder {
	w.Helper()
	var body io.Reader
	if a.body != "" {
		body = strings.NewReader(a.body)
	}
	r := httptest.NewRequest(a.method, "http://localhost:8080"+a.path, body)
	for k, v := range a.header {
		if k == "Host" {
			r.Host = v
		} else {
			r.Header.Set(k, v)
		}
	}
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, r)
	w.checkDocumented(a, rec.Code, rec.Header(), rec.Body.Bytes())
	return rec
}

func (w *world) get(path string, header ...string) *httptest.ResponseRecorder {
	w.Helper()
	return w.do(ask{method: "GET", path: path, header: pairs(header)})
}

func (w *world) post(path, body string, header ...string) *httptest.ResponseRecorder {
	w.Helper()
	h := pairs(header)
	if body != "" && h["Content-Type"] == "" {
		h["Content-Type"] = jsonType
	}
	return w.do(ask{method: "POST", path: path, header: h, body: body})
}

func pairs(kv []string) map[string]string {
	h := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		h[kv[i]] = kv[i+1]
	}
	return h
}

// wantProblem checks a problem document and gives it.
func (w *world) wantProblem(rec *httptest.ResponseRecorder, status int, code string) Problem {
	w.Helper()
	if rec.Code != status {
		w.Fatalf("status %d, want %d; body %s", rec.Code, status, rec.Body)
	}
	if got := rec.Header().Get("Content-Type"); got != problemType {
		w.Errorf("Content-Type %q, want %q", got, problemType)
	}
	p := decode[Problem](w, rec)
	if p.Status != status || p.Code != code || p.Title == "" || p.Detail == "" || p.Type != "about:blank" {
		w.Errorf("problem %+v, want status %d, code %q, a title and a detail", p, status, code)
	}
	return p
}

func decode[T any](w *world, rec *httptest.ResponseRecorder) T {
	w.Helper()
	var v T
	if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
		w.Fatalf("not the JSON that was wanted: %v in %s", err, rec.Body)
	}
	return v
}

func (w *world) wantStatus(rec *httptest.ResponseRecorder, status int) {
	w.Helper()
	if rec.Code != status {
		w.Fatalf("status %d, want %d; body %s", rec.Code, status, rec.Body)
	}
}

// start listens on a free port and gives the URL.
func (w *world) start() string {
	w.Helper()
	if err := w.server.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	return "http://" + w.server.Addr().String()
}

// until polls ok and fails with what when it stays false.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			w.Fatalf("not within 10 s: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func contentOf(kind, raw string) feed.Content {
	return feed.Content{Items: []source.Item{{ID: "x", Rank: 1}}, Raw: [][]byte{[]byte(raw)}, ContentType: kind}
}

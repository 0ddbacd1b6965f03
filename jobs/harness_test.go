package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

// upstream is a target that serves one RSS feed, and does to requests what a
// test wants.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	handle   func(n int, w http.ResponseWriter, r *http.Request) bool // true: answered
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.requests++
		n, handle := u.requests, u.handle
		u.mu.Unlock()
		if handle != nil && handle(n, w, r) {
			return
		}
		writeFeed(w, n)
	}))
	t.Cleanup(u.Close)
	return u
}

func writeFeed(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "application/rss+xml")
	fmt.Fprintf(w, `<?xml version="1.0"?><rss version="2.0"><channel><title>t</title><item><guid>item-%d</guid><title>Number %d</title><link>https://example.org/%d</link></item></channel></rss>`, n, n, n)
}

func (u *upstream) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests
}

func (u *upstream) on(f func(n int, w http.ResponseWriter, r *http.Request) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handle = f
}

// world is the parts of the road on a Redis of their own.
type world struct {
	t        *testing.T
	redis    *testredis.Server
	rdb      *redis.Client
	cfg      Config
	quotas   []quota.Config
	upstream *upstream
	limiter  *quota.Limiter
	pools    *allocation.Pools
	desk     *luarun.Desk
	store    *feed.Store
	client   *Client
	log      *slog.Logger
}

// option changes a world before it is built.
type option func(*world)

func withQuota(limit int64, per time.Duration) option {
	return func(w *world) {
		w.quotas = []quota.Config{{Name: "q", Windows: []quota.Window{{Limit: limit, Per: per}}}}
		for i := range w.cfg.Feeds {
			w.cfg.Feeds[i].Quota = "q"
		}
	}
}

func withFeed(change func(*Feed)) option {
	return func(w *world) {
		for i := range w.cfg.Feeds {
			change(&w.cfg.Feeds[i])
		}
	}
}

func withConfig(change func(*Config)) option { return func(w *world) { change(&w.cfg) } }

func newWorld(t *testing.T, opts ...option) *world {
	t.Helper()
	w := &world{t: t, redis: testredis.Own(t, "--save", "", "--appendonly", "no"), upstream: newUpstream(t)}
	w.rdb = w.redis.Client()
	t.Cleanup(func() { _ = w.rdb.Close() })
	w.log = slog.New(slog.DiscardHandler)
	if os.Getenv("FW_TEST_LOG") != "" {
		w.log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	w.cfg = Config{
		Feeds: []Feed{{Name: "news", Source: source.Config{Kind: "syndication", URL: w.upstream.URL + "/feed.xml"},
			Cost: 1, Attempts: 5, History: 10, TTL: time.Hour, MaxSnooze: 24 * time.Hour}},
		QueueLimits: map[string]int64{QueueInteractive: 1000, QueueScheduled: 1000},
		Concurrency: 8, InteractiveSlots: 2, Shutdown: 5 * time.Second, FetchTimeout: 10 * time.Second,
	}
	for _, o := range opts {
		o(w)
	}
	var err error
	if w.limiter, err = quota.New(w.rdb, w.quotas); err != nil {
		t.Fatal(err)
	}
	if w.pools, err = allocation.New(w.rdb, []allocation.Config{{Name: "proxies", AllowPrivate: true}}); err != nil {
		t.Fatal(err)
	}
	w.desk = luarun.NewDesk(w.rdb)
	w.store = feed.New(w.rdb, w.desk)
	if w.client, err = NewClient(w.cfg, w.rdb, w.store, w.limiter, w.log); err != nil {
		t.Fatal(err)
	}
	return w
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// handler makes a handler with parts of its own, as one more process would.
func (w *world) handler() *Handler {
	w.t.Helper()
	f := fetch.New(fetch.Config{AllowPrivate: true, Timeout: 10 * time.Second})
	w.t.Cleanup(f.Close)
	h, err := NewHandler(w.cfg, w.rdb, w.desk, w.store, w.limiter, w.pools, f, w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// work starts a worker that ends with the test.
func (w *world) work() *Worker {
	w.t.Helper()
	return w.start(NewWorker(w.cfg, w.handler(), w.rdb, w.log))
}

// start starts a worker that ends with the test.
func (w *world) start(worker *Worker) *Worker {
	w.t.Helper()
	if err := worker.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := worker.Stop(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	return worker
}

func (w *world) enqueue(s Spec) Job {
	w.t.Helper()
	if s.Feed == "" {
		s.Feed = "news"
	}
	j, err := w.client.Enqueue(w.t.Context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// foreign enqueues as a plain asynq client would.
func (w *world) foreign(id string, opts ...asynq.Option) {
	w.t.Helper()
	c := asynq.NewClientFromRedisClient(w.rdb)
	opts = append(opts, asynq.TaskID(id), asynq.Queue(QueueScheduled))
	if _, err := c.Enqueue(asynq.NewTask(TaskType, []byte(`{"feed":"news"}`)), opts...); err != nil {
		w.t.Fatal(err)
	}
}

// fill uses up the quota.
func (w *world) fill(cost int64) {
	w.t.Helper()
	d, err := w.limiter.Charge(w.t.Context(), quota.Request{Quota: "q", ID: "filler", Cost: cost})
	if err != nil || !d.Granted {
		w.t.Fatalf("fill: %+v %v", d, err)
	}
}

func (w *world) get(id string) Job {
	w.t.Helper()
	j, err := w.client.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// until polls a job until it is in the state, and answers it.
func (w *world) until(id string, want State) Job {
	w.t.Helper()
	var j Job
	w.eventually(30*time.Second, func() string {
		var err error
		j, err = w.client.Get(w.t.Context(), id)
		if err != nil {
			return err.Error()
		}
		if j.State != want {
			return fmt.Sprintf("job %s is %s (%s), want %s", id, j.State, j.LastError, want)
		}
		return ""
	})
	return j
}

// eventually polls until f answers "", its complaint otherwise.
func (w *world) eventually(limit time.Duration, f func() string) {
	w.t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		why := f()
		if why == "" {
			return
		}
		select {
		case <-deadline.C:
			w.t.Fatalf("not within %s: %s", limit, why)
		case <-tick.C:
		}
	}
}

// charged is how many units of the quota are used, the filler's aside.
func (w *world) charged(filler int64) int64 {
	w.t.Helper()
	s, err := w.limiter.State(w.t.Context(), "q")
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Windows[0].Used - filler
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

const feedsOfBench = 50

// benchJobs measures whole jobs, from a full queue to the last one's end,
// beside asynq handlers that do nothing but the same fetch.
func benchJobs(ctx context.Context, srv *server, rounds, n int) (report, error) {
	body := []byte(`{"version":"https://jsonfeed.org/version/1.1","title":"b","items":[{"id":"1","url":"https://example.org/1","title":"one","content_text":"x"}]}`)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/feed+json")
		_, _ = w.Write(body)
	}))
	defer target.Close()
	// A proxy that keeps its connections to the target: what is measured is not its dialling.
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL = r.In.URL },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	})
	defer proxy.Close()
	proxyURL, err := url.Parse(proxy.URL)
	if err != nil {
		return report{}, err
	}

	b := &jobBench{ctx: ctx, srv: srv, n: n, target: target.URL, proxy: proxyURL}
	return measure(fmt.Sprintf("Whole jobs: %d a round, concurrency 32", n), "jobs/s", rounds, []string{"bare asynq", "bare asynq, proxy"},
		subject{name: "bare asynq", run: func(int) (float64, error) { return b.bare(nil) }},
		subject{name: "whole job, direct", aim: "0.9 of bare asynq", run: func(int) (float64, error) { return b.whole(jobs.Direct) }},
		subject{name: "bare asynq, proxy", run: func(int) (float64, error) { return b.bare(b.proxy) }},
		subject{name: "whole job, proxy", aim: "0.9 of bare asynq, proxy", run: func(int) (float64, error) { return b.whole("pool") }},
	)
}

type jobBench struct {
	ctx    context.Context //nolint:containedctx // the benchmark's own, for its rounds
	srv    *server
	n      int
	target string
	proxy  *url.URL
}

// fill empties Redis and fills the queue.
func (b *jobBench) fill(rdb *redis.Client) error {
	if err := rdb.FlushAll(b.ctx).Err(); err != nil {
		return err
	}
	c := asynq.NewClientFromRedisClient(rdb)
	for i := range b.n {
		t := asynq.NewTask(jobs.TaskType, fmt.Appendf(nil, `{"feed":"feed-%d"}`, i%feedsOfBench))
		if _, err := c.EnqueueContext(b.ctx, t, asynq.Queue(jobs.QueueScheduled), asynq.Retention(time.Hour)); err != nil {
			return err
		}
	}
	return nil
}

// drained waits until n jobs have been counted.
func (b *jobBench) drained(done *atomic.Int64) error {
	deadline := time.Now().Add(5 * time.Minute)
	for done.Load() < int64(b.n) {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d jobs after five minutes", done.Load(), b.n)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// bare is asynq with a handler that fetches, and nothing else.
func (b *jobBench) bare(proxy *url.URL) (float64, error) {
	rdb := b.srv.client()
	defer rdb.Close()
	if err := b.fill(rdb); err != nil {
		return 0, err
	}
	tr := &http.Transport{MaxIdleConnsPerHost: 64, Proxy: func(*http.Request) (*url.URL, error) { return proxy, nil }}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	var done atomic.Int64
	handler := asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.target, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		done.Add(1)
		return nil
	})
	s := asynq.NewServerFromRedisClient(rdb, asynq.Config{Concurrency: 32, Queues: map[string]int{jobs.QueueScheduled: 1}, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second})
	begun := time.Now()
	if err := s.Start(handler); err != nil {
		return 0, err
	}
	defer s.Shutdown()
	if err := b.drained(&done); err != nil {
		return 0, err
	}
	return float64(b.n) / time.Since(begun).Seconds(), nil
}

// whole is the product's worker on the same queue.
func (b *jobBench) whole(pool string) (float64, error) {
	rdb := b.srv.client()
	defer rdb.Close()
	if err := b.fill(rdb); err != nil {
		return 0, err
	}
	log := slog.New(slog.DiscardHandler)
	cfg := jobs.Config{QueueLimits: map[string]int64{}, Concurrency: 32, Shutdown: 5 * time.Second, FetchTimeout: 10 * time.Second}
	for i := range feedsOfBench {
		cfg.Feeds = append(cfg.Feeds, jobs.Feed{
			Name: fmt.Sprintf("feed-%d", i), Source: source.Config{Kind: "syndication", URL: b.target},
			Quota: "q", Cost: 1, Pool: pool, Attempts: 3, History: 10, TTL: time.Hour,
		})
	}
	limiter, err := quota.New(rdb, []quota.Config{{Name: "q", Windows: []quota.Window{{Limit: 1e9, Per: time.Minute}}}})
	if err != nil {
		return 0, err
	}
	pools, err := allocation.New(rdb, []allocation.Config{{Name: "pool", AllowPrivate: true}})
	if err != nil {
		return 0, err
	}
	if _, err := pools.Import(b.ctx, "pool", strings.NewReader(b.proxy.String()), nil); err != nil {
		return 0, err
	}
	f := fetch.New(fetch.Config{AllowPrivate: true})
	defer f.Close()
	desk := luarun.NewDesk(rdb)
	h, err := jobs.NewHandler(cfg, rdb, desk, feed.New(rdb, desk), limiter, pools, f, log)
	if err != nil {
		return 0, err
	}
	var done atomic.Int64
	w := jobs.NewWorker(cfg, h, rdb, log)
	if path := os.Getenv("BENCH_PROFILE"); path != "" && pool == jobs.Direct {
		if out, err := os.Create(path); err == nil && pprof.StartCPUProfile(out) == nil {
			defer pprof.StopCPUProfile()
		}
	}
	begun := time.Now()
	if err := w.Start(b.ctx); err != nil {
		return 0, err
	}
	defer func() { _ = w.Stop(context.WithoutCancel(b.ctx)) }()
	go func() {
		for b.ctx.Err() == nil && done.Load() < int64(b.n) {
			if n, err := rdb.HGet(b.ctx, "fw:{jobs}:counters", string(jobs.Done)).Int64(); err == nil {
				done.Store(n)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	if err := b.drained(&done); err != nil {
		return 0, err
	}
	return float64(b.n) / time.Since(begun).Seconds(), nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
	"feedwarden/quota"
	"feedwarden/web"
)

const (
	readClients = 32
	readItems   = 50
	turns       = 5      // of a round: the shorter, the less a machine's drift weighs
	seedReads   = 7_000  // requests a second that are to be beaten, through a service
	seedStore   = 12_000 // write+read a second that are to be beaten, to a store
)

// benchReading measures hits of GET /v1/feeds/{name}: beside a bare net/http
// handler that writes the same bytes, and beside the same through Redis.
func benchReading(ctx context.Context, srv *server, rounds int, span time.Duration) (report, error) {
	rdb := srv.client()
	defer rdb.Close()
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return report{}, err
	}
	log := slog.New(slog.DiscardHandler)
	store := feed.New(rdb, luarun.NewDesk(rdb))
	limiter, err := quota.New(rdb, nil)
	if err != nil {
		return report{}, err
	}
	pools, err := allocation.New(rdb, nil)
	if err != nil {
		return report{}, err
	}
	feeds := []jobs.Feed{{Name: "news", Source: source.Config{Kind: "push"}, TTL: time.Hour, History: 10}}
	client, err := jobs.NewClient(jobs.Config{Feeds: feeds}, rdb, store, limiter, log)
	if err != nil {
		return report{}, err
	}
	if err := storeItems(ctx, store, "news", 0); err != nil {
		return report{}, err
	}
	s, err := web.New(web.Config{Listen: "127.0.0.1:0"}, web.Parts{
		Redis: rdb, Asynq: asynq.RedisClientOpt{Network: "unix", Addr: srv.sock}, Jobs: client, Feeds: store, Quotas: limiter, Pools: pools, Log: log,
	})
	if err != nil {
		return report{}, err
	}
	if err := s.Start(ctx); err != nil {
		return report{}, err
	}
	defer func() { _ = s.Stop(context.WithoutCancel(ctx)) }()
	hit := "http://" + s.Addr().String() + "/v1/feeds/news"
	body, err := fetchOnce(ctx, hit)
	if err != nil {
		return report{}, err
	}

	bare, err := serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	if err != nil {
		return report{}, err
	}
	defer bare.Close()
	through, err := serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := store.Get(r.Context(), "news", 0)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(v.Raw)
	}))
	if err != nil {
		return report{}, err
	}
	defer through.Close()

	stop, err := profileTo(os.Getenv("FW_BENCH_PROFILE_READS"))
	if err != nil {
		return report{}, err
	}
	defer stop()
	n := atomic.Int64{}
	span /= turns
	return measure(fmt.Sprintf("Reads: %d connections, %d items, %d bytes (to be beaten: %d req/s through a service, %d write+read/s to a store)",
		readClients, readItems, len(body), seedReads, seedStore), "req/s", rounds*turns, []string{"bare net/http"},
		subject{name: "bare net/http", run: func(int) (float64, error) { return load(ctx, "http://"+bare.Addr, span) }},
		subject{name: "hit", aim: "0.7 of bare net/http", run: func(int) (float64, error) { return load(ctx, hit, span) }},
		subject{name: "through Redis, no copy", run: func(int) (float64, error) { return load(ctx, "http://"+through.Addr, span) }},
		subject{name: "store: write+read", run: func(int) (float64, error) {
			return parallel(ctx, readClients, span, func(worker int) error {
				key := fmt.Sprint("bench-", worker)
				if err := storeItems(ctx, store, key, n.Add(1)); err != nil {
					return err
				}
				_, err := store.Get(ctx, key, 0)
				return err
			})
		}},
	)
}

// storeItems stores a version of a feed that differs from the last.
func storeItems(ctx context.Context, store *feed.Store, key string, n int64) error {
	items := make([]source.Item, readItems)
	if n > 0 {
		items = items[:1] // a small one: what is measured is the store, not the encoding of many items
	}
	var raw strings.Builder
	for i := range items {
		items[i] = source.Item{ID: strconv.Itoa(i), URL: "https://example.org/" + strconv.Itoa(i), Title: fmt.Sprintf("The title of item %d of version %d", i, n), Rank: i + 1}
		fmt.Fprintf(&raw, `{"id":"%d","url":"https://example.org/%d","title":"The title of item %d of version %d"}`, i, i, i, n)
	}
	head, now := feed.Head{Key: key}, time.Now()
	if n > 0 {
		var err error
		if head, err = store.Head(ctx, key); err != nil {
			return err
		}
	}
	_, err := store.Put(ctx, head, now, now, feed.Content{Items: items, Raw: [][]byte{[]byte(raw.String())}}, 10)
	return err
}

func serve(ctx context.Context, h http.Handler) (*http.Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &http.Server{Addr: l.Addr().String(), Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	return s, nil
}

func fetchOnce(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, resp.StatusCode, body)
	}
	return body, err
}

// parallel runs do in many goroutines for a span, and answers how often a second.
func parallel(ctx context.Context, workers int, span time.Duration, do func(worker int) error) (float64, error) {
	ctx, stop := context.WithTimeout(ctx, span)
	defer stop()
	var done atomic.Int64
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := do(w); err != nil {
					once.Do(func() { first = err })
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begun).Seconds(), first
}

func profileTo(path string) (func(), error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

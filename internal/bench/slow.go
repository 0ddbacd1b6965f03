package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
	"feedwarden/quota"
	"feedwarden/web"
)

// A read mix as that of people: a few feeds are read much, most of them seldom.
const (
	slowFeeds   = 20
	slowReaders = 25
	slowReads   = 80 // of each reader
	slowPause   = 50 * time.Millisecond
	slowTakes   = 200 * time.Millisecond // the upstream
	slowTTL     = 2 * time.Second
)

// slowRun is what readers met.
type slowRun struct {
	median, p99 time.Duration
	upstream    int64
}

// slowReport compares readers of a slow upstream with readers of its feeds.
type slowReport struct{ without, with slowRun }

func benchSlow(ctx context.Context, srv *server) (*slowReport, error) {
	var requests atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		time.Sleep(slowTakes)
		w.Header().Set("Content-Type", "application/feed+json")
		fmt.Fprintf(w, `{"version":"https://jsonfeed.org/version/1.1","title":"b","items":[{"id":"%d","url":"https://example.org/1","title":"one","content_text":"x"}]}`, n)
	}))
	defer upstream.Close()
	base, stop, err := slowService(ctx, srv, upstream.URL)
	if err != nil {
		return nil, err
	}
	defer stop()
	r := &slowReport{}
	for _, side := range []struct {
		run *slowRun
		url func(feed int) string
	}{
		{&r.without, func(n int) string { return fmt.Sprintf("%s/%d", upstream.URL, n) }},
		{&r.with, func(n int) string { return fmt.Sprintf("%s/v1/feeds/feed-%d?wait=30s", base, n) }},
	} {
		requests.Store(0)
		times, err := slowReading(ctx, side.url)
		if err != nil {
			return nil, err
		}
		slices.Sort(times)
		*side.run = slowRun{median: times[len(times)/2], p99: times[len(times)*99/100], upstream: requests.Load()}
	}
	return r, nil
}

// slowReading lets every reader read, and answers how long each read took.
func slowReading(ctx context.Context, url func(int) string) ([]time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: slowReaders}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var times []time.Duration
	var failed error
	var wg sync.WaitGroup
	for i := range slowReaders {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i))) //nolint:gosec // the same mix for both sides
			mix := rand.NewZipf(random, 1.2, 1, slowFeeds-1)
			for range slowReads {
				begun := time.Now()
				err := readOnce(ctx, client, url(int(mix.Uint64()))) //nolint:gosec // below slowFeeds
				took := time.Since(begun)
				mu.Lock()
				times = append(times, took)
				if err != nil {
					failed = err
				}
				mu.Unlock()
				time.Sleep(time.Duration(random.Int64N(int64(2 * slowPause))))
			}
		})
	}
	wg.Wait()
	return times, failed
}

func readOnce(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return nil
}

// slowService is a worker and a web server over the upstream.
func slowService(ctx context.Context, srv *server, upstream string) (base string, stop func(), err error) {
	rdb := srv.client()
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return "", nil, err
	}
	log := slog.New(slog.DiscardHandler)
	cfg := jobs.Config{Concurrency: 16, Shutdown: 5 * time.Second, FetchTimeout: 10 * time.Second}
	for i := range slowFeeds {
		cfg.Feeds = append(cfg.Feeds, jobs.Feed{Name: fmt.Sprint("feed-", i), Source: source.Config{Kind: "syndication", URL: fmt.Sprintf("%s/%d", upstream, i)}, TTL: slowTTL, History: 10, Attempts: 3})
	}
	desk := luarun.NewDesk(rdb)
	store := feed.New(rdb, desk)
	limiter, err := quota.New(rdb, nil)
	if err != nil {
		return "", nil, err
	}
	pools, err := allocation.New(rdb, nil)
	if err != nil {
		return "", nil, err
	}
	client, err := jobs.NewClient(cfg, rdb, store, limiter, log)
	if err != nil {
		return "", nil, err
	}
	fetcher := fetch.New(fetch.Config{AllowPrivate: true, Timeout: 10 * time.Second})
	h, err := jobs.NewHandler(cfg, rdb, desk, store, limiter, pools, fetcher, log)
	if err != nil {
		return "", nil, err
	}
	worker := jobs.NewWorker(cfg, h, rdb, log)
	if err := worker.Start(ctx); err != nil {
		return "", nil, err
	}
	s, err := web.New(web.Config{Listen: "127.0.0.1:0"}, web.Parts{
		Redis: rdb, Asynq: asynq.RedisClientOpt{Network: "unix", Addr: srv.sock}, Jobs: client, Feeds: store, Quotas: limiter, Pools: pools, Log: log,
	})
	if err != nil {
		return "", nil, err
	}
	if err := s.Start(ctx); err != nil {
		return "", nil, err
	}
	return "http://" + s.Addr().String(), func() {
		ctx := context.WithoutCancel(ctx)
		_ = s.Stop(ctx)
		_ = worker.Stop(ctx)
		fetcher.Close()
		_ = rdb.Close()
	}, nil
}

func (r *slowReport) print() {
	fmt.Printf("\nReaders of a slow upstream (%s): %d readers, %d reads each, %d feeds read as people do (Zipf), ttl %s\n", slowTakes, slowReaders, slowReads, slowFeeds, slowTTL)
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Join([]string{"", "without", "with", "ratio", "aim", ""}, "\t"))
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	fmt.Fprintf(w, "median\t%s\t%s\t%.0f × less\t10 × less\t\n", ms(r.without.median), ms(r.with.median), float64(r.without.median)/float64(r.with.median))
	fmt.Fprintf(w, "99%%\t%s\t%s\t%.1f × less\t\t\n", ms(r.without.p99), ms(r.with.p99), float64(r.without.p99)/float64(r.with.p99))
	fmt.Fprintf(w, "upstream requests\t%d\t%d\t%.1f × fewer\t4 × fewer\t\n", r.without.upstream, r.with.upstream, float64(r.without.upstream)/float64(r.with.upstream))
	_ = w.Flush()
}

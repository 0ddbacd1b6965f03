package web

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/jobs"
	"feedwarden/jobs/source"
)

// counting counts what is asked of Redis: commands, and round trips.
type counting struct{ commands, trips atomic.Int64 }

func (c *counting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.commands.Add(1)
		c.trips.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.commands.Add(int64(len(cmds)))
		c.trips.Add(1)
		return next(ctx, cmds)
	}
}

// TestAThousandFeedsAndTenThousandEndpointsArePaged: what a page weighs and costs
// is a page's, whatever there is behind it.
func TestAThousandFeedsAndTenThousandEndpointsArePaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var feeds []jobs.Feed
	var ticks []ScheduleView
	next := time.Now().Add(time.Minute)
	for i := range 1000 {
		name := fmt.Sprintf("feed-%04d", i)
		feeds = append(feeds, jobs.Feed{Name: name, Quota: "youtube", Cost: 1, Schedule: "*/15 * * * *", TTL: time.Hour, Source: source.Config{Kind: "syndication", URL: "https://example.org/x"}})
		ticks = append(ticks, ScheduleView{Name: name, Feed: name, Expression: "*/15 * * * *", State: "active", NextAt: &next})
	}
	var err error
	if w.server.p.Jobs, err = jobs.NewClient(jobs.Config{Feeds: feeds}, w.rdb, w.store, w.quotas, w.server.log); err != nil {
		t.Fatal(err)
	}
	w.schedules.views = ticks
	var list strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&list, "http://10-%05d.example.org:3128\n", i)
	}
	if _, err := w.pools.Import(t.Context(), "public", strings.NewReader(list.String()), nil); err != nil {
		t.Fatal(err)
	}
	count := &counting{}
	w.rdb.AddHook(count)
	for _, c := range []struct {
		path        string
		bytes       int
		trips       int64
		shows, next string
	}{
		{"/", 200 << 10, 60, "All 1\u202f000 feeds", "/feeds"},
		{"/feeds", 120 << 10, 60, "1 to 50 of 1\u202f000", "?page=2"},
		{"/feeds?page=20", 120 << 10, 60, "951 to 1\u202f000 of 1\u202f000", "?page=19"},
		{"/feeds?q=feed-09&page=2", 120 << 10, 60, "51 to 100 of 100", "?page=1&amp;q=feed-09"},
		{"/schedules?page=99", 120 << 10, 60, "951 to 1\u202f000 of 1\u202f000", "?page=19"},
		{"/pools", 20 << 10, 60, "10\u202f003", "/pools/public"},
		{"/pools/public", 120 << 10, 150, "50 of 10\u202f003", "?after="},
		{"/pools/public?after=http%3A%2F%2F10-05000.example.org%3A3128", 120 << 10, 30, "10-05001", "To the first"},
		{"/pools/public?state=quarantined", 40 << 10, 150, "None is quarantined", "Show all"},
		{"/quotas/youtube", 60 << 10, 30, "youtube", "Nobody waits"},
	} {
		count.trips.Store(0)
		rec := w.page(c.path)
		w.wantStatus(rec, 200)
		body := rec.Body.String()
		wantParts(t, body, c.shows, c.next)
		trips := count.trips.Load()
		t.Logf("%-60s %6d bytes, %3d round trips", c.path, len(body), trips)
		if len(body) > c.bytes {
			t.Errorf("%s: %d bytes, want at most %d", c.path, len(body), c.bytes)
		}
		if trips > c.trips {
			t.Errorf("%s: %d round trips to Redis, want at most %d", c.path, trips, c.trips)
		}
		wantTidy(t, body)
	}
	for _, path := range []string{"/feeds?page=x", "/feeds?state=none", "/pools/public?state=x", "/audit?before=x", "/schedules?state=x", "/jobs?state=x"} {
		if rec := w.page(path); rec.Code != 400 {
			t.Errorf("%s: status %d, want 400", path, rec.Code)
		}
	}
}

package sink

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

var fetched = time.Date(2026, 3, 31, 23, 30, 0, 0, time.FixedZone("west", -3600))

// version is one of n items, each with a text of size bytes.
func version(number int64, n, size int) feed.Version {
	v := feed.Version{Meta: feed.Meta{Version: number, FetchedAt: fetched}}
	pad := make([]byte, size)
	for i := range pad {
		pad[i] = 'a' + byte(i*7+int(number))%26
	}
	for i := range n {
		v.Items = append(v.Items, source.Item{
			ID: fmt.Sprintf("item-%d-%d", number, i), Title: "<b> & \"quoted\"", Rank: i + 1, FirstSeen: fetched,
			Fields: map[string]any{"views": 12345678901.0, "text": string(pad)},
		})
	}
	return v
}

func delivery(name string, v feed.Version) Delivery { return Delivery{Feed: name, Version: v} }

func outlet(t *testing.T, rdb redis.UniversalClient) *Outlet {
	t.Helper()
	return guarded(t, rdb, fetch.Config{AllowPrivate: true})
}

func guarded(t *testing.T, rdb redis.UniversalClient, cfg fetch.Config) *Outlet {
	t.Helper()
	c := fetch.New(cfg)
	t.Cleanup(c.Close)
	return NewOutlet(rdb, c.Direct(), os.Stdout)
}

func deliver(t *testing.T, o *Outlet, c Config, d Delivery) {
	t.Helper()
	if err := o.Deliver(context.Background(), c, d); err != nil {
		t.Fatal(err)
	}
}

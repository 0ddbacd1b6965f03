package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEachBucketOfAPresetIsAQuotaOfItsOwn(t *testing.T) {
	f := mustParse(t, `
quotas:
  daily: {preset: youtube-2026-06, reserve: 500, grace: 1m}
  own: {preset: youtube-2026-06, windows: [{limit: 7, per: 1h}], reserve: 5}
  old: {preset: youtube-legacy}
`)
	var got []string
	for _, q := range f.Quotas {
		text := fmt.Sprintf("%s keeps %d for %s", q.Name, q.Reserve, q.Grace)
		for _, w := range q.Windows {
			text += ", " + w.String()
			if w.Calendar != "" && w.Location.String() != "America/Los_Angeles" {
				t.Errorf("%s: its day ends in %s", q.Name, w.Location)
			}
		}
		got = append(got, text)
	}
	want := []string{
		"daily keeps 500 for 1m0s, 10000 per 24h, 10000 per day",
		"daily:search.list keeps 0 for 1m0s, 100 per 24h, 100 per day",
		"daily:videos.batchGetStats keeps 500 for 1m0s, 10000 per 24h, 10000 per day",
		"daily:videos.insert keeps 0 for 1m0s, 100 per 24h, 100 per day",
		"old keeps 0 for 30s, 10000 per 24h, 10000 per day",
		"own keeps 5 for 30s, 7 per 1h",
		"own:search.list keeps 5 for 30s, 100 per 24h, 100 per day",
		"own:videos.batchGetStats keeps 5 for 30s, 10000 per 24h, 10000 per day",
		"own:videos.insert keeps 5 for 30s, 100 per 24h, 100 per day",
	}
	if !slices.Equal(got, want) {
		t.Errorf("quotas are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAMethodIsChargedToItsOwnBucket(t *testing.T) {
	for _, c := range []struct {
		preset, feed, quota string
		cost                int64
	}{
		{"preset: youtube-2026-06", "source: youtube, key: k, method: search.list, params: {q: x}", "q:search.list", 1},
		{"preset: youtube-2026-06", "source: youtube, key: k, method: search.list, params: {q: x}, cost: 3", "q:search.list", 3},
		{"preset: youtube-2026-06", "source: youtube, key: k, method: videos.list, params: {chart: mostPopular}", "q", 1},
		{"preset: youtube-legacy", "source: youtube, key: k, method: search.list, params: {q: x}", "q", 100},
		{"windows: [{limit: 10, per: 1h}]", "source: youtube, key: k, method: search.list, params: {q: x}", "q", 1},
		{"preset: youtube-2026-06", "source: syndication, url: \"https://example.org/\"", "q", 1},
	} {
		f := mustParse(t, "quotas: {q: {"+c.preset+"}}\nfeeds: {a: {quota: q, "+c.feed+"}}")
		if a := f.Feeds[0]; a.Quota != c.quota || a.Cost != c.cost {
			t.Errorf("%s, %s: %d of %s, want %d of %s", c.preset, c.feed, a.Cost, a.Quota, c.cost, c.quota)
		}
	}
	// A script's own search may be charged there as well.
	f := mustParse(t, "quotas: {q: {preset: youtube-2026-06}}\nfeeds: {a: {quota: \"q:search.list\", source: syndication, url: \"https://example.org/\"}}")
	if f.Feeds[0].Quota != "q:search.list" || f.Quotas[1].Windows[0].Per != 24*time.Hour {
		t.Errorf("%+v", f.Feeds[0])
	}
}

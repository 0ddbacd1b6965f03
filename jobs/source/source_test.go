package source

import (
	"slices"
	"strings"
	"testing"
)

func TestKinds(t *testing.T) {
	if got := Kinds(); !slices.Equal(got, []string{"html", "json", "push", "syndication", "youtube"}) {
		t.Errorf("%v", got)
	}
}

// Every fault of a config is named at once, in words a person can act on.
func TestConfigFaults(t *testing.T) {
	chart := map[string]string{"chart": "mostPopular"}
	for name, tt := range map[string]struct {
		c    Config
		want []string
	}{
		"kind":          {Config{Kind: "rss"}, []string{`kind "rss" is not known; it is one of html, json, push, syndication, youtube`}},
		"nothing":       {Config{Kind: "youtube"}, []string{`method "" is not known`, "channels.list, playlistItems.list, search.list, videos.list", "key is missing"}},
		"key":           {Config{Kind: "youtube", Method: "videos.list", Params: chart, Key: "a b"}, []string{"key holds a blank"}},
		"key in params": {Config{Kind: "youtube", Method: "videos.list", Params: map[string]string{"chart": "x", "key": "SECRET"}, Key: "k"}, []string{"params.key is set by the source itself"}},
		"two filters":   {Config{Kind: "youtube", Method: "videos.list", Params: map[string]string{"chart": "x", "id": "y"}, Key: "k"}, []string{"exactly one of chart, id; it names 2"}},
		"no filter":     {Config{Kind: "youtube", Method: "channels.list", Key: "k"}, []string{"exactly one of id, forHandle, forUsername; it names 0"}},
		"results":       {Config{Kind: "youtube", Method: "videos.list", Params: map[string]string{"chart": "x", "maxResults": "51"}, Key: "k"}, []string{`maxResults is "51"; it should be 1 to 50`}},
		"ids":           {Config{Kind: "youtube", Method: "videos.list", Params: map[string]string{"id": strings.Repeat("a,", 50) + "a"}, Key: "k"}, []string{"names 51; one request takes 50"}},
		"base":          {Config{Kind: "youtube", Method: "videos.list", Params: chart, Key: "k", BaseURL: "https://u:SECRET@h/?key=SECRET"}, []string{"base_url should hold neither"}},
		"base scheme":   {Config{Kind: "youtube", Method: "videos.list", Params: chart, Key: "k", BaseURL: "googleapis.com"}, []string{"base_url should begin with https://"}},
		"pages":         {Config{Kind: "youtube", Method: "videos.list", Params: chart, Key: "k", Pages: -1}, []string{"pages should be 1 or more"}},
		"unused":        {Config{Kind: "youtube", Method: "videos.list", Params: chart, Key: "k", URL: "x", Items: "."}, []string{"items is not used", "url is not used"}},
		"no url":        {Config{Kind: "syndication", Method: "x", Key: "k"}, []string{"url is missing", "method is not used", "key is not used"}},
		"bad url":       {Config{Kind: "syndication", URL: "https://u:SECRET%@h/"}, []string{"url cannot be parsed"}},
		"url scheme":    {Config{Kind: "syndication", URL: "ftp://SECRET/"}, []string{"url should begin with https:// or http://"}},
		"no host":       {Config{Kind: "syndication", URL: "https:///SECRET"}, []string{"url has no host"}},
		"many pages":    {Config{Kind: "syndication", URL: "https://h/", Pages: 2}, []string{"one page"}},
		"no items":      {Config{Kind: "json", URL: "https://h/"}, []string{"items is missing"}},
		"jq syntax":     {Config{Kind: "json", URL: "https://h/", Items: ".data[", Map: map[string]string{"id": "..x("}}, []string{`items: ".data["`, `map.id: "..x("`}},
		"login":         {Config{Kind: "youtube", Method: "search.list", Params: map[string]string{"forMine": "true"}, Key: "k"}, []string{"params.forMine needs a user's login"}},
		"search": {Config{Kind: "youtube", Method: "search.list", Key: "k", Params: map[string]string{
			"type": "film", "videoDuration": "long", "order": "best", "publishedAfter": "today", "location": "1,2", "relatedToVideoId": "x"}}, []string{
			`params.type is "film"`, "videoDuration needs type: video", `order is "best"; it should be date, rating`, `publishedAfter is "today"`, "both location and locationRadius", "relatedToVideoId is no longer"}},
		"chart":         {Config{Kind: "youtube", Method: "videos.list", Key: "k", Params: map[string]string{"chart": "top", "regionCode": "Bangladesh"}}, []string{`chart is "top"; it should be mostPopular`, "two letters"}},
		"region of ids": {Config{Kind: "youtube", Method: "videos.list", Key: "k", Params: map[string]string{"id": "a", "regionCode": "BD"}}, []string{"regionCode goes with chart"}},
		"no paging":     {Config{Kind: "json", URL: "https://h/", Items: ".", Pages: 2}, []string{"without paging this source has one page"}},
		"paging":        {Config{Kind: "json", URL: "https://h/", Items: ".", Paging: &Paging{Next: ".[", Cursor: ".c"}}, []string{"paging names 2 ways", "both cursor and param", `paging.next: ".["`}},
		"page numbers":  {Config{Kind: "json", URL: "https://h/", Items: ".", Paging: &Paging{Page: &PageNumbers{From: 1}}}, []string{"a max of 1 or more", "neither url nor params hold it"}},
		"selectors":     {Config{Kind: "html", URL: "https://h/", Items: "a[", Map: map[string]string{"title": "", "x": "b["}, Next: &NextPage{CSS: "c[", Max: 2}}, []string{`items: "a[" is not a CSS selector`, "map.title is empty", `map.x: "b["`, `next.css: "c["`}},
		"no selector":   {Config{Kind: "html", Pages: 2, Next: &NextPage{}}, []string{"url is missing", "items is missing; it is a CSS selector", "next should have css and max"}},
		"pushed":        {Config{Kind: "push", URL: "https://h/", Headers: map[string]string{"A": "b"}, Ban: &BanSigns{Text: "x"}, Pages: 3}, []string{"url is not used", "headers is not used", "ban is not used", "pages is not used"}},
		"ban":           {Config{Kind: "json", URL: "https://h/", Items: ".", Ban: &BanSigns{}}, []string{"ban names no sign"}},
		"ban signs":     {Config{Kind: "json", URL: "https://h/", Items: ".", Ban: &BanSigns{CSS: "a[", Status: []int{99}}}, []string{`ban.css: "a["`, "ban.status 99 is none"}},
		"jq functions":  {Config{Kind: "json", URL: "https://h/", Items: "nosuch(.)"}, []string{"items:", "nosuch"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.c)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v\nshould say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("a secret is in %v", err)
			}
		})
	}
}

func TestPageParamsAreChecked(t *testing.T) {
	s := trending(t, 1)
	for _, p := range []map[string]string{{"key": "x"}, {"maxResults": "0"}, {"chart": ""}, {"id": "a"}, {"pageToken": "x"}} {
		if _, err := s.Request(Page{Params: p}); err == nil {
			t.Errorf("%v was taken", p)
		}
	}
}

func TestCosts(t *testing.T) {
	for _, tt := range []struct {
		preset, method, bucket string
		units                  int64
	}{
		{"youtube-2026-06", "videos.list", "default", 1},
		{"youtube-2026-06", "search.list", "search.list", 1},
		{"youtube-2026-06", "videos.insert", "videos.insert", 1},
		{"youtube-2026-06", "videos.batchGetStats", "videos.batchGetStats", 1},
		{"youtube-2026-06", "playlistItems.list", "default", 1},
		{"youtube-2026-06", "channels.list", "default", 1},
		{"youtube-2026-06", "captions.list", "default", 50},
		{"youtube-2026-06", "captions.insert", "default", 400},
		{"youtube-2026-06", "captions.update", "default", 450},
		{"youtube-2026-06", "playlists.delete", "default", 50},
		{"youtube-legacy", "search.list", "default", 100},
		{"youtube-legacy", "videos.list", "default", 1},
		{"youtube-legacy", "videos.insert", "default", 1600},
	} {
		if b, n, ok := Cost(tt.preset, tt.method); b != tt.bucket || n != tt.units || !ok {
			t.Errorf("%s %s: %s %d %v", tt.preset, tt.method, b, n, ok)
		}
	}
	for _, tt := range [][2]string{{"youtube", "videos.list"}, {"youtube-legacy", "videos.batchGetStats"}, {"youtube-2026-06", "videos"}} {
		if _, _, ok := Cost(tt[0], tt[1]); ok {
			t.Errorf("%v has a cost", tt)
		}
	}
	if got := Presets(); !slices.Equal(got, []string{"youtube-2026-06", "youtube-legacy"}) {
		t.Errorf("%v", got)
	}
	for _, p := range Presets() {
		names := map[string]int64{}
		for _, b := range Buckets(p) {
			names[b.Name] = b.Limit
			if b.Zone != "America/Los_Angeles" {
				t.Errorf("%+v", b)
			}
		}
		for _, m := range Methods(p) {
			bucket, units, _ := Cost(p, m)
			if limit, ok := names[bucket]; !ok || units > limit {
				t.Errorf("%s %s charges %d of %q", p, m, units, bucket)
			}
		}
		// The methods that this source can ask must have a price.
		for m := range youtubeMethods {
			if _, _, ok := Cost(p, m); !ok {
				t.Errorf("%s has no cost for %s", p, m)
			}
		}
	}
}

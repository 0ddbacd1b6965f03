package source

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"feedwarden/internal/demo"
	"feedwarden/jobs/fetch"
)

// The sources against the demo's upstream, over real sockets and proxies.
func TestAgainstTheDemo(t *testing.T) {
	w, err := demo.StartWorld(t.Context(), demo.Options{Limit: 40, User: "ann", Password: "pw"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	c := fetch.New(fetch.Config{AllowPrivate: true})
	t.Cleanup(c.Close)
	via := fetch.Via{ID: "p", Proxy: w.ProxyURLs()[2]}
	do := func(s Source, p Page, header ...string) (*fetch.Response, error) {
		req, err := s.Request(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return c.Do(context.WithoutCancel(t.Context()), req, via)
	}

	chart := build(t, Config{
		Kind: "youtube", Method: "videos.list", Key: "demo-key", BaseURL: w.Upstream.BaseURL(),
		Params: map[string]string{"chart": "mostPopular", "maxResults": "50"},
	})
	for _, region := range demo.Regions() {
		p := Page{Params: map[string]string{"regionCode": region}}
		var items []Item
		for {
			resp, err := do(chart, p)
			if err != nil {
				t.Fatal(err)
			}
			a, err := chart.Read(resp)
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, a.Items...)
			if a.Next == "" {
				break
			}
			p.Cursor = a.Next
		}
		hidden := 0
		for i, it := range items {
			if it.Rank != i+1 || it.Title == "" || it.Published == nil || it.Fields["region"] != region || it.Fields["view_count"] == nil || it.Fields["duration_seconds"] == nil {
				t.Fatalf("%s: item %d is %+v", region, i, it)
			}
			if it.Fields["like_count"] == nil {
				hidden++
			}
		}
		if len(items) != 60 || hidden == 0 {
			t.Errorf("%s: %d items, %d without likes", region, len(items), hidden)
		}
	}

	resp, err := do(chart, Page{Params: map[string]string{"regionCode": "BD"}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err = do(chart, Page{Params: map[string]string{"regionCode": "BD"}}, "If-None-Match", resp.Header.Get("ETag"))
	if err != nil || resp.Status != http.StatusNotModified {
		t.Errorf("%v, status %d", err, resp.Status)
	}
	resp, err = do(chart, Page{Params: map[string]string{"regionCode": "KP"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = chart.Read(resp)
	wantAnswer(t, err, NotFound)
	for range 40 {
		if resp, err = do(chart, Page{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = chart.Read(resp)
	if e := wantAnswer(t, err, QuotaDay); e.Reason != "quotaExceeded" {
		t.Error(e)
	}

	news := build(t, Config{Kind: "syndication", URL: w.Upstream.FeedURL()})
	if resp, err = do(news, Page{}); err != nil {
		t.Fatal(err)
	}
	a, err := news.Read(resp)
	if err != nil || len(a.Items) != 20 || a.Lossy {
		t.Fatalf("%v, %d items", err, len(a.Items))
	}
	for _, it := range a.Items {
		if !strings.HasPrefix(it.ID, "story-") || !strings.HasPrefix(it.URL, w.Upstream.URL()+"/story/") || it.Published == nil || !strings.Contains(it.Title, " & friends") {
			t.Errorf("%+v", it)
		}
	}
	if n := w.Upstream.Stats().ByVia["direct"]; n != 0 {
		t.Errorf("%d requests did not go through the proxy", n)
	}
}

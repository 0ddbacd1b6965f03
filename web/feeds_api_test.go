package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"feedwarden/jobs"
	"feedwarden/jobs/source"
)

func item(id, title string) source.Item {
	return source.Item{ID: id, URL: "https://example.org/" + id + "?a=1&b=2", Title: title}
}

func TestListFeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("trending-bd", 2*time.Minute, nil, item("a", "A"), item("b", "B"))
	w.put("news", time.Hour, nil, item("a", "A"))
	if err := w.store.Fail(t.Context(), "news", "job", "fetch: timeout", time.Now()); err != nil {
		t.Fatal(err)
	}
	rec := w.get("/v1/feeds")
	w.wantStatus(rec, 200)
	got := decode[map[string][]map[string]any](w, rec)["feeds"]
	if len(got) != 3 || got[0]["name"] != "by-hand" || got[1]["name"] != "news" || got[2]["name"] != "trending-bd" {
		t.Fatalf("feeds %v", got)
	}
	empty, stale, fresh := got[0], got[1], got[2]
	if empty["state"] != "empty" || empty["version"] != nil || empty["next_at"] != nil || empty["last_error"] != "" || empty["age_ms"] != 0.0 || empty["fetched_at"] != nil {
		t.Errorf("the empty feed is %v", empty)
	}
	if stale["state"] != "stale" || stale["last_error"] != "fetch: timeout" || stale["ttl_ms"] != 900_000.0 {
		t.Errorf("the stale feed is %v", stale)
	}
	if fresh["state"] != "fresh" || fresh["version"] != 1.0 || fresh["items"] != 2.0 || fresh["age_ms"].(float64) < 120_000 || fresh["ttl_ms"] != 1_200_000.0 {
		t.Errorf("the fresh feed is %v", fresh)
	}
	if next, _ := fresh["next_at"].(string); !strings.HasSuffix(next, "Z") {
		t.Errorf("next_at %v, want an instant in UTC", fresh["next_at"])
	}
	w.wantProblem(w.get("/v1/feeds?x=1"), 400, "invalid-query")
}

func TestWithTicksTakesTheNearest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	feeds := WithTicks([]FeedView{{Name: "a"}, {Name: "b"}}, []ScheduleView{
		{Feed: "a", NextAt: instant(now.Add(time.Hour))}, {Feed: "a", NextAt: instant(now.Add(time.Minute))}, {Feed: "a"}, {Feed: "c", NextAt: instant(now)},
	})
	if !feeds[0].NextAt.Equal(now.Add(time.Minute)) || feeds[1].NextAt != nil {
		t.Errorf("next %v, %v", feeds[0].NextAt, feeds[1].NextAt)
	}
}

func TestReadFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	zone := time.FixedZone("x", 6*3600)
	published := time.Date(2026, 11, 30, 14, 0, 0, 0, zone)
	first := item("a", "Fish & <chips>")
	first.Published, first.Fields = &published, map[string]any{"views": 12}
	w.put("trending-bd", 5*time.Minute, [][]byte{[]byte(`{"page":1}`), []byte(`{"page":2}`)}, first, item("b", "B"))

	rec := w.get("/v1/feeds/trending-bd")
	w.wantStatus(rec, 200)
	h := rec.Header()
	age, _ := strconv.Atoi(h.Get("Age"))
	if age < 300 || age > 310 {
		t.Errorf("Age %q, want 300", h.Get("Age"))
	}
	for name, want := range map[string]string{
		"Content-Type": jsonType, "Cache-Control": "public, max-age=1200", "Feedwarden-Version": "1",
		"Cache-Status": "Feedwarden; hit; ttl=" + strconv.Itoa(1200-age) + "; detail=fresh",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(h.Get("ETag"), `"1-`) || h.Get("Last-Modified") == "" {
		t.Errorf("ETag %q, Last-Modified %q", h.Get("ETag"), h.Get("Last-Modified"))
	}
	body := rec.Body.String()
	for _, part := range []string{`{"feed":"trending-bd","version":1,"fetched_at":"`, `"published":"2026-11-30T08:00:00Z"`, `"title":"Fish & <chips>"`, `"url":"https://example.org/a?a=1&b=2"`, `"fields":{"views":12}`, `"published":null`, `"fields":{}`} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	again := w.get("/v1/feeds/trending-bd")
	if again.Body.String() != body || again.Header().Get("ETag") != h.Get("ETag") {
		t.Error("one version, two answers")
	}
	head := w.do(ask{method: "HEAD", path: "/v1/feeds/trending-bd"})
	if head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("ETag") != h.Get("ETag") || head.Header().Get("Content-Length") != strconv.Itoa(len(body)) {
		t.Errorf("HEAD: status %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
	}

	raw := w.get("/v1/feeds/trending-bd?as=raw")
	if raw.Body.String() != `{"page":1}` || raw.Header().Get("Content-Type") != "application/json; charset=utf-8" || raw.Header().Get("ETag") == h.Get("ETag") {
		t.Errorf("raw: %s, %v", raw.Body, raw.Header())
	}
	if got := raw.Header().Get("Link"); got != `</v1/feeds/trending-bd?as=raw&page=2>; rel="next"` {
		t.Errorf("Link %q", got)
	}
	if got := w.get("/v1/feeds/trending-bd?as=raw&page=2"); got.Body.String() != `{"page":2}` || got.Header().Get("Link") != "" {
		t.Errorf("page 2: %s", got.Body)
	}
	w.wantProblem(w.get("/v1/feeds/trending-bd?as=raw&page=3"), 404, "unknown-page")
	w.wantProblem(w.get("/v1/feeds/trending-bd", "Accept", "text/csv"), 406, "not-acceptable")
	for _, q := range []string{"?as=csv", "?page=1", "?version=0", "?version=x", "?wait=soon", "?wait=-1s", "?as=raw&page=0", "?was=1"} {
		w.wantProblem(w.get("/v1/feeds/trending-bd"+q), 400, "invalid-query")
	}
	p := w.wantProblem(w.get("/v1/feeds/trending"), 404, "unknown-feed")
	if !strings.Contains(p.Detail, "trending-bd") {
		t.Errorf("detail %q has no hint", p.Detail)
	}
}

func TestValidators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", time.Minute, [][]byte{[]byte("<rss/>")}, item("a", "A"))
	rec := w.get("/v1/feeds/news")
	tag, modified := rec.Header().Get("ETag"), rec.Header().Get("Last-Modified")
	for _, c := range []struct {
		name   string
		header []string
		want   int
	}{
		{"its ETag", []string{"If-None-Match", tag}, 304},
		{"weak, among others", []string{"If-None-Match", `"x", W/` + tag}, 304},
		{"any", []string{"If-None-Match", "*"}, 304},
		{"another ETag", []string{"If-None-Match", `"other"`}, 200},
		{"another ETag, though not modified", []string{"If-None-Match", `"other"`, "If-Modified-Since", modified}, 200},
		{"not modified", []string{"If-Modified-Since", modified}, 304},
		{"modified", []string{"If-Modified-Since", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)}, 200},
		{"range", []string{"Range", "bytes=0-3"}, 206},
	} {
		rec := w.get("/v1/feeds/news", c.header...)
		if rec.Code != c.want {
			t.Errorf("%s: status %d, want %d", c.name, rec.Code, c.want)
		}
		if c.want == 304 && (rec.Body.Len() != 0 || rec.Header().Get("ETag") != tag || rec.Header().Get("Cache-Control") == "" || rec.Header().Get("Age") == "") {
			t.Errorf("%s: body %q, %v", c.name, rec.Body, rec.Header())
		}
	}
	if rec := w.get("/v1/feeds/news?as=raw", "If-None-Match", tag); rec.Code != 200 {
		t.Errorf("the raw form to the items' ETag: status %d", rec.Code)
	}
	// A new version has a new ETag; the old one can still be had by number.
	w.put("news", 0, nil, item("b", "B"))
	if rec := w.get("/v1/feeds/news", "If-None-Match", tag); rec.Code != 200 || rec.Header().Get("Feedwarden-Version") != "2" {
		t.Errorf("after a new version: status %d", rec.Code)
	}
	old := w.get("/v1/feeds/news?version=1")
	if old.Header().Get("ETag") != tag || old.Header().Get("Cache-Control") != "public, no-cache" || old.Header().Get("Cache-Status") != "Feedwarden; hit" {
		t.Errorf("the old version: %v", old.Header())
	}
	w.wantProblem(w.get("/v1/feeds/news?version=9"), 404, "unknown-version")
}

func TestAStaleFeedIsGivenAtOnceAndRefreshed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	w.put("news", time.Hour, nil, item("a", "A"))
	rec := w.get("/v1/feeds/news", "Authorization", "Bearer "+readToken)
	w.wantStatus(rec, 200)
	if got := rec.Header().Get("Cache-Status"); got != "Feedwarden; hit; ttl=-2700; detail=updating" {
		t.Errorf("Cache-Status %q", got)
	}
	if got := rec.Header().Get("Cache-Control"); got != "private, max-age=900" {
		t.Errorf("Cache-Control %q: with tokens no shared cache may keep it", got)
	}
	list, err := w.jobs.List(t.Context(), jobs.Filter{Feed: "news"})
	if err != nil || len(list) != 1 || list[0].Queue != "interactive" {
		t.Errorf("jobs %v, %v; want one refresh", list, err)
	}
}

func TestAFeedNeverFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := w.get("/v1/feeds/by-hand")
	w.wantProblem(rec, 503, "feed-empty")
	if got := rec.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q", got)
	}
	if got := rec.Header().Get("Cache-Status"); got != "Feedwarden; fwd=miss" {
		t.Errorf("Cache-Status %q", got)
	}
	start := time.Now()
	w.wantProblem(w.get("/v1/feeds/by-hand?wait=100ms"), 503, "feed-empty")
	if d := time.Since(start); d < 100*time.Millisecond || d > 20*time.Second {
		t.Errorf("waited %s", d)
	}
	w.wantStatus(w.do(ask{method: "HEAD", path: "/v1/feeds/by-hand"}), 503)
}

func TestAReaderWaitsForTheFirstVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, _ *Parts, p *pace) {
		p.header, p.body, p.write = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	})
	url := w.start()
	done := make(chan *http.Response, 1)
	go func() {
		resp, err := http.Get(url + "/v1/feeds/by-hand?wait=30s")
		if err != nil {
			t.Error(err)
		}
		done <- resp
	}()
	w.until("a reader's job", func() bool {
		h, err := w.store.Head(t.Context(), "by-hand")
		return err == nil && h.Refreshing != ""
	})
	<-time.After(500 * time.Millisecond) // longer than a client may otherwise take
	w.put("by-hand", 0, nil, item("a", "A"))
	resp := <-done
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Cache-Status"); resp.StatusCode != 200 || got != "Feedwarden; fwd=miss; stored; detail=fresh" {
		t.Errorf("status %d, Cache-Status %q", resp.StatusCode, got)
	}
	if got := resp.Header.Get("Cache-Control"); got != "public, no-cache" {
		t.Errorf("a feed without ttl: Cache-Control %q", got)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestStopSendsWaitingReadersAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.start()
	done := make(chan int, 1)
	go func() {
		resp, err := http.Get(url + "/v1/feeds/by-hand?wait=60s")
		if err != nil {
			t.Error(err)
			done <- 0
			return
		}
		resp.Body.Close()
		done <- resp.StatusCode
	}()
	w.until("a reader's job", func() bool {
		h, err := w.store.Head(t.Context(), "by-hand")
		return err == nil && h.Refreshing != ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 503 {
		t.Errorf("status %d, want 503", code)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestRawPagesOfStrangersRunNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head, err := w.store.Head(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Put(t.Context(), head, time.Now(), time.Now(), contentOf("text/html", "<script>alert(1)</script>"), 3); err != nil {
		t.Fatal(err)
	}
	rec := w.get("/v1/feeds/news?as=raw")
	if rec.Header().Get("Content-Type") != "text/html" || !strings.Contains(rec.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%v", rec.Header())
	}
}

func TestFeedViewJSONNames(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(FeedView{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"name", "state", "age_ms", "ttl_ms", "version", "next_at", "last_error", "items", "fetched_at"} {
		if !strings.Contains(string(b), `"`+name+`":`) {
			t.Errorf("no %s in %s", name, b)
		}
	}
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/internal/demo"
)

// readers ask for a feed, half of them each of two servers, until each has it.
func readers(t *testing.T, n int, feed string, servers ...string) *sync.WaitGroup {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			deadline := time.Now().Add(2 * time.Minute)
			for {
				resp, err := http.Get(servers[i%len(servers)] + "/v1/feeds/" + feed + "?wait=60s")
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					if v := resp.Header.Get("Feedwarden-Version"); v != "1" {
						t.Errorf("version %s", v)
					}
					return
				}
				if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || time.Now().After(deadline) {
					t.Errorf("status %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
					return
				}
			}
		})
	}
	return &wg
}

// Two hundred readers of a feed that was never fetched, over two web servers,
// are one request to its upstream. When the worker that does it is killed in
// the midst of it, they get it from another: one request more.
func TestReadersOfAnEmptyFeedOverTwoWebServersAndAWorkerThatIsKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	var news, killed atomic.Int64
	begun, both := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/news":
			news.Add(1)
			<-both // both servers have readers that wait
		case killed.Add(1) == 1:
			close(begun)
			<-r.Context().Done() // the killed worker's connection
			return
		}
		w.Header().Set("Content-Type", "application/feed+json")
		fmt.Fprint(w, `{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{"id":"1","title":"one","content_text":"x"}]}`)
	}))
	t.Cleanup(upstream.Close)
	p.write(strings.ReplaceAll(`
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true, timeout: 60s}
feeds:
  news: {source: syndication, url: "UP/news", ttl: 1h}
  killed: {source: syndication, url: "UP/killed", ttl: 1h}
`, "UP", upstream.URL))
	one, two, worker := p.start("web"), p.start("web"), p.start("worker")
	servers := []string{one.url(), two.url()}
	rdb := p.redis.Client()
	defer rdb.Close()

	all := readers(t, 200, "news", servers...)
	eventually(t, 60*time.Second, func() string {
		n, err := rdb.PubSubNumSub(t.Context(), "fw:{feed:news}:events").Result()
		if err != nil || n["fw:{feed:news}:events"] != 2 {
			return fmt.Sprintf("%v of two servers wait, %v", n, err)
		}
		return ""
	})
	close(both)
	all.Wait()
	if n := news.Load(); n != 1 {
		t.Errorf("200 readers made %d requests", n)
	}

	all = readers(t, 200, "killed", servers...)
	<-begun
	worker.kill()
	p.start("worker")
	all.Wait()
	if n := killed.Load(); n != 2 {
		t.Errorf("%d requests, want that of the killed worker and one more", n)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestFeedsPutDiffVersionsAndWarm(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(`
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
feeds:
  scores: {source: push, ttl: 1h, history: 3}
  news: {source: syndication, url: FEED}
`)
	file := filepath.Join(p.dir, "scores.json")
	if err := os.WriteFile(file, []byte(`[{"id":"a","title":"Alpha"},{"id":"b","title":"Beta"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	step := func(in string, want int, says string, args ...string) string {
		t.Helper()
		out, errOut, code := p.run(in, args...)
		if code != want || !contains(out+errOut, says) {
			t.Errorf("%v: exit %d, want %d with %q: %s%s", args, code, want, says, out, errOut)
		}
		return out
	}
	step("", exitFailed, "feeds put scores FILE", "feeds", "get", "scores")
	step("", exitFailed, "has not two versions", "feeds", "diff", "scores")
	step("", exitDone, `"version":1,"new":true,"items":2`, "feeds", "put", "scores", file)
	step(`{"id":"c"}`+"\n"+`{"id":"b","title":"Beta"}`, exitDone, `"version":2,"new":true`, "feeds", "put", "scores", "-", "--type", "application/x-ndjson")
	step(`[{"id":"c"},{"id":"b","title":"Beta"}]`, exitDone, `"version":2,"new":false`, "feeds", "put", "scores")
	if o := objects(t, step("", exitDone, "", "feeds", "diff", "scores")); len(o) != 2 || o[0]["what"] != "came" || o[0]["to"] != 1.0 || o[1]["what"] != "went" || o[1]["from"] != 1.0 {
		t.Errorf("%v", o)
	}
	step(`[{"id":"b","title":"Beta"},{"id":"c"}]`, exitDone, `"version":3`, "feeds", "put", "scores")
	if o := objects(t, step("", exitDone, "", "feeds", "diff", "scores", "2", "3")); len(o) != 2 || o[0]["what"] != "rose" || o[0]["moved"] != 1.0 || o[1]["what"] != "fell" {
		t.Errorf("%v", o)
	}
	if o := objects(t, step("", exitDone, "", "feeds", "versions", "scores")); len(o) != 3 || o[0]["version"] != 3.0 || o[0]["hash"] == o[1]["hash"] || o[2]["fetched_at"] == nil {
		t.Errorf("%v", o)
	}
	step("", exitDone, `"id":"a"`, "feeds", "get", "scores", "--version", "1")
	since := objects(t, step("", exitDone, "", "feeds", "versions", "scores"))[2]["fetched_at"].(string)
	if o := objects(t, step("", exitDone, "", "feeds", "get", "scores", "--format", "ndjson", "--since", since)); len(o) != 1 || o[0]["id"] != "c" {
		t.Errorf("since %s: %v", since, o)
	}
	step("", exitUsage, "instant", "feeds", "get", "scores", "--since", "monday")
	step("", exitDone, "", "feeds", "get", "scores", "--aside")
	step(`[]`, exitFailed, "--allow-empty", "feeds", "put", "scores")
	step(`[{"id":"x"}]`, exitFailed, "not the newest", "feeds", "put", "scores", "--onto", "1")
	step(`nonsense`, exitFailed, "neither JSON nor XML", "feeds", "put", "scores")
	step(`[]`, exitUsage, "only a feed of source push", "feeds", "put", "news")
	step(``, exitUsage, "nosuch", "feeds", "put", "nosuch")
	step(``, exitUsage, "/nonexistent", "feeds", "put", "scores", "/nonexistent")

	web := p.start("web")
	req, err := http.NewRequest(http.MethodGet, web.url()+"/v1/feeds/scores", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Feedwarden-Client", "phone")
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	eventually(t, 20*time.Second, func() string {
		out, errOut, code := p.run("", "feeds", "warm", "phone")
		if code != exitDone || !contains(out, `{"feed":"scores","action":"fresh"`) {
			return fmt.Sprint(code, out, errOut)
		}
		return ""
	})
	step("", exitUsage, "1 to 64", "feeds", "warm", "a b")
	http.DefaultClient.CloseIdleConnections()
}

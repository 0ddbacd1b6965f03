package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// pushFeed is a feed that scripts fill.
func withPushFeed(w *world) {
	w.Helper()
	var err error
	feeds := append(testFeeds(), jobs.Feed{Name: "scores", Source: source.Config{Kind: "push"}, TTL: time.Hour, History: 5})
	w.jobs, err = jobs.NewClient(jobs.Config{Feeds: feeds, QueueLimits: map[string]int64{"interactive": 50}}, w.rdb, w.store, w.quotas, w.server.log)
	if err != nil {
		w.Fatal(err)
	}
	w.server.p.Jobs = w.jobs
}

func (w *world) putContent(body string, header ...string) *httptest.ResponseRecorder {
	w.Helper()
	return w.do(ask{method: "PUT", path: "/v1/feeds/scores", header: pairs(header), body: body})
}

func TestPutFillsAPushFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withPushFeed(w)
	rec := w.putContent(`[{"id":"a","title":"A"}]`, "Content-Type", "application/json")
	w.wantStatus(rec, 201)
	if got := decode[map[string]any](w, rec); got["version"] != 1.0 || got["new"] != true || got["items"] != 1.0 || got["feed"] != "scores" {
		t.Errorf("%v", got)
	}
	tag := rec.Header().Get("ETag")
	read := w.get("/v1/feeds/scores")
	if read.Code != 200 || read.Header().Get("ETag") != tag || tag == "" || read.Header().Get("Cache-Status") != "Feedwarden; hit; ttl=3600; detail=fresh" || !strings.Contains(read.Body.String(), `"title":"A"`) {
		t.Errorf("%d %v %s, PUT said %s", read.Code, read.Header(), read.Body, tag)
	}
	w.wantStatus(w.putContent(`{"id":"b"}`+"\n"+`{"id":"a"}`, "Content-Type", "application/x-ndjson", "If-Match", tag), 200)
	if got := w.get("/v1/feeds/scores").Header().Get("Feedwarden-Version"); got != "2" {
		t.Errorf("read after a PUT: version %s", got)
	}
	w.wantProblem(w.putContent(`[{"id":"c"}]`, "If-Match", tag), 412, "other-version")
	w.wantProblem(w.putContent(`[{"id":"c"}]`, "If-None-Match", "*"), 412, "other-version")
	w.wantStatus(w.putContent(`[{"id":"c"}]`, "If-Match", "*"), 200)
	w.wantStatus(w.putContent(`<rss version="2.0"><channel><item><guid>x</guid></item></channel></rss>`, "Content-Type", "application/rss+xml"), 200)

	w.wantProblem(w.putContent(`not a feed`), 422, "unreadable")
	w.wantProblem(w.putContent(`[{"id":"a"},{"id":"a"}]`), 422, "unreadable")
	w.wantProblem(w.putContent(`[]`), 422, "empty")
	w.wantProblem(w.putContent(`x`, "Content-Type", "text/html"), 415, "content-type")
	w.wantProblem(w.putContent(`x`, "Content-Type", "application/x-www-form-urlencoded"), 415, "content-type")
	w.wantProblem(w.putContent(`x`, "Content-Encoding", "gzip"), 415, "content-encoding")
	w.wantProblem(w.putContent(`x`, "Content-Range", "bytes 0-0/2"), 400, "content-range")
	w.wantProblem(w.putContent(strings.Repeat(" ", maxPut+1)), 413, "too-large")
	w.wantProblem(w.do(ask{method: "PUT", path: "/v1/feeds/news", body: "[]"}), 409, "not-push")
	w.wantProblem(w.do(ask{method: "PUT", path: "/v1/feeds/nosuch", body: "[]"}), 404, "unknown-feed")
	w.wantProblem(w.do(ask{method: "PUT", path: "/v1/feeds/scores?x=1", body: "[]"}), 400, "invalid-query")
	if got := w.get("/v1/feeds/scores").Header().Get("Feedwarden-Version"); got != "4" {
		t.Errorf("what was refused changed the feed: version %s", got)
	}
	w.wantStatus(w.do(ask{method: "PUT", path: "/v1/feeds/scores?allow_empty=true", body: "[]"}), 200)
}

func TestPutAsksForTheRoleWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	withPushFeed(w)
	for token, want := range map[string]int{"": 401, readToken: 403, writeToken: 201} {
		header := []string{}
		if token != "" {
			header = []string{"Authorization", "Bearer " + token}
		}
		if rec := w.putContent(`[{"id":"a"}]`, header...); rec.Code != want {
			t.Errorf("token %q: %d, want %d", token, rec.Code, want)
		}
		if rec := w.post("/v1/warm", `{"client":"c"}`, header...); rec.Code != map[int]int{401: 401, 403: 403, 201: 202}[want] {
			t.Errorf("warm, token %q: %d", token, rec.Code)
		}
	}
}

func TestWarmRefreshesWhatAClientReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", 0, nil, item("a", "A"))
	w.put("trending-bd", 0, nil, item("a", "A"))
	if rec := w.post("/v1/warm", `{"client":"phone"}`); rec.Code != 202 || !strings.Contains(rec.Body.String(), `"feeds":[]`) {
		t.Errorf("before any read: %d %s", rec.Code, rec.Body)
	}
	w.wantStatus(w.get("/v1/feeds/news", "Feedwarden-Client", "phone"), 200)
	w.wantStatus(w.get("/v1/feeds/trending-bd?as=raw", "Feedwarden-Client", "phone"), 404) // it has no page, and was asked for all the same
	w.wantProblem(w.get("/v1/feeds/news", "Feedwarden-Client", "a b"), 400, "invalid-client")
	w.until("the reads are noted", func() bool {
		names, err := w.jobs.Reads(t.Context(), "phone")
		return err == nil && len(names) == 2
	})
	// Half an hour later.
	w.rdb.HSet(t.Context(), "fw:{feed:news}:head", "fetched_ms", time.Now().Add(-time.Hour).UnixMilli())
	rec := w.post("/v1/warm", `{"client":"phone"}`)
	w.wantStatus(rec, 202)
	got := decode[struct {
		Client string
		Feeds  []jobs.Warmed
	}](w, rec)
	what := map[string]jobs.Warmed{}
	for _, f := range got.Feeds {
		what[f.Feed] = f
	}
	if got.Client != "phone" || len(what) != 2 || what["news"].Action != "refreshing" || what["news"].Job == "" || what["trending-bd"].Action != "fresh" {
		t.Errorf("%+v", got)
	}
	if j, err := w.jobs.Get(t.Context(), what["news"].Job); err != nil || j.Queue != "interactive" {
		t.Errorf("%+v %v", j, err)
	}
	w.wantProblem(w.post("/v1/warm", `{"client":""}`), 400, "invalid-client")
	w.wantProblem(w.post("/v1/warm", `{"clients":"x"}`), 400, "invalid-json")
}

func TestHistoryIsReadOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", 3*time.Minute, nil, item("a", "A"), item("b", "B"))
	w.put("news", 2*time.Minute, nil, item("c", "C"), item("b", "B"))
	w.put("news", time.Minute, nil, item("b", "B"), item("c", "C"), item("d", "D"))
	versions := decode[struct{ Versions []FeedVersion }](w, w.get("/v1/feeds/news/versions")).Versions
	if len(versions) != 3 || versions[0].Version != 3 || versions[0].Items != 3 || versions[0].Hash == "" || versions[0].Hash == versions[1].Hash || versions[2].FetchedAt.IsZero() {
		t.Errorf("%+v", versions)
	}
	for query, want := range map[string]string{
		"":                "2>3 came d, rose b, fell c",
		"?from=1":         "1>3 came c, came d, rose b, went a",
		"?from=1&to=2":    "1>2 came c, went a",
		"?to=2":           "1>2 came c, went a",
		"?from=3&to=3":    "3>3 ",
		"?from=2&to=1":    "2>1 came a, went c",
		"?from=1&to=9":    "unknown-version",
		"?to=1":           "unknown-version",
		"?from=x":         "invalid-query",
		"?from=1&since=2": "invalid-query",
	} {
		rec := w.get("/v1/feeds/news/diff" + query)
		if rec.Code != 200 {
			if p := decode[Problem](w, rec); p.Code != want {
				t.Errorf("%s: %+v", query, p)
			}
			continue
		}
		d := decode[FeedDiff](w, rec)
		var parts []string
		for _, c := range d.Changes {
			parts = append(parts, c.What+" "+c.Item.ID)
		}
		if got := fmt.Sprintf("%d>%d %s", d.From.Version, d.To.Version, strings.Join(parts, ", ")); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	w.wantProblem(w.get("/v1/feeds/nosuch/diff"), 404, "unknown-feed")
	// New since, and risen.
	since := versions[1].FetchedAt.Add(time.Second).Format(time.RFC3339)
	rec := w.get("/v1/feeds/news?since=" + since)
	items := decode[feedContent](w, rec).Items
	if len(items) != 1 || items[0].ID != "d" || rec.Header().Get("ETag") == w.get("/v1/feeds/news").Header().Get("ETag") {
		t.Errorf("since %s: %+v", since, items)
	}
	if all := decode[feedContent](w, w.get("/v1/feeds/news")).Items; all[0].RankChange == nil || *all[0].RankChange != 1 || *all[1].RankChange != -1 || all[2].RankChange != nil {
		t.Errorf("%+v", all)
	}
	w.wantProblem(w.get("/v1/feeds/news?since=yesterday"), 400, "invalid-query")
	w.wantProblem(w.get("/v1/feeds/news?as=raw&since="+since), 400, "invalid-query")
	if rec := w.get("/v1/feeds/news?since="+since, "If-None-Match", rec.Header().Get("ETag")); rec.Code != 304 {
		t.Errorf("status %d", rec.Code)
	}
}

func TestWhatIsKeptAsideIsShownAndRunsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", 0, nil, item("a", "A"))
	body := "<script>alert(1)</script> not a feed \xff"
	if err := w.store.SetAside(t.Context(), "news", feed.Aside{At: time.Now(), Job: "job-x", Kind: "not-a-feed", Reason: "HTML came", Type: "text/html", Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
	rec := w.get("/v1/feeds/news/aside")
	got := decode[struct{ Aside []feed.Aside }](w, rec).Aside
	if len(got) != 1 || string(got[0].Body) != body || got[0].Reason != "HTML came" || !strings.Contains(rec.Body.String(), base64.StdEncoding.EncodeToString([]byte(body))) {
		t.Errorf("%+v", got)
	}
	page := w.get("/feeds/news", "Accept", "text/html").Body.String()
	if !strings.Contains(page, "not-a-feed") || !strings.Contains(page, "&lt;script&gt;alert(1)") || strings.Contains(page, "<script>alert") {
		t.Error("the page does not show it, or runs it")
	}
	if rec := w.get("/v1/feeds/by-hand/aside"); !strings.Contains(rec.Body.String(), `"aside":[]`) {
		t.Errorf("%s", rec.Body)
	}
}

func TestHitsOverHTTPCostNoCallToRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", 0, [][]byte{[]byte("<rss/>")}, item("a", "A"))
	w.until("messages are heard, and a copy is held", func() bool {
		w.wantStatus(w.get("/v1/feeds/news"), 200)
		loads := w.server.copies.Loads()
		w.wantStatus(w.get("/v1/feeds/news"), 200)
		return w.server.copies.Loads() == loads
	})
	before, begun := w.server.copies.Loads(), time.Now()
	for range 500 {
		w.wantStatus(w.get("/v1/feeds/news"), 200)
		w.wantStatus(w.get("/v1/feeds/news?as=raw"), 200)
	}
	// One look for each safety time.
	if n, most := w.server.copies.Loads()-before, int64(time.Since(begun)/(2*time.Second))+1; n > most {
		t.Errorf("1000 hits looked at Redis %d times, want %d at most", n, most)
	}
}

func TestManyReadersOfAStaleFeedAskOnceForARefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", time.Hour, nil, item("a", "A"))
	w.get("/v1/feeds/news")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			rec := w.get("/v1/feeds/news")
			if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Cache-Status"), "Feedwarden; hit; ttl=-27") {
				t.Errorf("%d %v", rec.Code, rec.Header())
			}
		})
	}
	wg.Wait()
	if list, err := w.jobs.List(t.Context(), jobs.Filter{Feed: "news"}); err != nil || len(list) != 1 {
		t.Errorf("%d jobs %v", len(list), err)
	}
	// The refresh done, its poller reads the new version at once.
	id := ""
	if list, _ := w.jobs.List(t.Context(), jobs.Filter{Feed: "news"}); len(list) == 1 {
		id = list[0].ID
	}
	head, err := w.store.Head(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Put(t.Context(), head, time.Now(), time.Now(), feed.Content{Items: []source.Item{item("b", "B")}}, 3); err != nil {
		t.Fatal(err)
	}
	w.ended(id, "news", jobs.Done, "", "{}")
	w.wantStatus(w.get("/v1/jobs/"+id), 200)
	if got := w.get("/v1/feeds/news").Header().Get("Feedwarden-Version"); got != "2" {
		t.Errorf("version %s", got)
	}
}

// Two processes serve one feed while versions land: each reader who comes after
// another has been answered gets that version or a newer one.
func TestTwoInstancesNeverGoBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", 0, nil, item("a", "A"))
	parts := w.server.p
	second, err := newServer(Config{Listen: "127.0.0.1:0"}, parts, usualPace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	var wg, reading sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_, err := w.store.Put(t.Context(), feed.Head{Key: "news"}, time.Now(), time.Now(), feed.Content{Items: []source.Item{item(fmt.Sprint(n), "A")}}, 2)
			if err != nil {
				t.Error(err)
			}
			w.rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
		}
	})
	for _, s := range []*Server{w.server, second} {
		reading.Go(func() {
			last := 0
			for n := 0; ctx.Err() == nil && (n < 500 || last < 10); n++ {
				rec := httptest.NewRecorder()
				s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost/v1/feeds/news", nil))
				version := 0
				if _, err := fmt.Sscan(rec.Header().Get("Feedwarden-Version"), &version); err != nil || version < last {
					t.Errorf("status %d, version %q after %d", rec.Code, rec.Header().Get("Feedwarden-Version"), last)
					return
				}
				last = version
			}
			if last < 10 {
				t.Errorf("only version %d was seen", last)
			}
		})
	}
	reading.Wait()
	stop()
	wg.Wait()
}

func TestAQuotaThatRefusesIsToldAtOnceWithTheJobsOwnRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.snoozed("reader", "by-hand", "snoozed until then: quota youtube: place 2", time.Now().Add(42*time.Second))
	if _, err := w.store.Claim(t.Context(), feed.Head{Key: "by-hand"}, "reader", "", time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/feeds/by-hand", "/v1/feeds/by-hand?wait=60s"} {
		begun := time.Now()
		rec := w.get(path)
		p := w.wantProblem(rec, 503, "feed-empty")
		if after := rec.Header().Get("Retry-After"); after < "30" || after > "42" || !strings.Contains(p.Detail, "quota youtube") || time.Since(begun) > 20*time.Second {
			t.Errorf("%s: Retry-After %s, %q after %s", path, after, p.Detail, time.Since(begun))
		}
	}
}

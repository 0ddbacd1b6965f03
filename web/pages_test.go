package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/roster"
	"feedwarden/jobs"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

func (w *world) page(path string) *httptest.ResponseRecorder {
	w.Helper()
	rec := w.get(path, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if got := rec.Header().Get("Content-Type"); got != htmlType {
		w.Errorf("%s: Content-Type %q", path, got)
	}
	return rec
}

func wantParts(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(body, p) {
			t.Errorf("no %q on the page", p)
		}
	}
}

func TestPagesShowWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("trending-bd", 4*time.Minute, nil, item("a", "A"))
	w.put("news", time.Hour, nil, item("a", "A"))
	if err := w.store.Fail(t.Context(), "news", "job", "fetch: <timeout> & more", time.Now()); err != nil {
		t.Fatal(err)
	}
	w.charge(`{"id":"a","cost":280}`)
	w.charge(`{"id":"<waiter>","cost":30}`)
	w.snoozed("trending-bd@2026-11-30T08:15:00Z", "trending-bd", "quota youtube: place 2", time.Now().Add(42*time.Minute+30*time.Second))
	w.ended("gone", "news", jobs.Failed, "attempt 5 of 5: <refused>", "")
	w.ended("well", "news", jobs.Done, "", `{"what":"new version","version":7,"items":50,"requests":1,"units":1,"via":["proxy-b"]}`)
	if _, err := w.pools.Take(t.Context(), "public", allocation.TakeOptions{}); err != nil {
		t.Fatal(err)
	}

	for path, parts := range map[string][]string{
		"/": {
			"2 of 3 feeds are not fresh.", "The last fetch brought nothing: news.", "Older than their ttl: news.", "Never fetched: by-hand.",
			`href="/feeds/trending-bd"`, `<span class="pill fresh">fresh</span>`, `<span class="pill stale">stale</span>`, `<span class="pill empty">empty</span>`,
			"4 min", " of 20 min", "in 5 min", "fetch: &lt;timeout&gt; &amp; more", "300 per 1m", "280 used", "least-used", "3 of 3 eligible",
			`<span class="pill snoozed">snoozed</span>`, "quota youtube: place 2", "new version: version 7, 50 items, 1 unit, through proxy-b",
			`href="/monitor/"`, `href="/metrics"`, `href="/audit"`, `<noscript><meta http-equiv="refresh"`, "v1.2.3",
		},
		"/feeds":          {"fetch: &lt;timeout&gt; &amp; more", "4 min", " of 20 min", "failing (1)", "stale (1)"},
		"/quotas":         {"20 left, 20 of them for interactive jobs", "1, for 30 units", `href="/quotas/youtube"`},
		"/quotas/youtube": {"&lt;waiter&gt;", "280 used", "other charges <b>280</b>", "As a table", "Close it", "scheduled"},
		"/pools":          {"least-used", "3 of 3 eligible", `href="/pools/public"`},
		"/pools/public":   {"proxy-b.example.org", "Share of picks", "Picks of 3 endpoints of pool public", "Handicap", "Quarantine"},
		"/schedules":      {"Asia/Dhaka", "@every 10m", "in 5 min", "Pause", "Tick now"},
		"/jobs": {
			"in 42 min", "quota youtube: place 2", "attempt 5 of 5: &lt;refused&gt;", `href="/jobs/trending-bd@2026-11-30T08:15:00Z"`,
		},
		"/jobs/trending-bd@2026-11-30T08:15:00Z": {"It sleeps until ", "quota youtube: place 2", "burns no attempt", `href="/monitor/queues/scheduled/tasks/trending-bd@2026-11-30T08:15:00Z"`, "Cancel this job"},
		"/jobs?state=failed":                     {"gone", "attempt 5 of 5: &lt;refused&gt;"},
		"/jobs?feed=trending-bd":                 {"trending-bd@2026-11-30T08:15:00Z"},
		"/audit":                                 {"charge quota", "youtube", "anonymous"},
	} {
		rec := w.page(path)
		w.wantStatus(rec, 200)
		body := rec.Body.String()
		for _, p := range parts {
			if !strings.Contains(body, p) {
				t.Errorf("%s: no %q on the page", path, p)
			}
		}
		if got := rec.Header().Get("Content-Security-Policy"); got != pagePolicy {
			t.Errorf("%s: policy %q", path, got)
		}
		wantTidy(t, body)
	}
	for path, wrong := range map[string]string{"/jobs?state=failed": "trending-bd@", "/jobs?feed=trending-bd": ">gone<", "/feeds?state=fresh": "/feeds/news", "/feeds?q=TREND": "/feeds/news"} {
		if strings.Contains(w.page(path).Body.String(), wrong) {
			t.Errorf("%s: %q is on the page", path, wrong)
		}
	}
	rec := w.page("/jobs?id=gone")
	if rec.Code != 303 || rec.Header().Get("Location") != "/jobs/gone" {
		t.Errorf("an ID leads to %d %s", rec.Code, rec.Header().Get("Location"))
	}
}

// wantTidy holds a page against its own policy: no inline script or style.
func wantTidy(t *testing.T, body string) {
	t.Helper()
	for _, wrong := range []string{`<script>`, ` style="`, `<style`, `onclick`, `javascript:`, "ZgotmplZ", "%!", "<no value>"} {
		if strings.Contains(body, wrong) {
			t.Errorf("there is %q on the page", wrong)
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(body, -1) {
		if ids[m[1]] {
			t.Errorf("two elements have the id %s", m[1])
		}
		ids[m[1]] = true
	}
}

func TestPagesWithNothingToShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Parts, _ *pace) { p.Schedules = nil })
	none := w.server.p
	var err error
	if none.Quotas, err = quota.New(w.rdb, nil); err != nil {
		t.Fatal(err)
	}
	if none.Pools, err = allocation.New(w.rdb, nil); err != nil {
		t.Fatal(err)
	}
	if none.Jobs, err = jobs.NewClient(jobs.Config{}, w.rdb, w.store, none.Quotas, w.server.log); err != nil {
		t.Fatal(err)
	}
	w.server.p = none
	rec := w.page("/")
	w.wantStatus(rec, 200)
	wantParts(t, rec.Body.String(), "No feeds yet.", "No quotas.", "No pools.", "No jobs in the last two hours.")
	for path, want := range map[string]string{
		"/feeds": "No feeds yet.", "/quotas": "No quotas.", "/pools": "No pools.", "/schedules": "No schedules.", "/jobs": "No jobs in the last two hours.",
		"/audit": "Nothing was done yet.",
	} {
		wantParts(t, w.page(path).Body.String(), want)
	}
	for path, want := range map[string]string{"/v1/feeds": `{"feeds":[]}`, "/v1/quotas": `{"quotas":[]}`, "/v1/pools": `{"pools":[]}`} {
		if got := strings.TrimSpace(w.get(path).Body.String()); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestAFreshInstallHasNoTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	running := roster.New(w.rdb, []string{"web", "worker", "scheduler"}, "v1", "", func() (string, string) { return "", "" }, w.server.log)
	if err := running.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer running.Stop(t.Context())   //nolint:errcheck // it is gone in any case
	body := w.page("/").Body.String() // asynq knows no queue yet
	for _, wrong := range []string{"could not be read", `class="bad"`} {
		if strings.Contains(body, wrong) {
			t.Errorf("there is %q on the page", wrong)
		}
	}
	wantParts(t, w.get("/metrics").Body.String(), "feedwarden_unread_parts 0", `feedwarden_queue_jobs{queue="interactive",state="pending"} 0`)
	if strings.Contains(w.logs.String(), "could not be read") {
		t.Errorf("the log: %s", w.logs)
	}
}

func TestOverviewShowsWhatItCan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.schedules.err = fmt.Errorf("scheduler: %s", querySecret)
	if err := w.rdb.Set(t.Context(), "fw:{jobs}:ended", "of a wrong type", 0).Err(); err != nil {
		t.Fatal(err)
	}
	rec := w.page("/")
	w.wantStatus(rec, 200)
	body := rec.Body.String()
	wantParts(t, body, "Some of what stands here could not be read", template.HTMLEscapeString(unreadable), "trending-bd", "least-used")
	if strings.Contains(body, querySecret) {
		t.Error("an error's text came out")
	}
}

func TestFeedPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	published := time.Now().Add(-3 * time.Hour)
	w.put("trending-bd", time.Hour, nil, item("old", "Old one"))
	items := []source.Item{
		{ID: "a", URL: "https://example.org/a", Title: "<script>alert(1)</script>", Published: &published, Fields: map[string]any{"views": 1234567, "bad": "<img src=x onerror=alert(1)>", "none": nil}},
		{ID: "b", URL: "javascript:alert(1)", Title: "A link that is none"},
		{ID: "c", URL: "//example.org/x", Title: ""},
		{ID: "d", URL: "data:text/html,x", Title: "Data"},
	}
	w.put("trending-bd", time.Minute, nil, items...)
	rec := w.page("/feeds/trending-bd")
	w.wantStatus(rec, 200)
	body := rec.Body.String()
	wantParts(t, body, "&lt;script&gt;alert(1)&lt;/script&gt;", `href="https://example.org/a"`, "noopener", "published ", "3 h ago", "1234567", "&lt;img src=x onerror=alert(1)&gt;",
		"A link that is none", "Items of version 2", "4 items", `href="?version=1"`, "What changed from version 1 to 2", "4 came, 1 went, 0 rose, 0 fell", `action="/act/feed/fetch"`, "2 fields", "youtube", "100 a request", `/v1/feeds/trending-bd?as=raw`)
	wantTidy(t, strings.ReplaceAll(body, "&lt;script&gt;", ""))
	for _, wrong := range []string{"<script>alert", "<img", `href="javascript`, `href="data:text`, `href="//`} {
		if strings.Contains(body, wrong) {
			t.Errorf("there is %q on the page", wrong)
		}
	}
	wantParts(t, w.page("/feeds/trending-bd?version=1").Body.String(), "Items of version 1", "Old one", `aria-current="page"`)
	wantParts(t, w.page("/feeds/by-hand").Body.String(), "Never fetched.")
	h, err := w.store.Head(t.Context(), "by-hand")
	if err != nil || h.Refreshing != "" {
		t.Error("looking at a feed's page asked for a fetch")
	}
	rec = w.page("/feeds/none")
	w.wantStatus(rec, 404)
	wantParts(t, rec.Body.String(), "no feed &#34;none&#34;")
	if rec := w.page("/feeds/trending-bd?version=9"); rec.Code != 404 {
		t.Errorf("a version that is not kept: status %d", rec.Code)
	}
}

func TestNoSecretComesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	w.put("trending-bd", time.Minute, [][]byte{[]byte("{}")}, item("a", "A"))
	w.put("news", time.Hour, nil, item("a", "A"))
	auth := []string{"Authorization", "Bearer " + adminToken, "Accept", "*/*"}
	for _, rt := range routes(w.server, w.server.Handler()) {
		if rt.method != get {
			continue
		}
		path := strings.NewReplacer("{$}", "", "{id}", "nojob", "{file}", "live.js").Replace(rt.path)
		names := []string{"trending-bd", "news", "youtube", "public"}
		if !strings.Contains(path, "{name}") {
			names = names[:1]
		}
		for _, name := range names {
			for _, accept := range []string{"*/*", "text/html"} {
				auth[3] = accept
				rec := w.get(strings.ReplaceAll(path, "{name}", name), auth...)
				text := fmt.Sprint(rec.Header()) + rec.Body.String()
				for _, secret := range allSecrets {
					if strings.Contains(text, secret) {
						t.Errorf("%s (%s): %s came out", path, name, secret)
					}
				}
			}
		}
	}
	for _, path := range []string{"/monitor/api/queues", "/monitor/api/redis_info", "/monitor/api/queues/interactive/pending_tasks", "/v1/feeds/news?as=raw"} {
		rec := w.get(path, auth...)
		for _, secret := range allSecrets {
			if strings.Contains(rec.Body.String(), secret) {
				t.Errorf("%s: %s came out", path, secret)
			}
		}
	}
	for _, secret := range allSecrets {
		if strings.Contains(w.logs.String(), secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		rec := w.get("/assets/" + name)
		w.wantStatus(rec, 200)
		if got := rec.Header().Get("Content-Type"); got != kind {
			t.Errorf("%s: %q", name, got)
		}
		w.wantStatus(w.get("/assets/"+name, "If-None-Match", rec.Header().Get("ETag")), 304)
		if got := w.get("/assets/" + name + "?v=" + w.server.pages.tag).Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control %q", name, got)
		}
	}
	w.wantProblem(w.get("/assets/none.css"), 404, "no-route")
	w.wantProblem(w.get("/assets/layout.html"), 404, "no-route")
}

func TestWordsOnPages(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 350 * time.Millisecond: "350 ms", 12 * time.Second: "12 s", 2*time.Minute + 10*time.Second: "2 min 10 s",
		3 * time.Hour: "3 h", 3*time.Hour + 5*time.Minute + 9*time.Second: "3 h 5 min", 50 * time.Hour: "2 d 2 h", -time.Minute: "1 min",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
	now := time.Now()
	for d, want := range map[time.Duration]string{0: "now", 42 * time.Second: "in 42 s", -3 * time.Hour: "3 h ago"} {
		at := now.Add(d)
		if got := relative(&at, now, "none").Text; got != want {
			t.Errorf("relative(%v) = %q, want %q", d, got, want)
		}
	}
	if got := relative(nil, now, "none"); got.Text != "none" || got.At != nil {
		t.Errorf("relative(nil) = %+v", got)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", -1234567: "-1\u202f234\u202f567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
	if got := list([]string{"a", "b", "c", "d"}, 2); got != "a, b and 2 more" {
		t.Errorf("list: %q", got)
	}
}

func TestWhyAScheduleDoesNotTick(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for want, v := range map[string]ScheduleView{
		"":                           {State: "active"},
		"paused until it is resumed": {State: "paused"},
		"paused by ops until 2026-11-30 08:00 UTC":                 {State: "paused", PausedBy: "ops", PausedUntil: &now},
		"one waits, due 5 s ago: the last one's job has not ended": {State: "due", DueAt: instant(now.Add(-5 * time.Second)), Hold: "overlap"},
	} {
		if got := newScheduleRow(v, now).Note; got != want {
			t.Errorf("note %q, want %q", got, want)
		}
	}
}

func TestWhatAJobBrought(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		"": "", "null": "", "{}": "", "[1]": "",
		`{"what":"not modified","version":13,"items":0,"units":1,"via":["direct"]}`: "not modified: version 13, 1 unit, directly",
		`{"what":"new version","version":2,"items":1}`:                              "new version: version 2, 1 item",
		`"expired: nobody wants it any more"`:                                       "expired: nobody wants it any more",
	} {
		if got := newJobRow(jobs.Job{State: jobs.Done, Result: json.RawMessage(result)}, time.Now()).Why; got != want {
			t.Errorf("result %s: %q, want %q", result, got, want)
		}
	}
}

func TestAJobThatSleepsNoMoreDoesNotSayThatItWaits(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		"": "by hand",
		"snoozed until 2026-11-30T13:56:40Z: quota youtube: 30 of 30 used in 24s": "by hand, while it waited: quota youtube: 30 of 30 used in 24s",
		"attempt 1 of 5: source: status 500":                                      "by hand, after: attempt 1 of 5: source: status 500",
	} {
		if got := newJobRow(jobs.Job{State: jobs.Cancelled, LastError: before}, time.Now()).Why; got != want {
			t.Errorf("%q: %q, want %q", before, got, want)
		}
	}
	later := time.Now().Add(3 * time.Second)
	if got := newJobRow(jobs.Job{State: jobs.Done, EndedAt: &later}, time.Now()).When.Text; got != "now" {
		t.Errorf("a job that has ended by a clock that is ahead: %q, want now", got)
	}
	for _, awake := range []jobs.State{jobs.Running, jobs.Pending} {
		if got := newJobRow(jobs.Job{State: awake, LastError: "snoozed until 2026-11-30T13:56:40Z: quota youtube"}, time.Now()).Why; got != "" {
			t.Errorf("a job that is %s says %q", awake, got)
		}
	}
}

// A feed's owner can write titles of any length and direction: they fill no page,
// and turn no text but their own.
func TestTitlesOfStrangersStayInTheirPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("W", 9000)
	w.put("news", 2*time.Minute, nil, item("x", "X"))
	w.put("news", time.Minute, nil, item("x", "X"), item("a", long), item("b", "\u202eevil"))
	rec := w.get("/feeds/news", "Accept", "text/html")
	w.wantStatus(rec, 200)
	body := rec.Body.String()
	if strings.Contains(body, strings.Repeat("W", titleShown+1)) || !strings.Contains(body, strings.Repeat("W", 100)) {
		t.Error("a long title stands there whole, or not at all")
	}
	if n := strings.Count(body, "\u202eevil"); n < 2 || strings.Count(body, "<bdi>\u202eevil</bdi>") != n {
		t.Errorf("a title that turns its text stands %d times, not each of them on its own", n)
	}
}

func TestWithoutScriptsAPageCanBeHeldStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, turned := range map[string]string{"/": "/?still=yes", "/feeds?q=a&state=empty": "/feeds?q=a&amp;state=empty&amp;still=yes", "/jobs": "/jobs?still=yes"} {
		wantParts(t, w.page(path).Body.String(), `http-equiv="refresh"`, `<noscript><a href="`+turned+`">Pause updates</a></noscript>`)
		still := strings.ReplaceAll(turned, "&amp;", "&")
		body := w.page(still).Body.String()
		if strings.Contains(body, `http-equiv="refresh"`) {
			t.Errorf("%s comes anew", still)
		}
		wantParts(t, body, `<noscript><a href="`+strings.ReplaceAll(path, "&", "&amp;")+`">Go on updating</a></noscript>`, `id="pause"`)
	}
}

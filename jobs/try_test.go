package jobs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/testredis"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/quota"
)

func (w *world) trier() *Trier {
	w.t.Helper()
	f := fetch.New(fetch.Config{AllowPrivate: true, Timeout: 2 * time.Second, UserAgent: "my-feeds/1.0"})
	w.t.Cleanup(f.Close)
	c, err := NewCatalog(w.cfg.Feeds)
	if err != nil {
		w.t.Fatal(err)
	}
	return NewTrier(w.cfg, c, w.rdb, w.limiter, quota.NewLeases(w.rdb), w.pools, f, w.log)
}

func (w *world) try(params map[string]string) Trial {
	w.t.Helper()
	t, err := w.trier().Try(w.t.Context(), "news", params, func(name string) bool { return name == "page" })
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func TestTryTellsWhatWasSentWhatCameWhatWasReadAndWhatItCostAndStoresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(9, time.Hour), withFeed(withRobots), withFeed(func(f *Feed) {
		f.Cost, f.QuotaRunning = 3, 2
		f.Source.Headers = map[string]string{"X-Token": "canary-token-1234"}
		f.Source.Params = map[string]string{"key": "canary-query-5678"}
	}))
	s := w.site(text("User-agent: my-feeds\nDisallow: /private\nAllow: /feed\n"), func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Set-Cookie", "session=canary-cookie-9012")
		writeFeed(rw, 7)
	})
	got := w.try(map[string]string{"page": "2"})
	if !got.OK || !got.Sent || got.Failure != nil || got.RetryAfterMS != 0 {
		t.Errorf("%+v, %+v", got, got.Failure)
	}
	if u := got.Request.URL; !strings.HasPrefix(u, w.upstream.URL+"/feed.xml?") || !strings.Contains(u, "key=…") || !strings.Contains(u, "page=2") {
		t.Errorf("sent %s", u)
	}
	if r := got.Robots; r == nil || !r.Allowed || !r.Asked || r.Rules != 2 || r.Says != "line 3: Allow: /feed" || r.Agent != "my-feeds" {
		t.Errorf("robots %+v", r)
	}
	if a := got.Answer; a == nil || a.Status != 200 || a.Bytes == 0 || a.Type != "application/rss+xml" {
		t.Errorf("answer %+v", a)
	}
	if r := got.Read; r == nil || r.Items != 1 || len(r.First) != 1 || r.First[0].Title != "Number 7" || r.Next {
		t.Errorf("read %+v", r)
	}
	if c := got.Cost; c.Units != 3 || c.Quota != "q" || c.Requests != 2 || w.charged(0) != 3 {
		t.Errorf("cost %+v, %d charged", c, w.charged(0))
	}
	if got.Via == nil || got.Via.Pool != Direct {
		t.Errorf("via %+v", got.Via)
	}
	if line, err := json.Marshal(got); err != nil || strings.Contains(string(line), "canary") {
		t.Errorf("a secret, or %v: %s", err, line)
	}
	if !slices.ContainsFunc(got.Request.Header, func(h TrialHeader) bool { return h.Name == "X-Token" && h.Value == "" && h.Hidden == 17 }) {
		t.Errorf("headers %+v", got.Request.Header)
	}
	for key := range testredis.Dump(t, w.rdb) {
		if strings.Contains(key, "{feed:") || strings.Contains(key, "{job") || strings.HasPrefix(key, "asynq:") {
			t.Errorf("it left %s", key)
		}
	}
	if _, err := w.store.Get(t.Context(), feed.Key("news", nil), 0); err == nil {
		t.Error("a version was stored")
	}
	w.idle(quotaName("q"))
	// The second knows the file.
	if again := w.try(nil); again.Robots.Asked || again.Cost.Requests != 1 || len(s.log()) != 3 {
		t.Errorf("%+v, asked for %q", again.Robots, s.log())
	}
}

func TestTryByWhatKeepsItFromReading(t *testing.T) {
	t.Parallel()
	quotaOf := withQuota(9, time.Hour)
	for name, tt := range map[string]struct {
		opts  []option
		file  http.HandlerFunc
		page  http.HandlerFunc
		first func(*world)
		kind  string // "": refused before its request
		says  string
		sent  bool
		after time.Duration // least; 0: trying again later is no use
		most  time.Duration
	}{
		"quota":         {opts: []option{quotaOf}, first: func(w *world) { w.fill(9) }, says: "quota q: 9 of 9 used", after: 50 * time.Minute, most: time.Hour},
		"running limit": {opts: []option{quotaOf, withConfig(func(c *Config) { c.PerHost.Running = 1 })}, first: func(w *world) { w.hold() }, says: "1 run, which is its limit", after: time.Second, most: time.Minute},
		"closed host":   {first: func(w *world) { w.shutHost(time.Minute) }, says: "is closed until", after: 50 * time.Second, most: time.Minute},
		"host's delay":  {opts: []option{withFeed(withRobots), withConfig(func(c *Config) { c.PerHost.Delay = time.Minute })}, says: "one request in 1m", after: 50 * time.Second, most: time.Minute + time.Second},
		"empty pool":    {opts: []option{quotaOf, withFeed(func(f *Feed) { f.Pool = "proxies" })}, says: "no eligible endpoint", after: time.Second, most: emptyPoolWait},
		"robots forbid": {opts: []option{quotaOf, withFeed(withRobots)}, file: text("User-agent: *\nDisallow: /\n"), kind: robotsDisallowed, says: "line 2"},
		"robots fail":   {opts: []option{quotaOf, withFeed(withRobots)}, file: status(502), kind: robotsUnknown, says: "it answered 502", after: 50 * time.Second, most: time.Minute},
		"404":           {opts: []option{quotaOf}, page: status(404), kind: "not-found", says: "404", sent: true},
		"429": {opts: []option{quotaOf}, kind: "quota-rate", says: "429", sent: true, after: 110 * time.Second, most: 2 * time.Minute, page: func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "120")
			rw.WriteHeader(429)
		}},
		"no feed": {opts: []option{quotaOf}, page: text("<title>no</title>"), kind: "not-a-feed", says: "no feed", sent: true},
		"cut short": {opts: []option{quotaOf}, kind: "truncated", says: "EOF", sent: true, page: func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "999")
			_, _ = rw.Write([]byte("abc"))
		}},
		"nobody there": {opts: []option{quotaOf}, first: func(w *world) { w.upstream.Close() }, kind: "connect", says: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.opts...)
			s := w.site(tt.file, tt.page)
			if tt.first != nil {
				tt.first(w)
			}
			var before int64
			if len(w.quotas) > 0 {
				before = w.charged(0)
			}
			got := w.try(nil)
			if got.OK || got.Failure == nil || !strings.Contains(got.Failure.Reason, tt.says) {
				t.Fatalf("%+v: %+v", got, got.Failure)
			}
			f := got.Failure.Follows
			if (f == nil) != (tt.kind == "") || f != nil && f.Kind != tt.kind {
				t.Errorf("follows %+v, want %s", f, tt.kind)
			}
			wait := time.Duration(got.RetryAfterMS) * time.Millisecond
			if wait < tt.after || wait > tt.most {
				t.Errorf("again in %s, want %s to %s", wait, tt.after, tt.most)
			}
			pages := len(slices.DeleteFunc(s.log(), func(p string) bool { return p == "/robots.txt" }))
			if got.Sent != tt.sent || pages != map[bool]int{true: 1}[tt.sent] {
				t.Errorf("sent %v, and the page was asked for %d times", got.Sent, pages)
			}
			if len(w.quotas) > 0 {
				if took := w.charged(before); (took == 1) != tt.sent || got.Cost.Units != took {
					t.Errorf("%d units were taken, and it says %d", took, got.Cost.Units)
				}
			}
			if name == "429" {
				if s, err := w.limiter.State(t.Context(), "q"); err != nil || s.BlockedUntil.IsZero() || got.Failure.Closed != "quota q" {
					t.Errorf("the quota is closed until %s (%v); it says %q", s.BlockedUntil, err, got.Failure.Closed)
				}
			}
		})
	}
}

// hold takes the one lease of the host.
func (w *world) hold() {
	w.t.Helper()
	a, err := quota.NewLeases(w.rdb).Acquire(w.t.Context(), "another", time.Minute, quota.Running{Name: hostName(w.host()), Limit: 1})
	if err != nil || !a.Held {
		w.t.Fatal(a, err)
	}
}

func (w *world) shutHost(d time.Duration) {
	w.t.Helper()
	if err := w.client.BlockHost(w.t.Context(), w.host(), d, "by the test"); err != nil {
		w.t.Fatal(err)
	}
}

func TestTryOfWhatCanNeverWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := func(string) bool { return true }
	if _, err := w.trier().Try(t.Context(), "nosuch", nil, open); fmt.Sprintf("%T", err) != "*jobs.UnknownFeedError" {
		t.Errorf("%T %v", err, err)
	}
}

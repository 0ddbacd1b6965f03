package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/demo"
	"feedwarden/jobs"
	"feedwarden/jobs/source"
)

const tryConfig = `
redis: {url: embedded}
fetch: {allow_private: true, user_agent: "my-feeds/1.0 (+https://example.org/contact)"}
quotas:
  youtube: {windows: [{limit: 2, per: 1h}]}
pools:
  local: {list: proxies.txt, allow_private: true}
feeds:
  news: {source: syndication, url: FEED}
  trending:
    source: youtube
    method: videos.list
    key: "canary-api-key-123456"
    base_url: BASE
    params: {chart: mostPopular, regionCode: BD, maxResults: 10}
    quota: youtube
  proxied: {source: syndication, url: FEED, pool: local}
  gone: {source: syndication, url: "http://127.0.0.1:1/feed.xml"}
`

func TestTryWithEmbeddedRedisAndNoWorker(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	if err := os.WriteFile(p.dir+"/proxies.txt", []byte(tinyproxy(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write(tryConfig)
	try := func(want int, args ...string) jobs.Trial {
		t.Helper()
		out, errOut, code := p.run("", append([]string{"try"}, args...)...)
		var tr jobs.Trial
		if err := json.Unmarshal([]byte(out), &tr); err != nil || code != want || strings.Contains(out+errOut, "canary") || strings.Count(out, "\n") != 1 {
			t.Fatalf("%v: exit %d, want %d (%v): %s%s", args, code, want, err, out, errOut)
		}
		return tr
	}
	if tr := try(exitDone, "news"); tr.Read == nil || tr.Read.Items == 0 || tr.Via.Endpoint != jobs.Direct {
		t.Errorf("%+v", tr)
	}
	if tr := try(exitDone, "trending", "-p", "regionCode=PH"); tr.Cost.Units != 1 || !strings.Contains(tr.Request.URL, "regionCode=PH") ||
		!strings.Contains(tr.Request.URL, "chart=mostPopular") || tr.Read.Items == 0 {
		t.Errorf("%+v", tr)
	}
	try(exitDone, "trending")
	if tr := try(exitRefused, "trending"); tr.RetryAfterMS <= 0 || tr.Sent || tr.Cost.Units != 0 {
		t.Errorf("%+v", tr)
	}
	if tr := try(exitDone, "proxied"); tr.Via.Pool != "local" || tr.Via.URL == "" || strings.Contains(tr.Via.URL, "@") {
		t.Errorf("%+v", tr.Via)
	}
	if tr := try(exitFailed, "gone"); tr.Failure == nil || tr.Failure.Follows.Kind != "policy" && tr.Failure.Follows.Kind != "connect" {
		t.Errorf("%+v", tr.Failure)
	}
	if _, errOut, code := p.run("", "try", "tre"); code != exitUsage || !contains(errOut, `"trending"`) {
		t.Errorf("exit %d: %s", code, errOut)
	}
	if out, _, _ := p.run("", "feeds", "list"); contains(out, `"version":1`) {
		t.Errorf("something was stored: %s", out)
	}
}

func TestPageOfATry(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	good := jobs.Trial{
		Feed: "news", OK: true, Sent: true,
		Request: jobs.TrialRequest{Method: "GET", URL: "https://example.org/feed.xml?key=…", Header: []jobs.TrialHeader{{Name: "Accept", Value: "text/xml"}, {Name: "X-Token", Hidden: 9}}},
		Robots:  &jobs.TrialRobots{URL: "https://example.org/robots.txt", Status: 200, Rules: 3, Agent: "*", Allowed: true, DelayMS: 2000, Until: at},
		Via:     &jobs.TrialVia{Pool: "public", Endpoint: "ab12", URL: "http://203.0.113.9:8080"},
		Answer:  &jobs.TrialAnswer{Status: 200, URL: "https://example.org/new.xml", Redirects: 1, Type: "text/xml", Bytes: 1, TookMS: 120},
		Read:    &jobs.TrialRead{Items: 3, First: []source.Item{{ID: "1", Rank: 1, Title: "One\x1b[2Jtwo", URL: "https://example.org/1"}}, Lossy: true, Dropped: 2, Next: true},
		Cost:    jobs.TrialCost{Quota: "q", Units: 5, Requests: 2},
	}
	bad := jobs.Trial{
		Feed: "news", Sent: true, Request: good.Request, Via: good.Via, Cost: jobs.TrialCost{Quota: "q", Units: 5, Requests: 1}, RetryAfterMS: 120_000,
		Failure: &jobs.TrialFailure{Reason: "source: quota-rate: " + strings.Repeat("words ", 30), Closed: "quota q", Follows: &jobs.Follows{Kind: "quota-rate", Means: "429, `x`", Job: "snooze", Endpoint: "ok"}},
	}
	forbidden := jobs.Trial{
		Feed: "news", Request: good.Request,
		Robots:  &jobs.TrialRobots{URL: "https://example.org/robots.txt", Status: 200, Rules: 1, Agent: "my-feeds", Says: "line 2: Disallow: /", Until: at},
		Failure: &jobs.TrialFailure{Reason: "robots"},
	}
	unknown := forbidden
	unknown.Robots = &jobs.TrialRobots{URL: "https://example.org/robots.txt", Status: 503, Says: "it answered 503", Until: at}
	for _, tt := range []struct {
		name  string
		trial jobs.Trial
		says  []string
	}{
		{"good", good, []string{
			"feed       news · source syndication · pool public · quota q, 5 units a request\n",
			"robots     allows this page: 3 rules for *, none matches\n           https://example.org/robots.txt, known; holds until ", "Crawl-delay: one request in 2s\n",
			"sent       GET https://example.org/feed.xml?key=…\n           Accept: text/xml\n           and, with values hidden: X-Token\n",
			"through    http://203.0.113.9:8080 of pool public (ab12)\n",
			"answered   200 OK in 120ms · 1 byte · text/xml\n           after 1 redirect, from https://example.org/new.xml\n",
			"read       3 items, and a further page follows\n", "(lossy)\n", "2 left out: nothing to know them by\n",
			"cost       2 requests, 5 units of quota q\n", "stored     nothing; feedwarden enqueue news fetches and keeps it\n",
			"RANK  PUBLISHED  TITLE       URL                    ID\n1     —          One [2Jtwo", "and 2 more\n",
		}},
		{"refused", bad, []string{
			"refused    source: quota-rate: words", "again in 2m\n", "kind       quota-rate: 429, x\n", "so         a job: snooze\n           the endpoint: ok\n",
			"closed     quota q, for everybody, until then\n",
		}},
		{"forbidden", forbidden, []string{"robots     forbids this page, for my-feeds, line 2: Disallow: /\n", "not sent   GET "}},
		{"robots.txt that fails", unknown, []string{"robots     is not known: it answered 503\n"}},
	} {
		var out bytes.Buffer
		e := &env{ctx: t.Context(), out: &out, errOut: &out, width: 100}
		if err := newTryPage(e, jobs.Feed{Source: source.Config{Kind: "syndication"}, Pool: "public", Quota: "q", Cost: 5}, tt.trial).print(); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not say %q:\n%s", tt.name, want, out.String())
			}
		}
		for line := range strings.Lines(out.String()) {
			if n := columns(strings.TrimRight(line, "\n")); n > 100 {
				t.Errorf("%s: a line of %d columns: %s", tt.name, n, line)
			}
		}
	}
}

// What was sent is seen whole, however narrow the terminal.
func TestTryPageBreaksWhatIsTooLongAndCutsNothing(t *testing.T) {
	t.Parallel()
	long := "https://example.org/videos?chart=mostPopular&maxResults=50&part=snippet%2Cstatistics&regionCode=BD&x=動画"
	p := &tryPage{e: &env{width: 60}}
	p.part("sent", "", "GET "+long)
	text := ""
	for line := range strings.Lines(p.b.String()) {
		if n := columns(strings.TrimRight(line, "\n")); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
		text += strings.TrimSpace(line[tryIndent:])
	}
	if text != "GET"+long {
		t.Errorf("%q is not %q", text, "GET"+long)
	}
}

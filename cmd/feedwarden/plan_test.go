package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"feedwarden/internal/config"
	"feedwarden/internal/demo"
	"feedwarden/scheduler/plan"
)

// eighty is a config of 80 regions whose quota is gone in the morning. No Redis answers there.
func eighty(t *testing.T) string {
	t.Helper()
	var regions []string
	for i := range 80 {
		regions = append(regions, fmt.Sprintf("%c%c", 'A'+i/20, 'A'+i%20))
	}
	return writeConfig(t, `
redis: {url: "redis://127.0.0.1:1/0"}
quotas:
  youtube: {preset: youtube-2026-06}
feeds:
  trending:
    source: youtube
    method: videos.list
    key: an-api-key
    pages: 4
    params: {chart: mostPopular, regionCode: "{region}"}
    each: {region: [`+strings.Join(regions, ", ")+`]}
    schedule: "*/15 * * * *"
    quota: youtube
    ttl: 20m
  cats: {source: youtube, method: search.list, key: an-api-key, params: {q: cats}, quota: youtube, schedule: "0 * * * *", ttl: 2h}
  news: {source: syndication, url: "https://example.org/feed.xml", schedule: "7,37 6-22 * * *", ttl: 45m}
`)
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "feedwarden.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const pacificMidnight = "2026-11-30T00:00:00-08:00"

func TestPlanPageSaysAtAGlanceWhenTheQuotaIsGone(t *testing.T) {
	t.Parallel()
	f, err := config.Load(eighty(t), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	from, err := time.Parse(time.RFC3339, pacificMidnight)
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Run(t.Context(), planConfig(f), from, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	escape := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, width := range []int{80, 140} {
		page := newPlanPage(&env{width: width}, r).String()
		if strings.Contains(page, "\x1b") {
			t.Error("colour where none was asked for")
		}
		if coloured := newPlanPage(&env{width: width, colour: true}, r).String(); escape.ReplaceAllString(coloured, "") != page || coloured == page {
			t.Error("colour is all that may differ")
		}
		for line := range strings.Lines(page) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		if n := strings.Count(page, "\n"); n > 80 {
			t.Errorf("%d lines", n)
		}
		for _, want := range []string{
			"✗ 81 of 82 feeds cannot keep their ttl",
			"✗ gone at 07:45; next units at Tue 1 Dec 00:00, 16h15m later",
			"10000 per day    fullest: needs 30720 (307%), gets 10000",
			"30 Nov 00:00  █", "08:00  ░",
			"trending (80 feeds): every 15m → every 47m, and a ttl of 47m",
			"quota youtube:search.list  1 feed, 24 ticks\n  ✓ enough",
			"trending (80 feeds)", "✗ quota", "✗ pause",
			"No schedule is charged to youtube:videos.batchGetStats, youtube:videos.insert.",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("at %d columns it does not say %q:\n%s", width, want, page)
			}
		}
	}
}

func TestPlanNeedsNoRedisAndItsLinesHaveTheDetail(t *testing.T) {
	t.Parallel()
	out, errOut, code := command(t, "", "--config", eighty(t), "plan", "--from", pacificMidnight, "--for", "24h")
	if code != exitOver || !contains(errOut, "81 feeds cannot keep their ttl") {
		t.Errorf("exit %d, %s", code, errOut)
	}
	lines := objects(t, out)
	if len(lines) != 4+82 {
		t.Fatalf("%d lines", len(lines))
	}
	q := lines[0]
	hours := q["hours"].([]any)
	if q["kind"] != "quota" || q["name"] != "youtube" || q["granted"] != 10_000.0 || q["needed"] != 30_720.0 || len(hours) != 24 ||
		hours[0].(map[string]any)["start"] != pacificMidnight || q["fits"].(map[string]any)["found"] != true {
		t.Errorf("%v", q)
	}
	first := q["dry"].(map[string]any)["first"].(map[string]any)
	if first["from"] != "2026-11-30T07:45:00-08:00" || !strings.HasPrefix(first["until"].(string), "2026-12-01T00:00:00") {
		t.Errorf("dry %v", first)
	}
	f := lines[len(lines)-1]
	waits := f["waits"].([]any)
	if f["kind"] != "feed" || f["name"] != "trending-dt" || f["keeps_ttl"] != false || f["because"] != "quota" || f["refused"] != 1.0 || len(waits) != 1 {
		t.Fatalf("%v", f)
	}
	if w := waits[0].(map[string]any); w["tick"] != "2026-11-30T15:45:00Z" || w["end"] != "granted" || w["wait_ms"].(float64) < 16*3600*1000 {
		t.Errorf("%v", w)
	}
	if news := lines[5]; news["name"] != "news" || news["because"] != "pause" || news["quota"] != "" {
		t.Errorf("%v", news)
	}
}

func TestPlanAndCheckExitCodes(t *testing.T) {
	t.Parallel()
	// One feed that asks for twice what there is, and one that is late by its schedule.
	over := `
quotas: {q: {windows: [{limit: 12, per: 1h}]}}
feeds: {a: {source: syndication, url: "https://example.org/", quota: q, schedule: "SCHEDULE", TTL}}
`
	for _, c := range []struct {
		schedule, ttl string
		plan, check   int
		says          string
	}{
		{"@every 5m", "ttl: 10m", exitDone, exitDone, ""},
		{"@every 150s", "ttl: 10m", exitOver, exitOver, "1 feed cannot keep its ttl: a"},
		{"@every 150s", "cost: 1", exitOver, exitOver, "a"}, // over budget breaks the default ttl too
		{"@every 150s", "ttl: 2h", exitDone, exitDone, ""},  // it waits, but not for longer than it may
		{"@hourly", "ttl: 20m", exitOver, exitOver, "a"},    // by its schedule alone
		{"@hourly", "cost: 1", exitDone, exitDone, ""},      // nobody asked for 20m
		{"*/10 8-20 * * *", "ttl: 20m", exitOver, exitDone, "stale in between"},
	} {
		path := writeConfig(t, strings.NewReplacer("SCHEDULE", c.schedule, "TTL", c.ttl).Replace(over))
		_, planErr, code := command(t, "", "--config", path, "plan", "--from", "2026-11-30T00:00:00Z")
		if code != c.plan {
			t.Errorf("%s, %s: plan exits %d, want %d: %s", c.schedule, c.ttl, code, c.plan, planErr)
		}
		out, errOut, code := command(t, "", "--config", path, "check")
		if code != c.check || !contains(errOut, c.says) {
			t.Errorf("%s, %s: check exits %d, want %d: %s", c.schedule, c.ttl, code, c.check, errOut)
		}
		if got := objects(t, out)[0]["ok"]; got != (c.check == exitDone) {
			t.Errorf("%s, %s: ok is %v", c.schedule, c.ttl, got)
		}
	}
	path := writeConfig(t, strings.NewReplacer("SCHEDULE", "@every 1s", "TTL", "ttl: 1h").Replace(over))
	for _, args := range [][]string{{"--from", "yesterday"}, {"--from", "1969-12-31T23:59:59Z"}, {"--from", "9998-12-31T23:00:00Z"}, {"--for", "5"}, {"--for", "-1h"}, {"--for", "367d"}, {"--for", "366d"}} {
		if _, errOut, code := command(t, "", append([]string{"--config", path, "plan"}, args...)...); code != exitUsage || !contains(errOut, args[0]) {
			t.Errorf("%v: exit %d, %s", args, code, errOut)
		}
	}
}

func TestShownConfigsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		f, err := config.Load(path, func(string) (string, bool) { return "x", true })
		if err != nil {
			t.Fatal(err)
		}
		breaks, _, err := promises(&env{ctx: t.Context()}, f)
		if err != nil || len(breaks) > 0 {
			t.Errorf("%s: %+v, %v", path, breaks, err)
		}
	}
}

// The nights on which clocks change are the longest and the shortest.
func TestShippedExamplesPlanWithZero(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		f, err := config.Load(path, func(string) (string, bool) { return "x", true })
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"2026-03-07T00:00:00Z", "2026-10-24T00:00:00Z", "2026-10-31T00:00:00Z"} {
			at, err := time.Parse(time.RFC3339, from)
			if err != nil {
				t.Fatal(err)
			}
			r, err := plan.Run(t.Context(), planConfig(f), at, 72*time.Hour)
			if err != nil || !r.Kept() {
				t.Errorf("%s from %s: %v; %s", path, from, err, broken(r.Feeds))
			}
		}
	}
}

func TestThePaceIsInPlainDigits(t *testing.T) {
	t.Parallel()
	for pace, want := range map[float64]string{0.00694444: "0.006944", 416.6667: "416.7", 20000: "20000", 123456.7: "123457", 1e12: "1000000000000"} {
		if got := paceText(pace); got != want {
			t.Errorf("%g: %s, want %s", pace, got, want)
		}
	}
}

func TestBarsArePaintedRunByRun(t *testing.T) {
	t.Parallel()
	p := &planPage{colour: true}
	if got, want := p.paintBar([]rune("██│██░░ ")), "\x1b[32m██\x1b[0m\x1b[2m│\x1b[0m\x1b[32m██\x1b[0m\x1b[31m░░\x1b[0m "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHoursOfALongPlanShareRows(t *testing.T) {
	t.Parallel()
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 10, 28, 5, 30, 0, 0, la)
	for _, c := range []struct{ hours, per int }{{1, 1}, {25, 1}, {48, 2}, {24 * 7, 8}, {24 * 20, 24}, {24 * 366, 28 * 24}} {
		var all []plan.Hour
		for i := range c.hours {
			at := start.Add(time.Duration(i) * time.Hour)
			all = append(all, plan.Hour{Start: at, End: at.Add(time.Hour), Needed: 3, Granted: 2})
		}
		rows, per := gather(all)
		var needed, granted int64
		for i, r := range rows {
			needed, granted = needed+r.Needed, granted+r.Granted
			if i > 0 && !r.Start.Equal(rows[i-1].End) {
				t.Errorf("%d hours: a hole before %s", c.hours, r.Start)
			}
		}
		if per != c.per || len(rows) > mostRows || needed != int64(3*c.hours) || granted != int64(2*c.hours) {
			t.Errorf("%d hours: %d rows of %d, %d needed, %d granted", c.hours, len(rows), per, needed, granted)
		}
	}
	// The hour that comes twice is told apart.
	twice := time.Date(2026, 11, 1, 0, 0, 0, 0, la)
	if a, b := hourLabel(twice.Add(time.Hour), twice), hourLabel(twice.Add(2*time.Hour), twice.Add(time.Hour)); a != "01:00" || b != "PST 01:00" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestExhaustedBucketIsBlockedAloneUntilItsDayEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(`
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true}
quotas:
  daily: {preset: youtube-2026-06}
feeds:
  trending: {source: youtube, method: videos.list, key: an-api-key, base_url: BASE, params: {chart: mostPopular, regionCode: BD}, quota: daily}
  cats: {source: youtube, method: search.list, key: an-api-key, base_url: BASE, params: {q: cats}, quota: daily}
`)
	p.upstream.Intercept(searchIsExhausted)
	p.start("worker")
	for feed, want := range map[string]int{"trending": exitDone, "cats": exitRefused} {
		if out, errOut, code := p.run("", "enqueue", feed, "--wait", "5s"); code != want {
			t.Errorf("%s: exit %d, want %d: %s%s", feed, code, want, out, errOut)
		}
	}
	out, _, code := p.run("", "quota", "list")
	if code != exitDone {
		t.Fatalf("exit %d", code)
	}
	blocked := map[string]bool{}
	for _, q := range objects(t, out) {
		blocked[q["name"].(string)] = q["blocked_until"] != nil
	}
	want := map[string]bool{"daily": false, "daily:search.list": true, "daily:videos.batchGetStats": false, "daily:videos.insert": false}
	if fmt.Sprint(blocked) != fmt.Sprint(want) {
		t.Errorf("blocked %v, want %v", blocked, want)
	}
	web := p.start("web").url()
	var q struct {
		Name    string
		Windows []struct{ Limit int64 }
	}
	if status, _ := get(t, web+"/v1/quotas/daily:search.list", &q); status != 200 || q.Name != "daily:search.list" || len(q.Windows) != 2 || q.Windows[0].Limit != 100 {
		t.Errorf("%d %+v", status, q)
	}
	if status, _ := get(t, web+"/", nil); status != 200 {
		t.Errorf("the dashboard answers %d", status)
	}
	if out, errOut, code := p.run("", "quota", "show", "daily:search.list"); code != exitDone || !contains(out, `"name":"daily:search.list"`) {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
}

// searchIsExhausted answers searches as the API does when its day's budget is spent.
func searchIsExhausted(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/search") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte(`{"error":{"code":403,"message":"exhausted","errors":[{"domain":"youtube.quota","reason":"quotaExceeded"}]}}`))
	return true
}

// What schedules do not get of a limit is named where they would take it.
func TestPlanNamesTheReserveWhereItIsMissed(t *testing.T) {
	t.Parallel()
	for reserve, want := range map[string]string{"40": "gets 60; 40 are the reserve\n", "0": "gets 100\n"} {
		f, err := config.Parse("f.yaml", []byte(`
quotas: {q: {windows: [{limit: 100, per: 24h}], reserve: `+reserve+`}}
feeds:
  a: {source: syndication, url: "https://example.org/", schedule: "*/10 * * * *", quota: q}
`), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		r, err := plan.Run(t.Context(), planConfig(f), time.Now(), 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if page := newPlanPage(&env{width: 80}, r).String(); !strings.Contains(page, want) {
			t.Errorf("%s kept: no %q in\n%s", reserve, want, page)
		}
	}
}

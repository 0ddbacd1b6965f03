package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"feedwarden/jobs/source"
)

const oneQuota = "quotas:\n  q: {windows: [{limit: 10000, per: 24h}], PRESET}\n"

func TestEachMakesAFeedOfEveryCombination(t *testing.T) {
	f := mustParse(t, `
feeds:
  top:
    source: syndication
    url: "https://{lang}.example.org/{kind}"
    params: {l: "{lang}", both: "{kind}/{lang}", "{lang}": plain, other: '{"a":1} {} {not this}'}
    headers: {X-Kind: "{kind}"}
    each: {lang: [NO, 2], kind: [Daily, on]}
`)
	if got := names(f.Feeds); !slices.Equal(got, []string{"top-2-daily", "top-2-on", "top-no-daily", "top-no-on"}) {
		t.Fatalf("feeds are %v", got)
	}
	one := feedNamed(t, f, "top-no-on")
	if got := one.URL.Reveal(); got != "https://NO.example.org/on" {
		t.Errorf("url is %s", got)
	}
	if got, want := RevealAll(one.Params), map[string]string{"l": "NO", "both": "on/NO", "{lang}": "plain", "other": `{"a":1} {} {not this}`}; !maps.Equal(got, want) {
		t.Errorf("params are %v, want %v", got, want)
	}
	if got := one.Headers["X-Kind"].Reveal(); got != "on" {
		t.Errorf("header is %q", got)
	}
	if one.Entry != "top" || one.Index != 1 || one.Of != 4 || !maps.Equal(one.Each, map[string]string{"lang": "NO", "kind": "on"}) {
		t.Errorf("it is %s, %d of %d, %v", one.Entry, one.Index, one.Of, one.Each)
	}
}

func TestPlaceholdersAreNotReplacedInWhatTheEnvironmentHolds(t *testing.T) {
	f := mustParse(t, `{feeds: {a: {source: syndication, url: "https://example.org/{x}", headers: {X-A: "${BRACES}-{x}"}, each: {x: [b]}}}}`)
	if got := f.Feeds[0].Headers["X-A"].Reveal(); got != "{x}-b" {
		t.Errorf("header is %q", got)
	}
}

func TestTheEnvironmentFillsScalars(t *testing.T) {
	f := mustParse(t, `
worker: {concurrency: "${N}"}
web: {insecure: "${YES}"}
fetch: {timeout: "${N}s", user_agent: 'a ${STRUCTURE} $${N} $N ${AGAIN}'}
queues:
  scheduled:
    limit: ${N}
`)
	if f.Worker.Concurrency != 7 || !f.Web.Insecure || f.Fetch.Timeout.Seconds() != 7 || f.Queues["scheduled"].Limit != 7 {
		t.Errorf("got %+v", f)
	}
	if got, want := f.Fetch.UserAgent, "a x: y, z ${N} $N ${N}"; got != want {
		t.Errorf("user agent is %q, want %q", got, want)
	}
}

func TestVariablesStandNotInKeys(t *testing.T) {
	_, err := Parse("f.yaml", []byte(`"${WORD}": 1`), getenv)
	if err == nil || !strings.Contains(err.Error(), `unknown key "${WORD}"`) {
		t.Errorf("error is %v", err)
	}
}

func TestCostsComeFromTheMethodUnlessWritten(t *testing.T) {
	for _, c := range []struct {
		preset, keys string
		want         int64
	}{
		{"", "method: videos.list, params: {chart: mostPopular}", 1},
		{"", "method: search.list, params: {q: x}", 1},
		{"preset: youtube-legacy", "method: search.list, params: {q: x}", 100},
		{"preset: youtube-legacy", "method: search.list, params: {q: x}, cost: 3", 3},
	} {
		src := strings.ReplaceAll(oneQuota, "PRESET", c.preset) + "feeds:\n  a: {source: youtube, key: k, quota: q, " + c.keys + "}\n"
		if got := mustParse(t, strings.ReplaceAll(src, ", }", "}")).Feeds[0].Cost; got != c.want {
			t.Errorf("%s %s: cost %d, want %d", c.preset, c.keys, got, c.want)
		}
	}
}

func TestPagesAllMeansToTheEnd(t *testing.T) {
	f := mustParse(t, "feeds:\n  a: {source: youtube, key: k, method: videos.list, params: {chart: mostPopular}, pages: all}\n")
	if f.Feeds[0].Pages != 0 {
		t.Errorf("pages is %d, want 0", f.Feeds[0].Pages)
	}
}

func TestTheReserveIsKeptInWindowsLargerThanIt(t *testing.T) {
	q := Quota{Reserve: 500}
	if got := q.Room(Window{Limit: 10000}); got != 9500 {
		t.Errorf("room in 10000 is %d, want 9500", got)
	}
	if got := q.Room(Window{Limit: 300}); got != 300 {
		t.Errorf("room in 300 is %d, want 300", got)
	}
}

func TestWhatCanHardlyBeMeantIsAWarning(t *testing.T) {
	f := mustParse(t, `feeds:
  a: {source: youtube, key: k, method: videos.list, params: {chart: mostPopular}, each: {region: [BD, PH]}}
`)
	want := "f.yaml:2:3: feeds.a has no quota; so nothing keeps to the key's daily budget\n" +
		"f.yaml:2:90: feeds.a.each: {region} stands in no url, params or headers; so these feeds all fetch the same"
	if got := f.Warnings.Error(); got != want {
		t.Errorf("warnings are\n%s\nwant\n%s", got, want)
	}
}

func TestAddressesThatWillBeRefusedAreAWarning(t *testing.T) {
	const feeds = `
feeds:
  a: {source: syndication, url: "http://127.0.0.1:8080/{x}.xml", each: {x: [a, b]}}
  b: {source: syndication, url: "http://localhost/feed.xml"}
  c: {source: json, url: "http://[fd00::1]/", items: .}
  d: {source: html, url: "http://intranet:8080/", items: p}
  e: {source: syndication, url: "https://203.0.113.9/feed.xml"}
  f: {source: syndication, url: "https://example.org/feed.xml"}
  g: {source: push}
`
	var places []string
	for _, w := range mustParse(t, feeds).Warnings {
		places = append(places, fmt.Sprintf("%d:%d", w.Line, w.Col))
	}
	if got := strings.Join(places, " "); got != "3:3 4:3 5:3 6:3" {
		t.Errorf("warnings at %s", got)
	}
	if w := mustParse(t, "fetch: {allow_private: true}"+feeds).Warnings; len(w) > 0 {
		t.Errorf("where it is allowed: %v", w)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	f := mustParse(t, `
feeds:
  a: &base
    source: syndication
    url: &u https://example.org/a
    ttl: 5m
    history: 3
  b:
    <<: *base
    ttl: 7m
  c:
    <<: [*base, {attempts: 2, ttl: 9m}]
    url: *u
`)
	b, c := feedNamed(t, f, "b"), feedNamed(t, f, "c")
	if b.URL.Reveal() != "https://example.org/a" || b.TTL.Minutes() != 7 || b.History != 3 {
		t.Errorf("b is %+v", b)
	}
	if c.TTL.Minutes() != 5 || c.Attempts != 2 || c.URL.Reveal() != "https://example.org/a" {
		t.Errorf("c is %+v", c)
	}
}

func TestSeamsAreAskedInsteadOfThePackages(t *testing.T) {
	f := mustParse(t, `feeds:
  a: {source: youtube, key: k, method: my.method, schedule: whenever, cost: 4}
  b: {source: youtube, key: k, method: my.method}
`,
		WithSchedules(func(expr, zone string) error { return nil }),
		WithCosts(func(preset, method string) (string, int64, bool) { return "default", 9, method == "my.method" }),
		WithSources(func(source.Config) []string { return nil }),
	)
	if f.Feeds[0].Cost != 4 || f.Feeds[1].Cost != 9 {
		t.Errorf("costs are %d and %d, want 4 and 9", f.Feeds[0].Cost, f.Feeds[1].Cost)
	}
}

func TestKeysAndTextsInUnusualForms(t *testing.T) {
	f := mustParse(t, `
? feeds
: &all
  ? &name a
  : source: !!str syndication
    url: >-
      https://example.org/x
    params: {1: !!str 2, true: yes, 1.5: .inf}
`)
	a := feedNamed(t, f, "a")
	if got := a.URL.Reveal(); got != "https://example.org/x" {
		t.Errorf("url is %q", got)
	}
	if got, want := RevealAll(a.Params), map[string]string{"1": "2", "true": "yes", "1.5": ".inf"}; !maps.Equal(got, want) {
		t.Errorf("params are %v, want %v", got, want)
	}
}

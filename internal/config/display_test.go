package config

import (
	"reflect"
	"testing"
)

// What Effective prints, where there is nothing to redact, is a config file
// that means the same.
func TestEffectiveReadsBackTheSame(t *testing.T) {
	src := `
web: {listen: "0.0.0.0:80", insecure: true, hosts: [a.example.org], tls: {cert: /a, key: /b}, base_path: /x}
redis: {data: /data}
quotas:
  a: {windows: [{limit: 10, per: 1d}, {limit: 5, per: 90s}], reserve: 3, running: 2, grace: 1m30s}
  b: {preset: youtube-legacy, windows: [{limit: 10, per: day, timezone: Asia/Dhaka}]}
  c: {preset: youtube-2026-06, reserve: 500}
pools:
  p: {policy: sticky, start: 12, require: {https: true, max_latency: 1500ms}, list: /tmp/x.txt, quarantine: {base: 2h, blame_target_above: 1}}
fetch: {allow_hosts: ["*.example.org"], max_body: 1000KB, per_host: {delay: 1s}, per_source: {youtube: 4, json: 2}}
feeds:
  one:
    source: syndication
    url: "https://example.org/{x}"
    params: {number: 50, zero: 007, yes: "yes", "null": "null", tilde: "~", star: "*/15", empty: "", colon: "a: b", hash: "a #b", dash: "- x", at: "@x", dollar: "$${HOME}", quote: "\"'", lines: "a\nb", space: " a ", 0x: 0x10, true: true, exp: 1e3}
    headers: {Accept: "*/*"}
    each: {x: [NO, "1"]}
    schedule: "@every 1d"
    timezone: America/New_York
  two: {source: json, url: "https://example.org/", items: ".data[] | {a: .b}", map: {id: ".[\"x\"]", n: .n}, paging: {cursor: .next, param: after}, pages: all}
  three: {source: html, url: "https://example.org/", items: "a > b", next: {css: "a.next@href", max: 3}, ban: {css: "#captcha", text: "unusual traffic", status: [403, 429]}, expires: 1h, spread: 1h1s}
  search: {source: syndication, url: "https://example.org/", quota: "c:search.list"}
  four: {source: push, ttl: 36h, sinks: [{file: "{feed}/{version}.csv.gz"}, {stream: s}, {stdout: true}, {webhook: "https://example.org/"}]}
`
	first := mustParse(t, src)
	text := first.Effective()
	second, err := Parse("f.yaml", []byte(text), getenv)
	if err != nil {
		t.Fatalf("it does not read back: %v\n%s", err, text)
	}
	for _, f := range []*File{first, second} {
		for i := range f.Quotas {
			f.Quotas[i].Pos = Pos{}
		}
		for i := range f.Pools {
			f.Pools[i].Pos, f.Pools[i].ListPos = Pos{}, Pos{}
		}
		for i := range f.Feeds {
			feed := &f.Feeds[i]
			feed.Pos, feed.Entry, feed.Index, feed.Of, feed.Each, feed.TTLGiven = Pos{}, "", 0, 0, nil, false
		}
		f.Web.TLS.Pos = Pos{}
		f.Warnings = nil
	}
	if !reflect.DeepEqual(first, second) {
		t.Errorf("it reads back as\n%s\nnot as\n%s", second.Effective(), text)
	}
}

package main

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/demo"
)

// The config has whatever a metric can be about.
const metricsConfig = `
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true}
quotas:
  small: {windows: [{limit: 1000, per: 1m}], running: 4}
pools:
  local: {list: proxies.txt, allow_private: true}
feeds:
  news: {source: syndication, url: FEED, schedule: "@every 1s", quota: small, ttl: 30s, sinks: [{file: "out/{feed}-{version}.json"}]}
  spare: {source: syndication, url: FEED, pool: local}
`

var (
	documented = regexp.MustCompile("(?m)^\\| `(feedwarden_\\w+)` \\| (\\w+) \\| ([^|]*) \\|")
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`)
	sampleLine = regexp.MustCompile(`(?m)^(feedwarden_\w+)(?:\{([^}]*)\})? `)
	labelName  = regexp.MustCompile(`(\w+)="`)
)

// Every family of a running server stands in docs/metrics.md with its type and
// labels, and every one that stands there is given.
func TestMetricsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
		want[m[1]] = strings.TrimSpace(m[2] + " " + strings.ReplaceAll(strings.TrimSpace(m[3]), "`", ""))
	}
	p := newPlace(t, demo.Options{})
	if err := os.WriteFile(filepath.Join(p.dir, "proxies.txt"), []byte("http://127.0.0.1:9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write(metricsConfig)
	url := p.start("serve").url()
	eventually(t, 30*time.Second, func() string {
		resp, err := http.Get(url + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		got := families(string(body))
		for name := range want {
			if got[name] == "" {
				return name + " is documented and not given"
			}
		}
		for name, is := range got {
			if want[name] != is {
				t.Fatalf("%s: given is %q, docs/metrics.md says %q", name, is, want[name])
			}
		}
		return ""
	})
}

// families are our metrics with type and labels.
func families(body string) map[string]string {
	types, labels := map[string]string{}, map[string]map[string]bool{}
	for _, m := range typeLine.FindAllStringSubmatch(body, -1) {
		if strings.HasPrefix(m[1], "feedwarden_") {
			types[m[1]] = m[2]
			labels[m[1]] = map[string]bool{}
		}
	}
	for _, m := range sampleLine.FindAllStringSubmatch(body, -1) {
		name := m[1]
		if types[name] == "" { // of a histogram
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		}
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				labels[name][l[1]] = true
			}
		}
	}
	out := map[string]string{}
	for name, kind := range types {
		out[name] = strings.TrimSpace(kind + " " + strings.Join(slices.Sorted(maps.Keys(labels[name])), ", "))
	}
	return out
}

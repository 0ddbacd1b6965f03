package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func nothingSet(string) (string, bool) { return "", false }

func allSet(string) (string, bool) { return "a-value-of-some-length", true }

func mustParse(t *testing.T, src string, opts ...Option) *File {
	t.Helper()
	f, err := Parse("f.yaml", []byte(src), getenv, opts...)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return f
}

func feedNamed(t *testing.T, f *File, name string) Feed {
	t.Helper()
	for _, one := range f.Feeds {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("no feed %q", name)
	return Feed{}
}

func names(feeds []Feed) []string {
	var out []string
	for _, f := range feeds {
		out = append(out, f.Name)
	}
	return out
}

func TestDefaultsAreThoseOfTheReference(t *testing.T) {
	f := mustParse(t, "feeds:\n  news: {source: syndication, url: \"https://example.org/\"}\nquotas:\n  q: {windows: [{limit: 1, per: 1s}]}\npools:\n  p:\n")
	feed := f.Feeds[0]
	for _, c := range []struct {
		key       string
		got, want any
	}{
		{"redis.url", f.Redis.URL.Reveal(), "embedded"},
		{"redis.data", f.Redis.Data, "feedwarden-data"},
		{"web.listen", f.Web.Listen, "127.0.0.1:8080"},
		{"web.tokens", len(f.Web.Tokens), 0},
		{"web.hosts", len(f.Web.Hosts), 0},
		{"web.insecure", f.Web.Insecure, false},
		{"web.base_path", f.Web.BasePath, "/"},
		{"web.tls", f.Web.TLS, TLS{}},
		{"worker.concurrency", f.Worker.Concurrency, 32},
		{"worker.interactive_slots", f.Worker.InteractiveSlots, 4},
		{"worker.shutdown", f.Worker.Shutdown, 20 * time.Second},
		{"queues.interactive.limit", f.Queues["interactive"].Limit, int64(1000)},
		{"queues.scheduled.limit", f.Queues["scheduled"].Limit, int64(100000)},
		{"fetch.user_agent", f.Fetch.UserAgent, "example-feeds/1.0 (+https://example.org/contact)"},
		{"fetch.timeout", f.Fetch.Timeout, 30 * time.Second},
		{"fetch.max_body", f.Fetch.MaxBody, int64(16 * 1024 * 1024)},
		{"fetch.allow_private", f.Fetch.AllowPrivate, false},
		{"fetch.allow_hosts", len(f.Fetch.AllowHosts), 0},
		{"fetch.per_host", f.Fetch.PerHost, PerHost{Delay: 0, Running: 8}},
		{"fetch.per_source", len(f.Fetch.PerSource), 0},
		{"fetch.robots", f.Fetch.Robots, true},
		{"quota reserve", f.Quotas[0].Reserve, int64(0)},
		{"quota running", f.Quotas[0].Running, 0},
		{"quota grace", f.Quotas[0].Grace, 30 * time.Second},
		{"pool policy", f.Pools[0].Policy, "least-used"},
		{"pool alone", f.Pools[0].Alone, "reuse"},
		{"pool start", f.Pools[0].Start, "floor"},
		{"pool cap", f.Pools[0].Cap, 8},
		{"pool lease", f.Pools[0].Lease, 60 * time.Second},
		{"pool gateway", f.Pools[0].Gateway, false},
		{"pool require", f.Pools[0].Require, (*Require)(nil)},
		{"pool quarantine", f.Pools[0].Quarantine, Quarantine{30 * time.Second, time.Hour, 0.5}},
		{"pool list", f.Pools[0].List, ""},
		{"pool allow_private", f.Pools[0].AllowPrivate, false},
		{"feed pages", feed.Pages, 1},
		{"feed timezone", feed.Timezone, "UTC"},
		{"feed jitter", feed.Jitter, time.Duration(0)},
		{"feed overlap", feed.Overlap, "skip"},
		{"feed catch_up", feed.CatchUp, CatchUp{"latest", time.Hour}},
		{"feed quota", feed.Quota, ""},
		{"feed cost", feed.Cost, int64(1)},
		{"feed pool", feed.Pool, "direct"},
		{"feed attempts", feed.Attempts, 5},
		{"feed max_snooze", feed.MaxSnooze, 24 * time.Hour},
		{"feed spread", feed.Spread, time.Duration(0)},
		{"feed expires", feed.Expires, time.Duration(0)},
		{"feed history", feed.History, 10},
		{"feed sinks", len(feed.Sinks), 0},
		{"feed ttl", feed.TTL, 20 * time.Minute},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("default of %s is %v, want %v", c.key, c.got, c.want)
		}
	}
}

func TestEmptySectionsReadAsDefaults(t *testing.T) {
	got := mustParse(t, "redis:\nweb:\nworker:\nqueues:\nfetch:\nquotas:\npools:\nfeeds:\n")
	want := mustParse(t, "web: {}\n")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheReferenceIsReadWhole(t *testing.T) {
	for _, file := range []string{"testdata/reference.yaml", "testdata/reference-sources.yaml"} {
		if _, err := Load(file, allSet); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestTheReferencesValuesArrive(t *testing.T) {
	f, err := Load("testdata/reference.yaml", allSet)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(f.Feeds), strings.Fields("news trending-bd trending-br trending-gb trending-hr trending-in trending-jp trending-ph trending-us"); !slices.Equal(got, want) {
		t.Errorf("feeds are %v, want %v", got, want)
	}
	in := feedNamed(t, f, "trending-in")
	for _, c := range []struct {
		key       string
		got, want any
	}{
		{"entry", in.Entry, "trending"},
		{"place", []int{in.Index, in.Of}, []int{3, 8}},
		{"each", in.Each, map[string]string{"region": "IN"}},
		{"params", RevealAll(in.Params), map[string]string{"chart": "mostPopular", "regionCode": "IN", "maxResults": "50"}},
		{"key", in.Key.Reveal(), "a-value-of-some-length"},
		{"base_url", in.BaseURL.Reveal(), "https://www.googleapis.com/youtube/v3"},
		{"jitter", in.Jitter, 30 * time.Second},
		{"sinks", len(in.Sinks), 4},
		{"token", f.Web.Tokens[0].Role, "write"},
		{"windows", f.Quotas[0].Windows, []Window{{Limit: 10000, Per: 24 * time.Hour}, {Limit: 300, Per: time.Minute}}},
		{"calendar", f.Quotas[1].Windows[0].Location.String(), "America/Los_Angeles"},
		{"require", *f.Pools[0].Require, Require{HTTPS: true, MaxLatency: 5 * time.Second, Anonymous: true, Every: time.Hour}},
		{"list", f.Pools[0].List, "testdata/proxies.txt"},
		{"data", f.Redis.Data, "testdata/feedwarden-data"},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s is %v, want %v", c.key, c.got, c.want)
		}
	}
	s, err := Load("testdata/reference-sources.yaml", allSet)
	if err != nil {
		t.Fatal(err)
	}
	releases := feedNamed(t, s, "releases")
	if got := releases.URL.Reveal(); got != "https://api.example.org/releases?page={page}" {
		t.Errorf("the URL's {page} became %q", got)
	}
	if got := *releases.Paging.Page; got != (PageNumbers{From: 1, Max: 5}) {
		t.Errorf("paging is %v", got)
	}
	if releases.Pages != 5 || feedNamed(t, s, "board").Pages != 3 {
		t.Errorf("%d and %d pages at most", releases.Pages, feedNamed(t, s, "board").Pages)
	}
	if got := *feedNamed(t, s, "board").Next; got != (NextPage{CSS: "a.next@href", Max: 3}) {
		t.Errorf("next is %v", got)
	}
}

func TestExamplesLoadClean(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples are %v (%v)", files, err)
	}
	for _, file := range files {
		f, err := Load(file, allSet)
		if err != nil {
			t.Errorf("%s:\n%v", file, err)
			continue
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%s:\n%v", file, f.Warnings)
		}
		if len(f.Feeds) == 0 {
			t.Errorf("%s has no feeds", file)
		}
		src, _ := os.ReadFile(file)
		for _, must := range []string{"# ", "feedwarden --config " + strings.TrimPrefix(file, "../../") + " serve"} {
			if !strings.Contains(string(src), must) {
				t.Errorf("%s does not say %q", file, must)
			}
		}
	}
}

func TestFilesThatAreNoConfig(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ src, want string }{
		"empty":          {"", ": the file is empty; want at least one of redis, web, "},
		"comments alone": {"# nothing\n\n", ": the file is empty; "},
		"a NUL":          {"web:\n  x\x00: 1\n", ":2:4: control character U+0000; "},
		"not UTF-8":      {"web: {listen: \"é\xff\"}\n", ":1:17: byte 0xff is not UTF-8; "},
		"UTF-16":         {"\xff\xfew\x00e\x00b\x00", ":1:1: the file is UTF-16; want UTF-8"},
		"too large":      {strings.Repeat("# long\n", 400_000), ": the file is larger than 2MiB; "},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, []byte(c.src), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, nothingSet); err == nil || !strings.Contains(err.Error(), path+c.want) {
			t.Errorf("%s: error is %v, want …%s…", name, err, c.want)
		}
	}
	missing := filepath.Join(dir, "missing.yaml")
	_, err := Load(missing, nothingSet)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), missing+": cannot be read: no such file") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Load(dir, nothingSet); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}

func TestForeignLineEndsAndAByteOrderMark(t *testing.T) {
	src := "\xef\xbb\xbfweb:\r\n  hosts: [\"a\r\n  b\"]\r\n  lisen: x\r\n"
	_, err := Parse("f.yaml", []byte(src), nothingSet)
	want := "f.yaml:2:11: web.hosts[0]: \"a b\" is no host name; want a name alone, such as feeds.example.org: no scheme, port or path\n" +
		`f.yaml:4:3: unknown key "lisen" in web; did you mean "listen"?`
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}

func TestRelativeNamesAreNeighboursOfTheFile(t *testing.T) {
	src := "redis: {data: db}\npools:\n  a: {list: lists/p.txt}\n  b: {list: /abs/p.txt}\n"
	f, err := Parse("/etc/feedwarden/f.yaml", []byte(src), nothingSet)
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{f.Redis.Data, f.Pools[0].List, f.Pools[1].List}; !slices.Equal(got, []string{"/etc/feedwarden/db", "/etc/feedwarden/lists/p.txt", "/abs/p.txt"}) {
		t.Errorf("names are %v", got)
	}
}

func TestASmallWorkerKeepsASlotForScheduledJobs(t *testing.T) {
	for concurrency, want := range map[string]int{"1": 0, "3": 2, "5": 4, "100": 4} {
		if got := mustParse(t, "worker: {concurrency: "+concurrency+"}").Worker.InteractiveSlots; got != want {
			t.Errorf("concurrency %s: %d interactive slots, want %d", concurrency, got, want)
		}
	}
}

func TestLoopbackNeedsNoTokens(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:80", "127.8.8.8:0", "[::1]:80", "localhost:80", "[::ffff:127.0.0.1]:80"} {
		mustParse(t, "web: {listen: \""+listen+"\"}")
	}
	mustParse(t, `web: {listen: "0.0.0.0:80", insecure: true}`)
	mustParse(t, `web: {listen: "0.0.0.0:80", tokens: [{name: a, token: 0123456789abcdef, role: read}]}`)
}

func TestRedisURLsThatAreRight(t *testing.T) {
	for _, u := range []string{
		"redis://localhost", "redis://:p%40ss@10.0.0.1:6379/3", "rediss://acl:pw@[::1]:6379/0?x=y",
		"redis+sentinel://u:p@a:26379,b:26379/mymaster", "redis+cluster://a:7000,b:7001,c:7002",
	} {
		if got := mustParse(t, "redis: {url: \""+u+"\"}").Redis.URL.Reveal(); got != u {
			t.Errorf("%s became %s", u, got)
		}
	}
}

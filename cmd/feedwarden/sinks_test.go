package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/demo"
)

const sinksConfig = `
redis: {url: "REDIS"}
worker: {shutdown: 3s}
fetch: {allow_private: true}
feeds:
  news:
    source: syndication
    url: FEED
    sinks:
      - {file: "data/{feed}/{date}/{version}.ndjson.zst"}
      - {webhook: "HOOK/canary-path?token=canary-query", secret: canary-hook-secret}
      - {stream: news-out}
      - {stdout: true}
`

func TestVersionGoesToEverySinkOfTheConfigAndIsExportedWhole(t *testing.T) {
	t.Parallel()
	var called atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Feedwarden-Version-Key") == "news@1" && r.Header.Get("Feedwarden-Signature") != "" {
			called.Add(1)
		}
	}))
	defer hook.Close()
	p := newPlace(t, demo.Options{})
	p.write(strings.ReplaceAll(sinksConfig, "HOOK", hook.URL))
	worker := p.start("worker")
	if out, errOut, code := p.run("", "enqueue", "news", "--wait", "60s"); code != 0 {
		t.Fatalf("exit %d %s%s", code, out, errOut)
	}
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: p.redis.Socket()})
	defer rdb.Close()
	var file string
	eventually(t, 60*time.Second, func() string {
		names, _ := filepath.Glob(p.dir + "/data/news/*/1.ndjson.zst") // beside the config, wherever it was started
		if len(names) != 1 || called.Load() != 1 || rdb.XLen(t.Context(), "news-out").Val() != 1 || !contains(worker.out.String(), `"key":"news@1"`) {
			return fmt.Sprintf("%q, %d calls, stdout %q", names, called.Load(), worker.out.String())
		}
		file = names[0]
		return ""
	})
	raw, err := exec.Command("zstd", "-dcq", file).Output()
	if err != nil {
		t.Fatal(err)
	}

	get := func(args ...string) string {
		t.Helper()
		out, errOut, code := p.run("", append([]string{"feeds", "get", "news"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: exit %d %s", args, code, errOut)
		}
		return out
	}
	ndjson := get("--format", "ndjson")
	if ndjson != string(raw) {
		t.Errorf("the export and the file differ:\n%s\n%s", ndjson, raw)
	}
	items := objects(t, ndjson)
	var whole struct {
		Feed    string
		Version int64
		Items   []map[string]any
	}
	if err := json.Unmarshal([]byte(get("--format", "json")), &whole); err != nil || whole.Feed != "news" || whole.Version != 1 || len(whole.Items) != len(items) || len(items) == 0 {
		t.Errorf("%v %+v", err, whole)
	}
	rows, err := csv.NewReader(strings.NewReader(get("--format", "csv", "--version", "1"))).ReadAll()
	if err != nil || len(rows) != len(items)+1 || strings.Join(rows[0][:6], " ") != "id url title published first_seen rank" || rows[1][0] != items[0]["id"] {
		t.Errorf("%v %q", err, rows)
	}
	resp, err := http.Get(p.upstream.FeedURL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); get("--format", "raw")[:60] != string(body)[:60] {
		t.Error("raw is not what the upstream sends")
	}
	if out, _, code := p.run("", "feeds", "get", "news", "--format", "xml"); code != exitUsage {
		t.Errorf("exit %d %s", code, out)
	}

	out, _, code := p.run("", "jobs", "list", "--feed", "news")
	if jobs := objects(t, out); code != 0 || len(jobs) != 5 {
		t.Errorf("%d jobs: %s", len(jobs), out)
	}
	shown, _, _ := p.run("", "feeds", "list", "--json")
	checked, _, _ := p.run("", "check")
	for _, text := range []string{out, shown, checked, worker.err.String(), worker.out.String()} {
		if contains(text, "canary") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	if _, err := os.Stat(p.dir + "/data/news"); err != nil {
		t.Error(err)
	}
}

// A reader of standard output that goes away is a sink that fails, and no more.
func TestWorkerOutlivesTheReaderOfItsStandardOutput(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(`
redis: {url: "REDIS"}
worker: {shutdown: 3s}
feeds:
  scores: {source: push, ttl: 1h, sinks: [{stdout: true}, {file: "data/{feed}/{date}/{version}.ndjson"}]}
`)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	said := &lockedBuffer{}
	worker := exec.Command(binary, "--config", p.config, "worker")
	worker.Stdout, worker.Stderr = writer, said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	for n := range 2 {
		if out, errOut, code := p.run(fmt.Sprintf(`[{"id":"%d"}]`, n), "feeds", "put", "scores", "-"); code != 0 {
			t.Fatalf("exit %d %s%s", code, out, errOut)
		}
		eventually(t, 60*time.Second, func() string {
			names, _ := filepath.Glob(fmt.Sprintf("%s/data/scores/*/%d.ndjson", p.dir, n+1))
			if len(names) == 1 && contains(said.String(), "broken pipe") {
				return ""
			}
			return fmt.Sprintf("%q; the worker says %s", names, last(said.String()))
		})
	}
	select {
	case err := <-ended:
		t.Fatalf("the worker ended: %v", err)
	default:
	}
	_ = worker.Process.Signal(os.Interrupt)
	if err := <-ended; err != nil {
		t.Errorf("the worker ended with %v:\n%s", err, last(said.String()))
	}
}

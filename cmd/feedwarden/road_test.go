package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/demo"
	"feedwarden/internal/testredis"
)

const roadConfig = `
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
worker: {shutdown: 3s}
fetch: {allow_private: true, timeout: 60s}
quotas:
  youtube:
    windows: [{limit: 5, per: 3s}]
pools:
  local: {list: proxies.txt, allow_private: true}
feeds:
  trending:
    source: youtube
    method: videos.list
    key: canary-api-key-123456
    base_url: BASE
    params: {chart: mostPopular, regionCode: "{region}", maxResults: 10}
    each: {region: [BD, PH, HR]}
    schedule: "@every 1s"
    overlap: allow
    quota: youtube
    pool: local
    ttl: 30s
  news:
    source: syndication
    url: FEED
    schedule: "@every 2s"
    ttl: 30s
`

func TestRoadFromTickToAnswerInSeparateProcessesThroughRealProxies(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{Limit: 5, Window: 3 * time.Second, Slack: time.Second, Period: 2 * time.Second})
	list := strings.Join([]string{tinyproxy(t), microsocks(t)}, "\n")
	if err := os.WriteFile(filepath.Join(p.dir, "proxies.txt"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write(roadConfig)
	worker, scheduler, second, web := p.start("worker"), p.start("scheduler"), p.start("scheduler"), p.start("web")
	url := web.url()

	for _, name := range []string{"trending-bd", "trending-ph", "trending-hr", "news"} {
		eventually(t, 60*time.Second, func() string {
			var feed struct {
				Version int64
				Items   []struct{ Title string }
			}
			status, header := get(t, url+"/v1/feeds/"+name, &feed)
			if status != http.StatusOK || feed.Version < 2 || len(feed.Items) == 0 {
				return fmt.Sprintf("%s: %d, version %d, %d items", name, status, feed.Version, len(feed.Items))
			}
			if header.Get("ETag") == "" || header.Get("Cache-Status") == "" || header.Get("Age") == "" {
				t.Fatalf("headers %v", header)
			}
			return ""
		})
	}
	// More ticks than units: some jobs had to sleep, and the upstream never said no.
	eventually(t, 30*time.Second, func() string {
		var q struct{ Grants, Refusals int64 }
		get(t, url+"/v1/quotas/youtube", &q)
		if q.Grants < 10 || q.Refusals == 0 {
			return fmt.Sprintf("%+v", q)
		}
		return ""
	})
	if up := p.upstream.Stats(); up.Refused != 0 {
		t.Errorf("the upstream said quotaExceeded %d times; at most %d units in its window of %d", up.Refused, up.Peak, up.Limit)
	}
	var pool struct{ Endpoints []struct{ Count int64 } }
	get(t, url+"/v1/pools/local", &pool)
	if n := len(pool.Endpoints); n != 2 || pool.Endpoints[0].Count == 0 || pool.Endpoints[1].Count == 0 {
		t.Errorf("pool %+v", pool)
	}
	for path, want := range map[string]int{"/": 200, "/monitor/": 200, "/metrics": 200, "/healthz": 200, "/readyz": 200, "/v1/feeds": 200, "/v1/schedules": 200, "/v1/jobs": 200, "/v1/nosuch": 404} {
		if status, _ := get(t, url+path, nil); status != want {
			t.Errorf("GET %s: %d, want %d", path, status, want)
		}
	}
	everyTickOnce(t, p)
	for _, proc := range []*process{worker, scheduler, second, web} {
		if code := proc.terminate(); code != 0 {
			t.Errorf("%s exits %d", proc.name, code)
		}
		for _, secret := range []string{"canary-api-key", "canary-proxy-pass"} {
			if strings.Contains(proc.out.String()+proc.err.String(), secret) {
				t.Errorf("a log holds %s", secret)
			}
		}
	}
	noSecretInTasks(t, p)
}

// everyTickOnce counts each tick's jobs: two schedulers made one of each.
func everyTickOnce(t *testing.T, p *place) {
	t.Helper()
	out, _, code := p.run("", "jobs", "list", "--limit", "1000")
	if code != 0 {
		t.Fatalf("jobs list exits %d", code)
	}
	ticks := map[string]int{}
	for _, j := range objects(t, out) {
		if j["tick"] != nil {
			ticks[fmt.Sprint(j["feed"], "@", j["tick"])]++
		}
	}
	if len(ticks) < 10 {
		t.Errorf("%d ticks", len(ticks))
	}
	for tick, n := range ticks {
		if n != 1 {
			t.Errorf("tick %s: %d jobs", tick, n)
		}
	}
}

// noSecretInTasks looks into all that asynq and the feeds keep.
func noSecretInTasks(t *testing.T, p *place) {
	t.Helper()
	rdb := p.redis.Client()
	defer rdb.Close()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if strings.HasPrefix(key, "fw:{pool:") {
			continue // workers take their proxies from here
		}
		dump, err := rdb.Dump(t.Context(), key).Result()
		if err != nil && err != redis.Nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"canary-api-key", "canary-proxy-pass"} {
			if strings.Contains(dump, secret) {
				t.Errorf("key %s holds %s", key, secret)
			}
		}
	}
}

func TestKilledWorkersJobIsDoneByAnotherChargedOncePerRequestSent(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{Limit: 1000})
	p.write(`
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true, timeout: 60s}
quotas:
  youtube: {windows: [{limit: 100, per: 1h}]}
feeds:
  trending:
    source: youtube
    method: videos.list
    key: an-api-key
    base_url: BASE
    params: {chart: mostPopular, regionCode: BD}
    quota: youtube
`)
	arrived := make(chan struct{}, 1)
	first := true
	p.upstream.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if first {
			first = false
			arrived <- struct{}{}
			<-r.Context().Done()
			return true
		}
		return false
	})
	worker := p.start("worker")
	out, errOut, code := p.run("", "enqueue", "trending", "--id", "the-job", "--priority", "scheduled")
	if code != 0 {
		t.Fatalf("enqueue: %d %s%s", code, out, errOut)
	}
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("the fetch does not begin")
	}
	worker.kill()
	killed := time.Now()
	p.start("worker")
	var job map[string]any
	eventually(t, 60*time.Second, func() string {
		out, _, _ := p.run("", "jobs", "get", "the-job")
		job = objects(t, out)[0]
		if job["state"] != "done" {
			return out
		}
		return ""
	})
	t.Logf("done %s after the kill", time.Since(killed).Round(time.Second))
	out, _, _ = p.run("", "quota", "show", "youtube")
	used := objects(t, out)[0]["windows"].([]any)[0].(map[string]any)["used"].(float64)
	if sent := p.upstream.Stats().API; used != float64(sent) || job["requests_sent"] != float64(sent) || sent != 2 {
		t.Errorf("charged %v, sent %d, the record says %v", used, sent, job["requests_sent"])
	}
	if job["crashes"] != 1.0 || job["attempts"] != 0.0 {
		t.Errorf("%v", job)
	}
}

func TestServeAndEnqueueShareTheEmbeddedRedis(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"redis-server", "none on PATH"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, demo.Options{})
			p.write(`
redis: {data: ./data}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true}
feeds:
  news: {source: syndication, url: FEED}
`)
			env := os.Environ()
			if kind != "redis-server" {
				env = append(env, "PATH=/nonexistent")
			}
			serve := startEnv(t, env, binary, "--config", p.config, "serve")
			serve.url()
			out, errOut, code := p.run("", "enqueue", "news", "--wait", "30s")
			if code != 0 || objects(t, out)[0]["state"] != "done" {
				t.Fatalf("enqueue --wait: %d %s%s", code, out, errOut)
			}
			out, _, code = p.run("", "feeds", "get", "news", "--format", "ndjson")
			if code != 0 || len(objects(t, out)) == 0 {
				t.Fatalf("feeds get: %d %s", code, out)
			}
			if loud := strings.Contains(serve.err.String(), "OUTLIVES"); loud != (kind != "redis-server") {
				t.Errorf("the warning that nothing outlives the process: %v", loud)
			}
			if code := serve.terminate(); code != 0 {
				t.Errorf("serve exits %d", code)
			}
			// What redis-server kept is there for the next.
			out, _, _ = p.run("", "feeds", "list")
			want := any(nil)
			if kind == "redis-server" {
				want = 1.0
			}
			if got := objects(t, out)[0]["version"]; got != want {
				t.Errorf("after a restart version %v, want %v", got, want)
			}
		})
	}
}

func TestDemoKeepsEveryFeedFreshAndTheUpstreamNeverRefuses(t *testing.T) {
	t.Parallel()
	p := startEnv(t, append(os.Environ(), "PATH=/nonexistent"), binary, "demo", "--for", "30s", "--listen", "127.0.0.1:0")
	if code := p.wait(90 * time.Second); code != 0 {
		t.Fatalf("exit %d", code)
	}
	out := p.out.String()
	for _, want := range []string{"dashboard", "granted 1 unit", "snoozed until", "fetched 25 items through http://", "fetched 25 items through socks5://", "through direct", "new version",
		"9 of 9 fresh; seen not fresh after second 20: 0 times", "quotaExceeded said 0 times", "socks5-1 "} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
	if strings.Contains(out, "proxy-pass") || strings.Contains(out, "demo-key") {
		t.Error("the demo shows a secret")
	}
}

func TestScriptsFetchAFeedWithNoGoAtAll(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(`
redis: {url: "REDIS"}
web:
  listen: "127.0.0.1:0"
  tokens: [{name: scripts, token: "0123456789abcdef-write", role: write}]
fetch: {allow_private: true}
feeds:
  news: {source: syndication, url: FEED}
`)
	url := p.start("serve").url()
	for _, script := range []string{"fetch.sh", "fetch.py", "fetch.mjs"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "examples", "scripts", script), "news")
		cmd.Env = append(os.Environ(), "FEEDWARDEN_URL="+url, "FEEDWARDEN_TOKEN=0123456789abcdef-write")
		out, err := cmd.CombinedOutput()
		if err != nil || len(strings.Split(strings.TrimSpace(string(out)), "\n")) < 3 {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}

func TestRoadOnSentinelClusterTLSAndAnACLUser(t *testing.T) {
	t.Parallel()
	sentinels := testredis.Sentinel(t, testredis.SentinelOptions{Password: "canary-primary"})
	cluster := testredis.Cluster(t)
	secure, certs := testredis.TLS(t, false)
	acl := testredis.ACL(t, "feeds", "canary-user", "~*", "&*", "+@all")
	for kind, url := range map[string]string{
		"sentinel": "redis+sentinel://:canary-primary@" + strings.Join(sentinels.Addrs(), ",") + "/" + sentinels.Name,
		"cluster":  "redis+cluster://" + strings.Join(cluster.Addrs(), ","),
		"tls":      "rediss://" + secure.Addr() + "?ca=" + certs.CA,
		"acl user": "redis://feeds:canary-user@" + acl.Addr(),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, demo.Options{})
			p.write(strings.Replace(`
redis: {url: "URL"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true}
quotas:
  q: {windows: [{limit: 2, per: 2s}]}
pools:
  local: {list: proxies.txt, allow_private: true}
feeds:
  news: {source: syndication, url: FEED, quota: q, pool: local, schedule: "@every 1s", overlap: allow}
`, "URL", url, 1))
			if err := os.WriteFile(filepath.Join(p.dir, "proxies.txt"), []byte(tinyproxy(t)), 0o600); err != nil {
				t.Fatal(err)
			}
			serve := p.start("serve")
			web := serve.url()
			// Ticks, a refusal, a woken job: every script of the road has run.
			eventually(t, 60*time.Second, func() string {
				var q struct{ Grants, Refusals int64 }
				get(t, web+"/v1/quotas/q", &q)
				if q.Grants < 4 || q.Refusals < 1 {
					return fmt.Sprintf("%+v", q)
				}
				return ""
			})
			if out, errOut, code := p.run("", "enqueue", "news", "--wait", "30s"); code != 0 {
				t.Errorf("enqueue: %d %s%s", code, out, errOut)
			}
			if out, errOut, code := p.run("", "schedules", "pause", "news"); code != 0 {
				t.Errorf("pause: %d %s%s", code, out, errOut)
			}
			if status, _ := get(t, web+"/monitor/api/queues", nil); status != http.StatusOK {
				t.Errorf("asynqmon: %d", status)
			}
			if code := serve.terminate(); code != 0 {
				t.Errorf("exit %d", code)
			}
			if contains(serve.err.String(), "canary") {
				t.Error("the log holds a password")
			}
		})
	}
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/demo"
	"feedwarden/internal/testredis"
)

const doctorConfig = `
redis: {url: "%s"}
web: {listen: "127.0.0.1:0"}
quotas:
  small: {windows: [{limit: 10, per: 1m}]}
pools:
  empty: {}
feeds:
  news: {source: syndication, url: "http://127.0.0.1:1/", schedule: "@every 1h", quota: small}
`

// doctor runs the doctor on a Redis, and answers severity by "check subject".
func examine(t *testing.T, url string, args ...string) (found map[string]string, what string, code int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "feedwarden.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, doctorConfig, url), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := command(t, "", append([]string{"--config", path, "doctor"}, args...)...)
	found = map[string]string{}
	for _, o := range objects(t, out) {
		found[strings.TrimSpace(fmt.Sprint(o["check"], " ", o["subject"]))] = fmt.Sprint(o["severity"])
		if severity := o["severity"]; (severity == "warning" || severity == "broken") && o["do"] == "" {
			t.Errorf("%v says nothing of what to do", o)
		}
	}
	return found, out + errOut, code
}

func TestDoctorOnRealServersInWrongStates(t *testing.T) {
	t.Parallel()
	primary := testredis.TCP(t, "--appendonly", "yes", "--maxmemory-policy", "allkeys-lru")
	replica := testredis.TCP(t, "--replicaof", strings.Replace(primary.Addr(), ":", " ", 1))
	plain := primary.Client()
	defer plain.Close()
	eventually(t, 20*time.Second, func() string {
		if info := plain.Info(t.Context(), "replication").Val(); !strings.Contains(info, "connected_slaves:1") {
			return info
		}
		return ""
	})
	for name, tc := range map[string]struct {
		url  string
		want map[string]string
		says string
	}{
		"eviction, and a replica without min-replicas": {
			"redis://" + primary.Addr(),
			map[string]string{"redis.eviction": "broken", "redis.replicas": "warning", "redis.persistence": "ok", "redis.version": "ok", "redis.primary": "ok"}, "allkeys-lru",
		},
		"a replica": {"redis://" + replica.Addr(), map[string]string{"redis": "broken"}, "this is a replica of"},
		"nothing kept, and nobody works": {
			"redis://" + testredis.TCP(t, "--save", "", "--appendonly", "no").Addr(),
			map[string]string{"redis.persistence": "broken", "worker": "broken", "scheduler": "broken", "pool empty": "broken", "queue scheduled": "ok", "quota small": "ok", "feed news": "warning"},
			"nothing is kept on disk",
		},
		"snapshots alone": {"redis://" + testredis.TCP(t, "--save", "60 1", "--appendonly", "no").Addr(), map[string]string{"redis.persistence": "warning"}, "save 60 1"},
		"a clock that is off": {
			"redis://" + testredis.OffClock(t, 30*time.Second, "--appendonly", "yes").Addr(), map[string]string{"clock": "broken"}, "30",
		},
		"CONFIG forbidden": {
			"redis://app:pw@" + testredis.ACL(t, "app", "pw", "~*", "&*", "+@all", "-config").Addr(),
			map[string]string{"redis.config": "unknown", "redis.eviction": "ok", "redis.version": "ok"}, "could not check",
		},
		"INFO and CONFIG forbidden": {
			"redis://app:pw@" + testredis.ACL(t, "app", "pw", "~*", "&*", "+@all", "-config", "-info").Addr(),
			map[string]string{"redis.config": "unknown", "redis.info": "unknown", "redis.eviction": "unknown", "clock": "ok"}, "could not check",
		},
		"embedded":     {"embedded", map[string]string{"redis.persistence": "ok", "redis.eviction": "ok", "redis.version": "ok"}, "append-only file"},
		"out of reach": {"redis://127.0.0.1:1", map[string]string{"redis": "broken"}, "start the server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, what, code := examine(t, tc.url)
			if code != exitFailed {
				t.Errorf("exit %d, want 1: nobody works", code)
			}
			for check, severity := range tc.want {
				if found[check] != severity {
					t.Errorf("%s is %q, want %q", check, found[check], severity)
				}
			}
			if !strings.Contains(what, tc.says) || strings.Contains(what, ":pw@") {
				t.Errorf("want %q and no password in %s", tc.says, what)
			}
		})
	}
}

func TestDoctorOnMiniredis(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feedwarden.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, doctorConfig, "embedded"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--config", path, "doctor", "--quiet")
	cmd.Env = []string{"PATH=/nowhere", "HOME=" + t.TempDir()} // no redis-server
	out, _ := cmd.Output()
	if text := string(out); !strings.Contains(text, "nothing outlives its process") || strings.Contains(text, `"unknown"`) || strings.Contains(text, `"ok"`) {
		t.Errorf("said %s", text)
	}
}

// What runs as it should leaves the doctor with nothing broken; one process
// with another config is named.
func TestDoctorOnAWorldThatRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.redis = testredis.Own(t, "--appendonly", "yes")
	config := `
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true}
feeds:
  news: {source: syndication, url: FEED, schedule: "@every 1s"}
`
	p.write(config)
	p.start("serve").url()
	eventually(t, 30*time.Second, func() string {
		if out, errOut, code := p.run("", "doctor", "--quiet"); code != exitDone || strings.TrimSpace(out) != "" {
			return out + errOut
		}
		return ""
	})
	other := newPlace(t, demo.Options{})
	other.redis = p.redis
	other.write(strings.Replace(config, "1s", "1h", 1))
	out, _, code := other.run("", "doctor", "--quiet")
	if code != exitDone || !strings.Contains(out, `"check":"process.config"`) {
		t.Errorf("exit %d, %s", code, out)
	}
}

// A Redis that comes back without what was written to it: the processes write
// nothing, say why, and go on when a person accepts it.
func TestAPrimaryThatLostItsDataIsAcceptedByHand(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.redis = testredis.Own(t, "--save", "", "--appendonly", "no")
	p.write(`
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true}
quotas: {small: {windows: [{limit: 1000, per: 1m}]}}
feeds:
  news: {source: syndication, url: FEED, schedule: "@every 1s", quota: small}
`)
	serve := p.start("serve")
	url := serve.url()
	rdb := p.redis.Client()
	defer rdb.Close()
	eventually(t, 30*time.Second, func() string {
		if n := rdb.Exists(t.Context(), "fw:{quota:small}:state").Val(); n != 1 {
			return "nothing is charged"
		}
		return ""
	})
	p.redis.Kill()
	p.redis.Start(t)
	ready := func() (int, string) {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	eventually(t, 30*time.Second, func() string {
		if code, body := ready(); code != 503 || !strings.Contains(body, "--accept-primary") {
			return fmt.Sprint(code, body)
		}
		return ""
	})
	for key := range testredis.Dump(t, rdb) {
		if key != "fw:{primary}:alarm" {
			t.Errorf("%s was written", key)
		}
	}
	if _, errOut, code := p.run("", "quota", "charge", "small", "--cost", "1", "--id", "a"); code != exitFailed || !strings.Contains(errOut, "--accept-primary") {
		t.Errorf("charge: exit %d, %s", code, errOut)
	}
	if out, _, code := p.run("", "doctor"); code != exitFailed || !strings.Contains(out, `"check":"redis.primary","subject":"","severity":"broken"`) {
		t.Errorf("doctor: exit %d, %s", code, out)
	}
	p.run("", "doctor", "--accept-primary")
	eventually(t, 30*time.Second, func() string {
		if code, body := ready(); code != 200 {
			return body
		}
		if n := rdb.Exists(t.Context(), "fw:{quota:small}:state").Val(); n != 1 {
			return "nothing is charged"
		}
		return ""
	})
	if !strings.Contains(serve.err.String(), "redis primary changed") || !strings.Contains(serve.err.String(), "redis is written to again") {
		t.Error("the log does not say what happened")
	}
}

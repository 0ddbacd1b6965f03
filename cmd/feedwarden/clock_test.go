package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/demo"
	"feedwarden/internal/testredis"
)

// Redis's clock is the one that steps here: a worker cannot tell which of the two is wrong.
func TestProcessWhoseClockIsOffStartsIsNotReadyTakesNothingAndGoesOnWhenItIsRight(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.redis = testredis.OffClock(t, 5*time.Minute)
	p.write(`
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
worker: {shutdown: 1s}
fetch: {allow_private: true}
feeds:
  news: {source: syndication, url: FEED}
`)
	serve := p.start("serve")
	url := serve.url()
	ready := func(want int, says string) {
		t.Helper()
		eventually(t, 30*time.Second, func() string {
			resp, err := http.Get(url + "/readyz")
			if err != nil {
				return err.Error()
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != want || !strings.Contains(string(body), says) {
				return fmt.Sprintf("readyz: %d %s %v", resp.StatusCode, body, err)
			}
			return ""
		})
	}
	state := func(id string) string {
		t.Helper()
		out, errOut, code := p.run("", "jobs", "get", id)
		if code != 0 {
			t.Fatalf("jobs get: %d %s%s", code, out, errOut)
		}
		return fmt.Sprint(objects(t, out)[0]["state"])
	}
	enqueue := func(id string) {
		t.Helper()
		if out, errOut, code := p.run("", "enqueue", "news", "--id", id); code != 0 {
			t.Fatalf("enqueue: %d %s%s", code, out, errOut)
		}
	}
	for round, off := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		id := fmt.Sprint("job-", round)
		p.redis.SetClock(t, off)
		ready(http.StatusServiceUnavailable, "clock")
		eventually(t, 30*time.Second, func() string {
			if n := strings.Count(serve.err.String(), "worker takes no jobs until its clock is right"); n != round+1 {
				return fmt.Sprintf("the log says %d times that no jobs are taken, after %d steps", n, round+1)
			}
			return ""
		})
		enqueue(id)
		if s := state(id); s != "pending" {
			t.Errorf("clock %s off: the job is %s", off, s)
		}
		p.redis.SetClock(t, 0)
		ready(http.StatusOK, "")
		eventually(t, 30*time.Second, func() string {
			if s := state(id); s != "done" {
				return "the job is " + s
			}
			return ""
		})
	}
}

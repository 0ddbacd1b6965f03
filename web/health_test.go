package web

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	var role error
	w := newWorld(t, withTokens, func(_ *Config, p *Parts, _ *pace) { p.Ready = func(context.Context) error { return role } })
	for _, path := range []string{"/healthz", "/readyz"} {
		rec := w.get(path)
		w.wantStatus(rec, 200)
		if rec.Header().Get("Content-Type") != jsonType {
			t.Errorf("%s: %q", path, rec.Header().Get("Content-Type"))
		}
	}
	role = errors.New("the scheduler has no term")
	if p := w.wantProblem(w.get("/readyz"), 503, "not-ready"); p.Detail != "the scheduler has no term" {
		t.Errorf("detail %q", p.Detail)
	}
	role = nil
	w.redis.Kill()
	p := w.wantProblem(w.get("/readyz"), 503, "not-ready")
	if p.Detail != "Redis does not answer" || strings.Contains(p.Detail, w.redis.Socket()) {
		t.Errorf("detail %q", p.Detail)
	}
	w.wantStatus(w.get("/healthz"), 200)
	auth := []string{"Authorization", "Bearer " + adminToken}
	for _, path := range []string{"/v1/feeds", "/v1/jobs", "/v1/quotas", "/v1/pools", "/v1/feeds/news", "/v1/quotas/youtube", "/v1/pools/public", "/v1/jobs/x"} {
		rec := w.get(path, auth...)
		w.wantProblem(rec, 503, "redis-away")
		if rec.Header().Get("Retry-After") != "5" {
			t.Errorf("%s: Retry-After %q", path, rec.Header().Get("Retry-After"))
		}
	}
	rec := w.get("/", append(auth, "Accept", "text/html")...)
	if rec.Code != 503 || !strings.Contains(rec.Body.String(), "Redis does not answer.") {
		t.Errorf("dashboard: status %d", rec.Code)
	}
	// It comes back by itself.
	w.redis.Start(t)
	w.until("ready again", func() bool { return w.get("/readyz").Code == 200 })
	w.wantStatus(w.get("/v1/feeds", auth...), 200)
}

// Of a Redis that answers and refuses, too, a client is told to come back, and nothing of it was done.
func TestARedisThatRefusesForNowIsWorthAnotherTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rdb := w.redis.Client()
	defer rdb.Close()
	w.wantStatus(w.post("/v1/quotas/youtube/charge", `{"id":"before","cost":1}`), 200)
	for _, c := range []struct{ name, setting, bad, good string }{
		{"its memory is full", "maxmemory", "1", "0"},
		{"its replicas are away", "min-replicas-to-write", "1", "0"},
	} {
		if err := rdb.ConfigSet(t.Context(), c.setting, c.bad).Err(); err != nil {
			t.Fatal(err)
		}
		rec := w.post("/v1/quotas/youtube/charge", `{"id":"a","cost":1}`)
		w.wantProblem(rec, 503, "redis-away")
		if rec.Header().Get("Retry-After") != "5" {
			t.Errorf("%s: Retry-After %q", c.name, rec.Header().Get("Retry-After"))
		}
		if err := rdb.ConfigSet(t.Context(), c.setting, c.good).Err(); err != nil {
			t.Fatal(err)
		}
	}
	w.wantStatus(w.post("/v1/quotas/youtube/charge", `{"id":"a","cost":1}`), 200)
}

func TestAStoppingServerIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	w.wantProblem(w.get("/readyz"), 503, "not-ready")
}

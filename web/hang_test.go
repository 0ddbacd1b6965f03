package web

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hang makes Redis take what is sent and answer nothing, as a machine that swaps
// or a network that drops packets does.
func (w *world) hang() {
	w.Helper()
	if err := syscall.Kill(w.redis.PID(), syscall.SIGSTOP); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = syscall.Kill(w.redis.PID(), syscall.SIGCONT) })
}

func TestWhoLooksIsAnsweredThoughRedisHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, _ *Parts, p *pace) { p.look = 200 * time.Millisecond })
	w.put("news", time.Minute, nil, item("a", "A"))
	w.server.shots.all.within, w.server.shots.recent.within = 200*time.Millisecond, 200*time.Millisecond
	w.hang()
	var all sync.WaitGroup
	for path, says := range map[string]string{
		"/": "Redis does not answer", "/feeds": "Redis does not answer", "/feeds/news": "Redis does not answer", "/quotas": "Redis does not answer",
		"/quotas/youtube": "Redis does not answer", "/pools/public": "Redis does not answer", "/schedules": "Redis does not answer", "/jobs": "Redis does not answer",
		"/jobs/x": "Redis does not answer", "/audit": "Redis does not answer", "/v1/feeds": "redis-away", "/v1/feeds/news/versions": "redis-away",
		"/v1/jobs": "redis-away", "/v1/jobs/x": "redis-away", "/v1/quotas": "redis-away", "/v1/quotas/youtube": "redis-away", "/v1/pools/public": "redis-away",
		"/monitor/api/queues": "Redis does not answer", "/readyz": "not-ready", "/healthz": "ok",
	} {
		accept := "text/html"
		if !strings.HasPrefix(says, "Redis") {
			accept = jsonType
		}
		all.Go(func() {
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				rec := w.get(path, "Accept", accept)
				if !strings.Contains(rec.Body.String(), says) {
					t.Errorf("%s: %d %s, want %q", path, rec.Code, rec.Body, says)
				}
				if rec.Code == 503 && rec.Header().Get("Retry-After") == "" {
					t.Errorf("%s: 503 without Retry-After", path)
				}
			}()
			select {
			case <-answered:
			case <-time.After(20 * time.Second): // the client alone would wait for a minute
				t.Errorf("%s: no answer", path)
			}
		})
	}
	all.Wait()
}

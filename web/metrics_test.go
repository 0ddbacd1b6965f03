package web

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"feedwarden/quota"
)

func TestMetricsSayWhatIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("trending-bd", 2*time.Minute, nil, item("a", "A"), item("b", "B"))
	if err := w.store.Fail(t.Context(), "news", "job", "fetch: timeout", time.Now()); err != nil {
		t.Fatal(err)
	}
	w.charge(`{"id":"a","cost":280}`)
	w.charge(`{"id":"b","cost":30}`)
	w.post("/v1/jobs", `{"feed":"news"}`)
	w.rdb.HSet(t.Context(), "fw:{jobs}:counters", "done", 7, "snoozed", 3, "a newer binary's", 9)

	rec := w.get("/metrics")
	w.wantStatus(rec, 200)
	body := rec.Body.String()
	for _, line := range []string{
		`feedwarden_redis_up 1`, `feedwarden_unread_parts 0`,
		`feedwarden_feed_ttl_seconds{feed="trending-bd"} 1200`,
		`feedwarden_feed_version{feed="trending-bd"} 1`, `feedwarden_feed_version{feed="news"} 0`,
		`feedwarden_feed_items{feed="trending-bd"} 2`,
		`feedwarden_feed_state{feed="trending-bd",state="fresh"} 1`, `feedwarden_feed_state{feed="trending-bd",state="stale"} 0`,
		`feedwarden_feed_state{feed="news",state="empty"} 1`, `feedwarden_feed_failing{feed="news"} 1`,
		`feedwarden_quota_limit_units{quota="youtube",window="24h"} 10000`, `feedwarden_quota_used_units{quota="youtube",window="1m"} 280`,
		`feedwarden_quota_remaining_units{quota="youtube"} 20`, `feedwarden_quota_waiting{priority="scheduled",quota="youtube"} 1`,
		`feedwarden_quota_grants_total{quota="youtube"} 1`, `feedwarden_quota_refusals_total{quota="youtube"} 1`, `feedwarden_quota_blocked{quota="youtube"} 0`,
		`feedwarden_pool_endpoints{pool="public",state="eligible"} 3`,
		`feedwarden_queue_jobs{queue="interactive",state="pending"} 1`, `feedwarden_queue_jobs{queue="scheduled",state="pending"} 0`,
		`feedwarden_job_events_total{event="done"} 7`, `feedwarden_job_events_total{event="snoozed"} 3`,
		`feedwarden_build_info{goversion="`, `version="v1.2.3"} 1`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("no %s", line)
		}
	}
	for _, absent := range []string{`feedwarden_feed_age_seconds{feed="news"}`, "a newer binary"} {
		if strings.Contains(body, absent) {
			t.Errorf("there is %s", absent)
		}
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", time.Minute, nil, item("a", "A"))
	// A pedantic registry refuses what does not fit together.
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(&collector{shots: w.server.shots, version: "v1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
	problems, err := promlint.New(w.get("/metrics").Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetricsWithoutRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redis.Kill()
	rec := w.get("/metrics")
	w.wantStatus(rec, 200)
	if body := rec.Body.String(); !strings.Contains(body, "feedwarden_redis_up 0") || strings.Contains(body, "feedwarden_feed_") {
		t.Errorf("body %s", body)
	}
}

func TestTwoWindowsOfOneLength(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var err error
	w.server.p.Quotas, err = quota.New(w.rdb, []quota.Config{{Name: "twice", Windows: []quota.Window{{Limit: 5, Per: time.Hour}, {Limit: 9, Per: time.Hour}}}})
	if err != nil {
		t.Fatal(err)
	}
	body := w.get("/metrics").Body.String()
	if !strings.Contains(body, `window="1h"} 5`) || !strings.Contains(body, `window="1h#2"} 9`) {
		t.Errorf("body %s", body)
	}
}

func TestReadingsAreShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	first, err := w.server.shots.all.get(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := w.server.shots.all.get(ctx, time.Minute); second != first {
		t.Error("a reading of this moment was read again")
	}
	if third, _ := w.server.shots.all.get(ctx, 0); third == first {
		t.Error("an old reading was given")
	}
}

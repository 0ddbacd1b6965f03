package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"feedwarden/quota"
)

// busyQuota is a quota that has seen a grant, a refusal, a refund, a waiter that was let in, a block
// and three who want to run where two may.
func busyQuota(t *testing.T) *world {
	w := newWorld(t)
	w.wantStatus(w.charge(`{"id":"a","cost":280}`), 200)
	w.wantStatus(w.charge(`{"id":"b","cost":30}`), 429)
	w.wantStatus(w.charge(`{"id":"b","cost":30}`), 429)
	w.wantStatus(w.post("/v1/quotas/youtube/refund", `{"id":"a"}`), 200)
	w.wantStatus(w.charge(`{"id":"b","cost":30}`), 200)
	if err := w.quotas.Block(t.Context(), "youtube", time.Hour, "quotaExceeded: trending-bd"); err != nil {
		t.Fatal(err)
	}
	w.wantStatus(w.charge(`{"id":"c","cost":5}`), 429)
	for _, h := range []string{"x", "y", "z"} {
		if _, err := w.leases.Acquire(t.Context(), h, time.Minute, quota.Running{Name: "quota:youtube", Limit: 2}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestAQuotaShowsWhatWasSeenOfIt(t *testing.T) {
	t.Parallel()
	w := busyQuota(t)
	q := decode[Quota](w, w.get("/v1/quotas/youtube"))
	if q.Grants != 2 || q.Units != 310 || q.Refusals != 3 || q.Refunds != 1 || q.RefundedUnits != 280 || q.Blocks != 1 ||
		q.BlockReason != "quotaExceeded: trending-bd" || q.BlockedUntil == nil || q.Line.Waiting != 1 {
		t.Errorf("%+v", q)
	}
	if h := q.Snoozes; h.Count != 2 || h.Sum != 2 || len(h.Buckets) != 7 || *h.Buckets[1].UpTo != 1 || h.Buckets[1].Count != 1 || h.Buckets[2].Count != 2 || h.Buckets[6].UpTo != nil {
		t.Errorf("snoozes %+v", h)
	}
	// Let in before its promise: not late.
	if h := q.Lateness; h.Count != 1 || h.Sum != 0 || h.Buckets[0].Count != 1 || *h.Buckets[0].UpTo != 0.01 {
		t.Errorf("lateness %+v", h)
	}
	if r := q.Running; r == nil || r.Running != 2 || *r.Limit != 2 || r.Waiting != 1 || r.NextExpiryAt == nil || r.Name != "quota:youtube" {
		t.Errorf("running %+v", r)
	}
	if len(q.History) != 96 {
		t.Fatalf("%d points", len(q.History))
	}
	sum := Point{}
	for i, p := range q.History {
		if i > 0 && p.Start.Sub(q.History[i-1].Start) != 15*time.Minute {
			t.Errorf("point %d starts at %s", i, p.Start)
		}
		sum.Granted, sum.Units, sum.Refused, sum.RefundedUnits = sum.Granted+p.Granted, sum.Units+p.Units, sum.Refused+p.Refused, sum.RefundedUnits+p.RefundedUnits
	}
	if sum != (Point{Granted: 2, Units: 310, Refused: 3, RefundedUnits: 280}) {
		t.Errorf("the past day %+v", sum)
	}
	// The units that are in no label had none.
	if len(q.HistoryLabels) != 0 {
		t.Errorf("labels %+v", q.HistoryLabels)
	}
	list := w.get("/v1/quotas").Body.String()
	if strings.Contains(list, "history") || !strings.Contains(list, `"running":{"name":"quota:youtube","running":2`) {
		t.Errorf("list %s", list)
	}
}

func TestMetricsOfAQuota(t *testing.T) {
	t.Parallel()
	w := busyQuota(t)
	body := w.get("/metrics").Body.String()
	for _, line := range []string{
		`feedwarden_quota_granted_units_total{quota="youtube"} 310`, `feedwarden_quota_refunded_units_total{quota="youtube"} 280`,
		`feedwarden_quota_blocks_total{quota="youtube"} 1`, `feedwarden_quota_blocked{quota="youtube"} 1`,
		`# TYPE feedwarden_quota_snoozes histogram`,
		`feedwarden_quota_snoozes_bucket{quota="youtube",le="0"} 1`, `feedwarden_quota_snoozes_bucket{quota="youtube",le="1"} 1`,
		`feedwarden_quota_snoozes_bucket{quota="youtube",le="2"} 2`, `feedwarden_quota_snoozes_bucket{quota="youtube",le="+Inf"} 2`,
		`feedwarden_quota_snoozes_sum{quota="youtube"} 2`, `feedwarden_quota_snoozes_count{quota="youtube"} 2`,
		`feedwarden_quota_lateness_seconds_bucket{quota="youtube",le="0.01"} 1`, `feedwarden_quota_lateness_seconds_count{quota="youtube"} 1`,
		`feedwarden_quota_next_release_timestamp_seconds{quota="youtube"} `,
		`feedwarden_quota_running{quota="youtube"} 2`, `feedwarden_quota_running_limit{quota="youtube"} 2`, `feedwarden_quota_running_waiting{quota="youtube"} 1`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("no %s", line)
		}
	}
}

func TestWithoutLeasesNobodyRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Parts, _ *pace) { p.Leases = nil })
	if q := decode[Quota](w, w.get("/v1/quotas/youtube")); q.Running != nil || q.Name != "youtube" {
		t.Errorf("%+v", q)
	}
	if body := w.get("/metrics").Body.String(); strings.Contains(body, "feedwarden_quota_running") {
		t.Error("there is a number of those who run")
	}
}

// Who took a quota's units is told label by label, those that took the most first.
func TestAQuotasHistoryIsToldByLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{
		`{"id":"a","cost":30,"label":"trending-bd"}`, `{"id":"b","cost":80,"label":"my script"}`, `{"id":"c","cost":5}`,
		`{"id":"b","cost":80,"label":"another"}`, `{"id":"d","cost":20,"label":"trending-bd"}`,
	} {
		w.wantStatus(w.charge(body), 200)
	}
	w.wantStatus(w.post("/v1/quotas/youtube/refund", `{"id":"d"}`), 200)
	q := decode[Quota](w, w.get("/v1/quotas/youtube"))
	got := map[string][2]int64{}
	for _, s := range q.HistoryLabels {
		if len(s.Units) != len(q.History) || len(s.RefundedUnits) != len(q.History) {
			t.Fatalf("%d and %d quarters of %d", len(s.Units), len(s.RefundedUnits), len(q.History))
		}
		got[s.Label] = [2]int64{sum(s.Units), sum(s.RefundedUnits)}
	}
	if fmt.Sprint(got) != "map[my script:[80 0] trending-bd:[50 20]]" || q.HistoryLabels[0].Label != "my script" || q.Units != 135 {
		t.Errorf("%d units: %v", q.Units, q.HistoryLabels)
	}
	if list := w.get("/v1/quotas").Body.String(); strings.Contains(list, "history_labels") {
		t.Errorf("list %s", list)
	}
	if got := SharesView(make([]quota.Share, 250)); len(got) != 100 {
		t.Errorf("%d labels", len(got))
	}
}

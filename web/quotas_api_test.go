package web

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"feedwarden/quota"
)

func (w *world) charge(body string) *httptest.ResponseRecorder {
	w.Helper()
	return w.post("/v1/quotas/youtube/charge", body)
}

func TestChargeAndRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := w.charge(`{"id":"a","cost":100}`)
	w.wantStatus(rec, 200)
	body := rec.Body.String()
	want := `{"granted":true,"id":"a","cost":100,"retry_after_ms":0,"position":0,"windows":[{"limit":10000,"per_ms":86400000,"used":100},{"limit":300,"per_ms":60000,"used":100}],"reason":"","at":"`
	if !strings.HasPrefix(body, want) {
		t.Errorf("body %s, want %s…", body, want)
	}
	w.wantStatus(w.charge(`{"id":"a","cost":100}`), 200) // the same charge
	w.wantStatus(w.charge(`{"id":"b","cost":180}`), 200)

	rec = w.charge(`{"id":"c","cost":20}`) // the reserve is for interactive charges
	w.wantStatus(rec, 429)
	c := decode[Charge](w, rec)
	if c.Granted || c.Position != 1 || c.RetryAfterMS < 1000 || c.RetryAfterMS > 60_000 || c.ID != "c" || c.Reason != quota.ReasonReserve {
		t.Errorf("charge %+v", c)
	}
	if got, want := rec.Header().Get("Retry-After"), fmt.Sprint((c.RetryAfterMS+999)/1000); got != want {
		t.Errorf("Retry-After %q, want %q", got, want)
	}
	if rec.Header().Get("Content-Type") != jsonType {
		t.Error("a refusal is no problem document: its body is that of the command line")
	}
	w.wantStatus(w.charge(`{"id":"d","cost":20,"priority":"interactive"}`), 200)
	rec = w.charge(`{"id":"e","cost":20,"priority":"interactive","no_line":true}`)
	w.wantStatus(rec, 429)
	if c := decode[Charge](w, rec); c.Position != 0 {
		t.Errorf("no_line has place %d", c.Position)
	}

	for _, want := range []int64{180, 0} {
		rec = w.post("/v1/quotas/youtube/refund", `{"id":"b"}`)
		w.wantStatus(rec, 200)
		if r := decode[Refund](w, rec); r.Restored != want || r.ID != "b" {
			t.Errorf("refund %+v, want %d", r, want)
		}
	}
}

func TestChargeRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		`{"id":"a"}`:                         {400, "invalid-cost"},
		`{"id":"a","cost":0}`:                {400, "invalid-cost"},
		`{"id":"a","cost":-1}`:               {400, "invalid-cost"},
		`{"id":"a","cost":9007199254740992}`: {400, "invalid-cost"},
		`{"id":"a","cost":1e3}`:              {400, "invalid-json"},
		`{"id":"a","cost":1.5}`:              {400, "invalid-json"},
		`{"id":"a","cost":"5"}`:              {400, "invalid-json"},
		`{"id":"a","cost":NaN}`:              {400, "invalid-json"},
		`{"cost":1}`:                         {400, "invalid-id"},
		`{"id":"a\nb","cost":1}`:             {400, "invalid-id"},
		`{"id":"a","cost":1,"prio":"x"}`:     {400, "invalid-json"},
		`{"id":"a","cost":1,"priority":"x"}`: {400, "invalid-priority"},
		`{"id":"a","cost":1,"label":"a\n"}`:  {400, "invalid-label"},
		`{"id":"a","cost":301}`:              {422, "impossible-cost"},
		`{"id":"a","cost":281}`:              {422, "impossible-cost"},
		`{"id":"a","cost":1,"cost":900}`:     {400, "invalid-json"},
		`{"id":"a","cost":1,"Id":"b"}`:       {400, "invalid-json"},
		`[]`:                                 {400, "invalid-json"},
		``:                                   {415, "content-type"},
		` `:                                  {400, "invalid-json"},
	} {
		w.wantProblem(w.charge(body), want.status, want.code)
	}
	st, err := w.quotas.State(t.Context(), "youtube")
	if err != nil || st.Windows[0].Used != 0 || st.Scheduled.Waiting != 0 {
		t.Errorf("something was written: %+v, %v", st, err)
	}
	w.wantProblem(w.post("/v1/quotas/none/charge", `{"id":"a","cost":1}`), 404, "unknown-quota")
	w.wantProblem(w.post("/v1/quotas/none/refund", `{"id":"a"}`), 404, "unknown-quota")
	w.wantProblem(w.post("/v1/quotas/youtube/refund", `{}`), 400, "invalid-id")
	w.wantProblem(w.get("/v1/quotas/none"), 404, "unknown-quota")
}

func TestShowQuotas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.charge(`{"id":"a","cost":280}`)
	w.charge(`{"id":"b","cost":30}`)
	if err := w.quotas.Block(t.Context(), "youtube", time.Hour, "quotaExceeded"); err != nil {
		t.Fatal(err)
	}
	list := decode[map[string][]Quota](w, w.get("/v1/quotas"))["quotas"]
	one := decode[Quota](w, w.get("/v1/quotas/youtube"))
	if len(list) != 1 || list[0].Name != "youtube" || one.Name != "youtube" {
		t.Fatalf("quotas %+v", list)
	}
	if one.Remaining != 20 || one.Reserve != 20 || one.Line.Waiting != 1 || one.Line.Units != 30 || one.Line.First[0].ID != "b" ||
		one.BlockedUntil == nil || one.BlockReason != "quotaExceeded" || one.NextReleaseAt == nil || one.Grants != 1 || one.Refusals != 1 {
		t.Errorf("quota %+v", one)
	}
	w.wantProblem(w.get("/v1/quotas?x"), 400, "invalid-query")
}

func TestRetryAfterRoundsUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{time.Nanosecond: 1, 300 * time.Millisecond: 1, time.Second: 1, 1400 * time.Millisecond: 2, 2*time.Second + 1: 3} {
		if got := ceilSeconds(d); got != want {
			t.Errorf("ceilSeconds(%s) = %d, want %d", d, got, want)
		}
	}
	if got := ChargeView(quota.Decision{RetryAfter: 1400*time.Millisecond + 1}).RetryAfterMS; got != 1401 {
		t.Errorf("retry_after_ms %d, want 1401", got)
	}
}

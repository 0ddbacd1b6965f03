package web

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	auth := []string{"Authorization", "Bearer " + writeToken}
	list := decode[map[string][]ScheduleView](w, w.get("/v1/schedules", auth...))["schedules"]
	if len(list) != 2 || list[0].Name != "news" || list[1].Expression != "*/15 * * * *" {
		t.Fatalf("schedules %+v", list)
	}
	rec := w.post("/v1/schedules/news/pause", "", auth...)
	w.wantStatus(rec, 200)
	if v := decode[ScheduleView](w, rec); v.State != "paused" || v.PausedBy != "writer" || v.PausedUntil != nil {
		t.Errorf("after a pause: %+v", v)
	}
	rec = w.post("/v1/schedules/news/pause", `{"for":"2d"}`, auth...)
	w.wantStatus(rec, 200)
	if v := decode[ScheduleView](w, rec); v.PausedUntil == nil || time.Until(*v.PausedUntil) < 47*time.Hour {
		t.Errorf("after a pause for 2d: %+v", v)
	}
	w.wantStatus(w.post("/v1/schedules/news/pause", `{"until":"2126-01-01T00:00:00Z"}`, auth...), 200)
	// A client that names a type for no body at all is understood.
	w.wantStatus(w.post("/v1/schedules/news/resume", "", append(auth, "Content-Type", jsonType)...), 200)
	rec = w.post("/v1/schedules/news/trigger", "{}", auth...)
	w.wantStatus(rec, 202)
	// The job is made by a scheduler later, under another ID: nothing to point to.
	if got := rec.Header().Get("Location"); got != "" || rec.Body.String() != `{"schedule":"news","id":"trigger-1f2e3d4c"}`+"\n" {
		t.Errorf("Location %q, body %s", got, rec.Body)
	}
	if want := []string{"pause news by writer", "resume news by writer", "trigger news by writer"}; !slices.Equal(slices.Compact(w.schedules.calls), want) {
		t.Errorf("calls %v", w.schedules.calls)
	}
}

func TestSchedulesRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, verb := range []string{"pause", "resume", "trigger"} {
		w.wantProblem(w.post("/v1/schedules/none/"+verb, ""), 404, "unknown-schedule")
		w.wantProblem(w.post("/v1/schedules/news/"+verb, `{"x":1}`), 400, "invalid-json")
		w.wantProblem(w.do(ask{method: "POST", path: "/v1/schedules/news/" + verb, body: "{}"}), 415, "content-type")
	}
	for _, body := range []string{`{"for":"soon"}`, `{"for":"-1s"}`, `{"for":"0s"}`, `{"until":"2020-01-01T00:00:00Z"}`, `{"until":"tomorrow"}`, `{"for":"1h","until":"2126-01-01T00:00:00Z"}`} {
		w.wantProblem(w.post("/v1/schedules/news/pause", body), 400, "invalid-pause")
	}
	w.schedules.err = fmt.Errorf("fake: %w", &RefusedError{"queue scheduled is full", 7 * time.Second})
	rec := w.post("/v1/schedules/news/trigger", "")
	w.wantProblem(rec, 503, "refused")
	if rec.Header().Get("Retry-After") != "7" {
		t.Errorf("Retry-After %q", rec.Header().Get("Retry-After"))
	}
}

func TestWithoutSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Parts, _ *pace) { p.Schedules = nil })
	if got := w.get("/v1/schedules").Body.String(); got != `{"schedules":[]}`+"\n" {
		t.Errorf("body %s", got)
	}
	w.wantProblem(w.post("/v1/schedules/news/pause", ""), 404, "unknown-schedule")
	w.wantProblem(w.post("/v1/schedules/news/trigger", ""), 404, "unknown-schedule")
	w.wantStatus(w.get("/"), 200)
}

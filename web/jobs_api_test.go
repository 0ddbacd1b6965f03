package web

import (
	"strings"
	"testing"
	"time"

	"feedwarden/jobs"
)

func TestEnqueueOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := w.post("/v1/jobs", `{"feed":"news","id":"my-job:1","priority":"scheduled","params":{"page":"2"},"in":"10m","expires":"1h"}`)
	w.wantStatus(rec, 202)
	if got := rec.Header().Get("Content-Type"); got != jsonType {
		t.Errorf("Content-Type %q", got)
	}
	if got := rec.Header().Get("Location"); got != "/v1/jobs/my-job:1" {
		t.Errorf("Location %q", got)
	}
	j := decode[map[string]any](w, rec)
	for k, want := range map[string]any{"id": "my-job:1", "feed": "news", "queue": "scheduled", "state": "scheduled", "attempts": 0.0, "snoozes": 0.0, "tick": nil, "last_error": ""} {
		if got, ok := j[k]; !ok || got != want {
			t.Errorf("%s = %v (there: %v), want %v", k, got, ok, want)
		}
	}
	if at, err := time.Parse(time.RFC3339, j["next_at"].(string)); err != nil || !strings.HasSuffix(j["next_at"].(string), "Z") || time.Until(at) < 9*time.Minute {
		t.Errorf("next_at %v", j["next_at"])
	}
	// The same ID again is the same job.
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news","id":"my-job:1"}`), 202)
	w.wantProblem(w.post("/v1/jobs", `{"feed":"by-hand","id":"my-job:1"}`), 409, "id-taken")
	got := decode[jobs.Job](w, w.get("/v1/jobs/my-job:1"))
	if got.ID != "my-job:1" || got.Params["page"] != "2" {
		t.Errorf("job %+v", got)
	}
}

func TestEnqueueRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		body, kind string
		status     int
		code, says string
	}{
		"not JSON":       {`{"feed":`, "", 400, "invalid-job", ""},
		"an array":       {`["news"]`, "", 400, "invalid-job", "object"},
		"unknown key":    {`{"feed":"news","prio":"x"}`, "", 400, "invalid-job", "prio"},
		"no feed":        {`{}`, "", 400, "invalid-job", "feed"},
		"unknown feed":   {`{"feed":"trending"}`, "", 404, "unknown-feed", `"trending-bd"`},
		"priority":       {`{"feed":"news","priority":"high"}`, "", 400, "invalid-job", "interactive or scheduled"},
		"both in and at": {`{"feed":"news","in":"1m","at":"2030-01-01T00:00:00Z"}`, "", 400, "invalid-job", "in and at"},
		"bad id":         {`{"feed":"news","id":"a b"}`, "", 400, "invalid-job", "id"},
		"two objects":    {`{"feed":"news"}{"feed":"news"}`, "", 400, "invalid-job", ""},
		"a form":         {`feed=news`, "application/x-www-form-urlencoded", 415, "content-type", "application/json"},
		"latin-1":        {`{"feed":"news"}`, "application/json; charset=latin1", 415, "content-type", "UTF-8"},
		"broken type":    {`{"feed":"news"}`, "application/json; x", 415, "content-type", ""},
		"too large":      {`{"feed":"` + strings.Repeat("x", maxBody) + `"}`, "", 413, "too-large", "1048576"},
		"large payload":  {`{"feed":"news","params":{"a":"` + strings.Repeat("x", 20<<10) + `"}}`, "", 400, "invalid-job", ""},
	} {
		kind := c.kind
		if kind == "" {
			kind = "application/json; charset=utf-8"
		}
		rec := w.post("/v1/jobs", c.body, "Content-Type", kind)
		t.Run(name, func(t *testing.T) {
			p := (&world{TB: t}).wantProblem(rec, c.status, c.code)
			if !strings.Contains(p.Detail, c.says) {
				t.Errorf("detail %q does not say %q", p.Detail, c.says)
			}
		})
	}
	rec := w.do(ask{method: "POST", path: "/v1/jobs", body: `{"feed":"news"}`})
	w.wantProblem(rec, 415, "content-type")
	if got := rec.Header().Get("Accept"); !strings.Contains(got, jsonType) || !strings.Contains(got, ndjsonType) {
		t.Errorf("Accept %q", got)
	}
	w.wantProblem(w.post("/v1/jobs", `{"feed":"news"}`, "Content-Encoding", "gzip"), 415, "content-encoding")
	w.wantProblem(w.post("/v1/jobs", `{"feed":"news"}`, "Accept", "text/html"), 406, "not-acceptable")
}

func TestAFullQueueIs503WithRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.wantStatus(w.post("/v1/jobs", `{"feed":"news","priority":"scheduled"}`), 202)
	}
	rec := w.post("/v1/jobs", `{"feed":"news","priority":"scheduled"}`)
	p := w.wantProblem(rec, 503, "queue-full")
	if got := rec.Header().Get("Retry-After"); got != "5" || p.RetryAfterMS != 5000 {
		t.Errorf("Retry-After %q, retry_after_ms %d; want 5 and 5000", got, p.RetryAfterMS)
	}
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news","priority":"interactive"}`), 202)
}

func TestListJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.get("/v1/jobs").Body.String(); got != `{"jobs":[],"page":1,"next":null}`+"\n" {
		t.Errorf("without jobs: %s", got)
	}
	for range 3 {
		w.post("/v1/jobs", `{"feed":"news"}`)
	}
	w.post("/v1/jobs", `{"feed":"by-hand"}`)
	w.ended("old", "news", jobs.Done, "", `{"what":"new version","version":1}`)
	w.ended("bad", "news", jobs.Failed, "no & <luck>", "")
	for query, want := range map[string]int{"": 6, "?feed=news": 5, "?state=pending": 4, "?feed=news&state=failed": 1, "?feed=nobody": 0, "?state=done": 1, "?limit=2": 2, "?limit=4&page=2": 2, "?page=9": 0} {
		rec := w.get("/v1/jobs" + query)
		w.wantStatus(rec, 200)
		if got := decode[jobPage](w, rec); len(got.Jobs) != want {
			t.Errorf("%s: %d jobs, want %d", query, len(got.Jobs), want)
		}
	}
	if body := w.get("/v1/jobs?state=failed").Body.String(); !strings.Contains(body, "no & <luck>") {
		t.Errorf("texts are escaped for HTML: %s", body)
	}
	rec := w.get("/v1/jobs?limit=2&feed=news")
	if got := rec.Header().Get("Link"); got != `</v1/jobs?feed=news&limit=2&page=2>; rel="next"` {
		t.Errorf("Link %q", got)
	}
	for _, query := range []string{"?state=odd", "?limit=0", "?limit=1001", "?limit=x", "?page=0", "?page=-1", "?page=99999999999999999999", "?fed=news", "?feed=a&feed=b", "?feed=%zz"} {
		w.wantProblem(w.get("/v1/jobs"+query), 400, "invalid-query")
	}
}

func TestGetAndCancelJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wantProblem(w.get("/v1/jobs/none"), 404, "unknown-job")
	w.wantProblem(w.do(ask{method: "DELETE", path: "/v1/jobs/none"}), 404, "unknown-job")
	j := decode[jobs.Job](w, w.post("/v1/jobs", `{"feed":"news"}`))
	rec := w.do(ask{method: "DELETE", path: "/v1/jobs/" + j.ID})
	w.wantStatus(rec, 200)
	if got := decode[jobs.Job](w, rec); got.State != jobs.Cancelled || got.EndedAt == nil {
		t.Errorf("job %+v", got)
	}
	if got := decode[jobs.Job](w, w.get("/v1/jobs/"+j.ID)); got.State != jobs.Cancelled {
		t.Errorf("state %s", got.State)
	}
	w.wantProblem(w.do(ask{method: "DELETE", path: "/v1/jobs/" + j.ID}), 409, "job-ended")
}

func TestMethodsPathsAndForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		method, path, allow string
	}{
		{"PUT", "/v1/jobs", "GET, HEAD, POST"},
		{"OPTIONS", "/v1/jobs", "GET, HEAD, POST"},
		{"POST", "/v1/feeds", "GET, HEAD"},
		{"DELETE", "/v1/feeds/news", "GET, HEAD, PUT"},
		{"GET", "/v1/quotas/youtube/charge", "POST"},
		{"POST", "/", "GET, HEAD"},
		{"POST", "/healthz", "GET, HEAD"},
		{"PATCH", "/monitor/", "DELETE, GET, HEAD, POST"},
		{"GET", "/logout", "POST"},
	} {
		rec := w.do(ask{method: c.method, path: c.path})
		w.wantProblem(rec, 405, "method")
		if got := rec.Header().Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/nothing", "/v1/jobs/", "/nowhere", "/feeds/", "/v1/jobs/a/b"} {
		w.wantProblem(w.get(path), 404, "no-route")
	}
	w.wantProblem(w.get("/v1/feeds", "Accept", "text/csv"), 406, "not-acceptable")
	w.wantProblem(w.get("/", "Accept", "application/json"), 406, "not-acceptable")
	w.wantStatus(w.get("/v1/feeds", "Accept", "text/csv, application/*;q=0.1"), 200)
	w.wantProblem(w.do(ask{method: "PUT", path: "/v1/feeds/news"}), 409, "not-push")
	rec := w.do(ask{method: "HEAD", path: "/v1/feeds"})
	w.wantStatus(rec, 200)
}

package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzPostJobs sends any body to the jobs' API, as one job and as many: it is
// the caller's fault or it is a job, and never ours. Every line that says
// something gets one line.
func FuzzPostJobs(f *testing.F) {
	w := newWorld(f)
	for _, seed := range []string{
		`{"feed":"news"}`, `{"feed":"news","id":"x","priority":"interactive","in":"1m","expires":"2m","params":{"a":"b"}}`,
		`{"feed":"news","at":"2030-01-01T00:00:00Z"}`, `{"feed":"news","at":"0000-01-01T00:00:00Z","in":"-1s"}`, `{"feed":"none"}`, `{"feed":1}`,
		`{"feed":"news","feed":"none"}`, `{"feed":"news","unknown":true}`, `[]`, `null`, `{}`, ``, `{`, "\x00", "\xff\xfe", `{"feed":"news","id":"` + strings.Repeat("é", 300) + `"}`,
		"{\"feed\":\"news\"}\n{\"feed\":\"news\",\"id\":\"a\"}\r\n\n{\"feed\":\"news\",\"id\":\"a\"}\nrubbish\n", `{"feed":"news","params":{"region":"` + "\u2028" + `"}}`,
		`{"feed":"news","in":"9999999999999h"}`, `{"feed":"news","expires":"-1ns"}`, `{"feed":"news","id":"{a}:b/../c"}`, strings.Repeat("[", 10_000),
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, many bool) {
		if err := w.rdb.FlushDB(t.Context()).Err(); err != nil { // a full queue is another test's matter
			t.Fatal(err)
		}
		kind := jsonType
		if many {
			kind = ndjsonType
		}
		r := httptest.NewRequest("POST", "http://localhost/v1/jobs", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		rec := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(rec, r)
		if rec.Code >= http.StatusInternalServerError {
			t.Fatalf("status %d: %s", rec.Code, rec.Body)
		}
		if strings.Contains(w.logs.String(), "panicked") {
			t.Fatal("a handler panicked")
		}
		if !many {
			if !json.Valid(rec.Body.Bytes()) || rec.Code == http.StatusAccepted != (rec.Header().Get("Location") != "") {
				t.Errorf("status %d, Location %q: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
			}
			return
		}
		asked := 0
		for line := range bytes.Lines(body) {
			if len(bytes.TrimSpace(line)) > 0 {
				asked++
			}
		}
		answered := 0
		for line := range bytes.Lines(rec.Body.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("not JSON: %q", line)
			}
			answered++
		}
		if rec.Code == http.StatusAccepted && answered != asked && asked <= 50 {
			t.Errorf("%d lines asked, %d answered: %s", asked, answered, rec.Body)
		}
	})
}

package web

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
)

// form posts what a page's form would, as a browser does.
func (w *world) form(path string, fields url.Values, header ...string) (location string, status int) {
	w.Helper()
	h := pairs(header)
	h["Content-Type"], h["Sec-Fetch-Site"] = "application/x-www-form-urlencoded", "same-origin"
	rec := w.do(ask{method: "POST", path: path, header: h, body: fields.Encode()})
	return rec.Header().Get("Location"), rec.Code
}

func (w *world) lines() []AuditLine {
	w.Helper()
	lines, _, err := w.server.audit.page(w.Context(), "", 1000)
	if err != nil {
		w.Fatal(err)
	}
	return lines
}

func TestEachActionLeavesALineThatItsPageShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	as := []string{"Authorization", "Bearer " + writeToken}
	w.snoozed("asleep", "news", "quota youtube: place 2", time.Now().Add(time.Hour))
	endpoint := "http://proxy-b.example.org:3128"
	cases := []struct {
		act, fields string
		what        string
		object      string
		outcome     string // its beginning
	}{
		{"schedule/pause", "name=news&for=10m", "pause schedule", "news", "done"},
		{"schedule/resume", "name=news", "resume schedule", "news", "done"},
		{"schedule/trigger", "name=news", "trigger schedule", "news", "done: a running scheduler"},
		{"schedule/pause", "name=none", "pause schedule", "none", "no schedule of that name"},
		{"schedule/pause", "name=news&for=soon", "pause schedule", "news", "for \"soon\": a duration"},
		{"feed/fetch", "name=by-hand", "fetch feed", "by-hand", "done: job "},
		{"feed/fetch", "name=<b>", "fetch feed", "<b>", "no feed"},
		{"job/cancel", "id=asleep", "cancel job", "asleep", "done"},
		{"job/cancel", "id=none", "cancel job", "none", "no such job"},
		{"quota/block", "name=youtube&for=1h&reason=upkeep", "block quota", "youtube", "done: for 1 h"},
		{"quota/unblock", "name=youtube", "unblock quota", "youtube", "done"},
		{"quota/block", "name=none", "block quota", "none", "no quota of that name"},
		{"endpoint/quarantine", "pool=public&for=1h&id=" + endpoint, "quarantine endpoint", "public " + endpoint, "done: for 1 h"},
		{"endpoint/restore", "pool=public&id=" + endpoint, "restore endpoint", "public " + endpoint, "done"},
		{"endpoint/remove", "pool=public&id=" + endpoint, "remove endpoint", "public " + endpoint, "done"},
		{"endpoint/restore", "pool=public&id=" + endpoint, "restore endpoint", "public " + endpoint, "the pool has no endpoint"},
		{"target/resume", "pool=public&target=example.org", "resume target", "public example.org", "the target is not paused"},
		{"pool/check", "pool=public", "check pool", "public", "done: "},
		{"pool/check", "pool=none", "check pool", "none", "no pool of that name"},
	}
	for _, c := range cases {
		fields, err := url.ParseQuery(c.fields)
		if err != nil {
			t.Fatal(err)
		}
		fields.Set("back", "/audit?before=99999999999999-0")
		to, status := w.form("/act/"+c.act, fields, as...)
		got := w.lines()[0]
		if status != 303 || !strings.HasPrefix(to, "/audit?before=99999999999999-0&done=") {
			t.Errorf("%s %s: status %d to %q", c.act, c.fields, status, to)
			continue
		}
		done := strings.HasPrefix(c.outcome, "done")
		if got.Who != "writer" || got.Role != "write" || got.What != c.what || got.Object != c.object || !strings.HasPrefix(got.Outcome, c.outcome) || got.Done != done || time.Since(got.At) > time.Minute {
			t.Errorf("%s %s: line %+v", c.act, c.fields, got)
		}
		body := w.page(strings.Replace(to, "/audit", "/audit", 1)).Body.String()
		if body == "" {
			t.Error("no page")
		}
		rec := w.get(to, append(as, "Accept", "text/html")...)
		wantParts(t, rec.Body.String(), `class="flash `+map[bool]string{true: "good", false: "bad"}[done], "by writer")
		wantTidy(t, rec.Body.String())
	}
	if _, err := w.pools.Endpoint(t.Context(), "public", endpoint); !errors.Is(err, allocation.ErrUnknownEndpoint) {
		t.Errorf("the removed endpoint: %v", err)
	}
	if v := w.schedules.calls; len(v) < 3 || v[0] != "pause news by writer" {
		t.Errorf("calls %v", v)
	}
	if st, err := w.quotas.State(t.Context(), "youtube"); err != nil || st.Blocks != 1 || !st.BlockedUntil.IsZero() {
		t.Errorf("quota %+v, %v", st, err)
	}
}

func TestActionsAskForTheRoleAndForThisSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	fields := url.Values{"name": {"news"}}
	if _, status := w.form("/act/schedule/pause", fields, "Authorization", "Bearer "+readToken); status != 403 {
		t.Errorf("a read token: status %d, want 403", status)
	}
	if l := w.lines()[0]; l.Who != "reader" || l.Done || l.Object != "/act/schedule/pause" {
		t.Errorf("the line of somebody whose role is too low: %+v", l)
	}
	if _, status := w.form("/act/schedule/pause", fields); status != 401 {
		t.Errorf("nobody: status %d, want 401", status)
	}
	n := len(w.lines())
	write := map[string]string{"Authorization": "Bearer " + writeToken, "Content-Type": "application/x-www-form-urlencoded"}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		h := pairs([]string{name, value})
		for k, v := range write {
			h[k] = v
		}
		if rec := w.do(ask{method: "POST", path: "/act/schedule/pause", header: h, body: fields.Encode()}); rec.Code != 403 {
			t.Errorf("%s %s: status %d, want 403", name, value, rec.Code)
		}
	}
	if len(w.schedules.calls) > 0 || len(w.lines()) != n {
		t.Error("a page of another site did something, or left a line")
	}
	// Readers see no buttons.
	body := w.get("/schedules", "Authorization", "Bearer "+readToken, "Accept", "text/html").Body.String()
	if strings.Contains(body, "/act/") {
		t.Error("a reader is shown buttons")
	}
	if to, _ := w.form("/act/schedule/resume", url.Values{"name": {"news"}, "back": {"https://evil.example/"}}, "Authorization", "Bearer "+writeToken); !strings.HasPrefix(to, "/?done=") {
		t.Errorf("back to %q", to)
	}
	w.wantProblem(w.post("/act/schedule/pause", `{"name":"news"}`, "Authorization", "Bearer "+writeToken), 415, "content-type")
	if _, status := w.form("/act/none/such", nil, "Authorization", "Bearer "+writeToken); status != 404 {
		t.Errorf("an act that is none: status %d", status)
	}
}

func TestTheAPIsActionsLeaveLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.schedules.views[0].State = "active"
	w.wantStatus(w.post("/v1/schedules/news/pause", ""), 200)
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news","id":"one"}`), 202)
	w.wantStatus(w.do(ask{method: "DELETE", path: "/v1/jobs/one"}), 200)
	w.wantStatus(w.do(ask{method: "DELETE", path: "/v1/jobs/none"}), 404)
	w.wantStatus(w.post("/monitor/api/queues/interactive:pause", ""), 204)
	if rec := w.do(ask{method: "DELETE", path: "/monitor/api/queues/none"}); rec.Code < 400 {
		t.Errorf("a queue that is none was deleted: %d", rec.Code)
	}
	w.wantStatus(w.post("/v1/quotas/none/charge", `{"id":"a","cost":1}`), 404)
	for _, want := range []AuditLine{
		{What: "pause schedule", Object: "news", Outcome: "done", Done: true},
		{What: "enqueue", Object: "news", Outcome: "done", Done: true},
		{What: "cancel job", Object: "one", Outcome: "done", Done: true},
		{What: "cancel job", Object: "none", Outcome: "no such job (ended jobs are kept for two hours)"},
		{What: "change queues", Object: "/api/queues/interactive:pause", Outcome: "done", Done: true},
		{What: "delete from queues", Object: "/api/queues/none", Outcome: "asynqmon answered 404"},
		{What: "charge quota", Object: "none", Outcome: "no quota of that name in the config"},
	} {
		found := false
		for _, l := range w.lines() {
			found = found || l.What == want.What && l.Object == want.Object && l.Outcome == want.Outcome && l.Done == want.Done && l.Who == "anonymous" && l.Role == "admin" && l.From == "192.0.2.1"
		}
		if !found {
			t.Errorf("no line %+v among %+v", want, w.lines())
		}
	}
}

func TestWhatProgramsDoAgainAndAgainLeavesALineAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	w.server.access.now = func() time.Time { return now }
	for i := range 30 {
		w.charge(fmt.Sprintf(`{"id":"c%d","cost":1}`, i))
	}
	if l := w.lines(); len(l) != 1 || l[0].Times != 1 {
		t.Fatalf("lines %+v, want one", l)
	}
	now = now.Add(busyEvery)
	w.charge(`{"id":"later","cost":1}`)
	if l := w.lines(); len(l) != 2 || l[0].Times != 30 || l[0].What != "charge quota" {
		t.Fatalf("lines %+v, want a second one of 30 times", l)
	}
	w.charge(`{"id":"last","cost":1}`)
	w.server.audit.close(t.Context())
	if l := w.lines(); len(l) != 3 || l[0].Times != 1 {
		t.Errorf("lines %+v, want a third one at the end", l)
	}
}

func TestTheAuditIsBoundedAndPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pipe := w.rdb.Pipeline()
	for i := range auditKept + 500 {
		pipe.Do(t.Context(), "XADD", auditKey, "*", "who", "x", "what", "w", "object", fmt.Sprintf("<o%d>", i), "outcome", "done", "done", "1")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.server.audit.leave(t.Context(), AuditLine{Who: "me", What: "newest", Object: strings.Repeat("ü", 1000), Outcome: "done", Done: true}); err != nil {
		t.Fatal(err)
	}
	if n := w.rdb.XLen(t.Context(), auditKey).Val(); n > auditKept+200 {
		t.Errorf("%d lines are kept, want about %d", n, auditKept)
	}
	body := w.page("/audit").Body.String()
	wantParts(t, body, "newest", "&lt;o10499&gt;", "Older →")
	if n := strings.Count(body, `<tr role="row">`); n != auditPerPage+1 {
		t.Errorf("%d rows, want %d and the head", n, auditPerPage)
	}
	_, next, _ := strings.Cut(body, `href="?before=`)
	next, _, _ = strings.Cut(next, `"`)
	body = w.page("/audit?before=" + next).Body.String()
	wantParts(t, body, "&lt;o10400&gt;", "To the newest")
	if strings.Contains(body, "newest</span>") || len(body) > 80<<10 {
		t.Errorf("the second page has %d bytes, or lines of the first", len(body))
	}
}

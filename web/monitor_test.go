package web

import (
	"regexp"
	"strings"
	"testing"
)

func TestMonitorLooksForReadersAndChangesForAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news","id":"one"}`, as(writeToken)...), 202)

	for token, readOnly := range map[string]string{readToken: "true", writeToken: "true", adminToken: "false"} {
		body := w.get("/monitor/", as(token)...).Body.String()
		if !strings.Contains(body, `window.FLAG_READ_ONLY="`+readOnly+`"`) || !strings.Contains(body, `window.FLAG_ROOT_PATH="\/monitor"`) {
			t.Errorf("%s: the page does not say read only = %s", token, readOnly)
		}
		rec := w.get("/monitor/api/queues/interactive/pending_tasks", as(token)...)
		w.wantStatus(rec, 200)
		if !strings.Contains(rec.Body.String(), `{\"v\":1,\"feed\":\"news\"}`) {
			t.Errorf("tasks %s", rec.Body)
		}
	}
	w.wantStatus(w.do(ask{method: "HEAD", path: "/monitor/api/queues", header: pairs(as(readToken))}), 200)
	for _, call := range []ask{{method: "POST", path: "/monitor/api/queues/interactive:pause"}, {method: "DELETE", path: "/monitor/api/queues/interactive/pending_tasks/one"}} {
		for _, token := range []string{readToken, writeToken} {
			call.header = pairs(as(token))
			w.wantProblem(w.do(call), 403, "role")
		}
		call.header = pairs(as(adminToken))
		w.wantStatus(w.do(call), 204)
	}
}

func TestMonitorRunsUnderItsPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := w.get("/monitor/queues/scheduled?status=retry", "Accept", "text/html")
	w.wantStatus(rec, 200)
	body, policy := rec.Body.String(), rec.Header().Get("Content-Security-Policy")
	if strings.Contains(body, "https://") || strings.Contains(body, "manifest") {
		t.Error("the page loads from elsewhere")
	}
	scripts := inlineScript.FindAllStringSubmatch(body, -1)
	if len(scripts) == 0 {
		t.Error("no inline script found: has asynqmon's page changed?")
	}
	for _, m := range scripts {
		if !strings.Contains(policy, hashSource([]byte(m[1]))) {
			t.Error("an inline script is not in the policy")
		}
	}
	if strings.Contains(strings.Split(policy, "style-src")[0], "unsafe") {
		t.Errorf("policy %q", policy)
	}
	assets := regexp.MustCompile(`(?:src|href)="(/monitor/[^"]+)"`).FindAllStringSubmatch(body, -1)
	if len(assets) < 3 {
		t.Fatalf("assets %v", assets)
	}
	for _, m := range assets {
		rec := w.get(m[1])
		if rec.Code != 200 || strings.Contains(rec.Header().Get("Content-Type"), "html") {
			t.Errorf("%s: status %d, %s", m[1], rec.Code, rec.Header().Get("Content-Type"))
		}
	}
	rec = w.get("/monitor")
	if rec.Code != 308 || rec.Header().Get("Location") != "/monitor/" {
		t.Errorf("/monitor: status %d, Location %q", rec.Code, rec.Header().Get("Location"))
	}
	w.wantStatus(w.do(ask{method: "HEAD", path: "/monitor/"}), 200)
}

func TestPayloadsAreReadable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"{\n \"feed\" : \"a<b\" }": `{"feed":"a<b"}`,
		"plain":                    "plain",
		"a\x00b":                   "a\uFFFDb",
		"\xff\xfe\x01":             "3 bytes that are no text",
	} {
		if got := readable([]byte(in)); got != want {
			t.Errorf("readable(%q) = %q, want %q", in, got, want)
		}
	}
	long := readable([]byte(strings.Repeat("x", 70<<10)))
	if !strings.HasSuffix(long, "(71680 bytes in all)") {
		t.Errorf("long: …%s", long[len(long)-30:])
	}
}

package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/jobs/feed"
)

// TestOpenAPIHasEveryRouteAndNoOther holds the document against the routes, both
// ways, with the role that each asks for.
func TestOpenAPIHasEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	served := map[string]Role{}
	for _, rt := range routes(w.server, http.NotFoundHandler()) {
		if strings.HasPrefix(rt.path, "/v1/") {
			served[rt.method+" "+rt.path] = rt.role
		}
	}
	documented := map[string]Role{}
	ids := map[string]bool{}
	for _, op := range apiDocument(t).operations() {
		documented[op.name()] = Role(op.text("x-role"))
		if id := op.text("operationId"); id == "" || ids[id] {
			t.Errorf("%s: operationId %q is empty or another's", op.name(), id)
		} else {
			ids[id] = true
		}
		if op.text("summary") == "" {
			t.Errorf("%s: no summary", op.name())
		}
	}
	for name, role := range served {
		if got, ok := documented[name]; !ok {
			t.Errorf("%s is served and not in openapi.yaml", name)
		} else if got != role {
			t.Errorf("%s asks for the role %s, openapi.yaml says %s", name, role, got)
		}
	}
	for name := range documented {
		if _, ok := served[name]; !ok {
			t.Errorf("%s is in openapi.yaml and not served", name)
		}
	}
	if len(served) < 20 {
		t.Errorf("only %d routes were looked at", len(served))
	}
}

// TestOpenAPIIsServedToReaders: both forms are the same document.
func TestOpenAPIIsServedToReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	w.wantProblem(w.get("/v1/openapi.json"), 401, "no-token")
	rec := w.get("/v1/openapi.json", "Authorization", "Bearer "+readToken)
	w.wantStatus(rec, 200)
	if got := decode[map[string]any](w, rec); got["openapi"] != "3.1.0" || rec.Header().Get("Content-Type") != jsonType {
		t.Errorf("openapi %v, Content-Type %q", got["openapi"], rec.Header().Get("Content-Type"))
	}
	text := w.get("/v1/openapi.yaml", "Authorization", "Bearer "+readToken)
	if text.Code != 200 || !bytes.Equal(text.Body.Bytes(), openapiText) || text.Header().Get("Content-Type") != yamlType {
		t.Errorf("YAML: %d, %q", text.Code, text.Header().Get("Content-Type"))
	}
}

// exchange is one request of a running server that the document is held against.
type exchange struct {
	op, path string // op as "METHOD /template"
	body     string
	kind     string // of the body; JSON by default
	header   [2]string
	status   int
}

// TestOpenAPIDescribesARunningServer sends what the document says, and holds
// each answer against its schema: every operation's success, and what can go wrong.
func TestOpenAPIDescribesARunningServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	withPushFeed(w)
	ctx := t.Context()
	w.put("news", 3*time.Minute, nil, item("a", "A"), item("b", "B"))
	w.put("news", 2*time.Minute, [][]byte{[]byte(`{"x":1}`), []byte(`{"y":2}`)}, item("b", "B"), item("c", "C"))
	w.ended("old-job", "news", "done", "", `{"what":"new version","version":2}`)
	w.snoozed("snoozing", "trending-bd", "snoozed until 2026-11-30T08:00:00Z: quota youtube", time.Now().Add(time.Hour))
	if err := w.store.SetAside(ctx, "news", feed.Aside{At: time.Now(), Job: "j", Kind: "ban", Reason: "a ban page", Type: "text/html", Body: []byte("<html>")}); err != nil {
		t.Fatal(err)
	}
	list, err := w.pools.List(ctx, "public")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.pools.Judge(ctx, "public", list[0].ID, allocation.Verdict{OK: true, HTTPS: true, Latency: time.Second, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	w.jobs.Note("phone", "news")
	w.jobs.FlushReads()

	exchanges := []exchange{
		{op: "POST /v1/jobs", path: "/v1/jobs", body: `{"feed":"trending-bd","id":"mine","priority":"scheduled","in":"1h","expires":"3h","params":{"regionCode":"PH","maxResults":5}}`, status: 202},
		{op: "POST /v1/jobs", path: "/v1/jobs", body: `{"feed":"news","id":"mine"}`, status: 409},
		{op: "POST /v1/jobs", path: "/v1/jobs", body: `{"feed":"nosuch"}`, status: 404},
		{op: "POST /v1/jobs", path: "/v1/jobs", kind: ndjsonType, body: `{"feed":"news"}` + "\n" + `{"feed":"nosuch"}` + "\n" + `{"feed":"by-hand","at":"2036-01-01T00:00:00Z"}` + "\n", status: 202},
		{op: "GET /v1/jobs", path: "/v1/jobs?feed=trending-bd&state=snoozed&limit=1&page=1", status: 200},
		{op: "GET /v1/jobs", path: "/v1/jobs", status: 200},
		{op: "GET /v1/jobs", path: "/v1/jobs?state=asleep", status: 400},
		{op: "GET /v1/jobs/{id}", path: "/v1/jobs/mine", status: 200},
		{op: "GET /v1/jobs/{id}", path: "/v1/jobs/old-job", status: 200},
		{op: "GET /v1/jobs/{id}", path: "/v1/jobs/snoozing", status: 200},
		{op: "GET /v1/jobs/{id}", path: "/v1/jobs/nosuch", status: 404},
		{op: "DELETE /v1/jobs/{id}", path: "/v1/jobs/mine", status: 200},
		{op: "DELETE /v1/jobs/{id}", path: "/v1/jobs/old-job", status: 409},
		{op: "GET /v1/feeds", path: "/v1/feeds", status: 200},
		{op: "GET /v1/feeds/{name}", path: "/v1/feeds/news?wait=1s", status: 200},
		{op: "GET /v1/feeds/{name}", path: "/v1/feeds/news?as=items&version=1&since=2020-01-01T00:00:00Z", status: 200},
		{op: "GET /v1/feeds/{name}", path: "/v1/feeds/news?as=raw&page=1", status: 200},
		{op: "GET /v1/feeds/{name}", path: "/v1/feeds/news?as=raw&page=2", header: [2]string{"Range", "bytes=0-1"}, status: 206},
		{op: "GET /v1/feeds/{name}", path: "/v1/feeds/news", header: [2]string{"If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}, status: 304},
		{op: "GET /v1/feeds/{name}", path: "/v1/feeds/by-hand", status: 503},
		{op: "GET /v1/feeds/{name}", path: "/v1/feeds/news?version=9", status: 404},
		{op: "PUT /v1/feeds/{name}", path: "/v1/feeds/scores", body: `[{"id":"a","title":"A"}]`, header: [2]string{"If-None-Match", "*"}, status: 201},
		{op: "PUT /v1/feeds/{name}", path: "/v1/feeds/scores?allow_empty=true", body: `[]`, status: 200},
		{op: "PUT /v1/feeds/{name}", path: "/v1/feeds/news", body: `[]`, status: 409},
		{op: "GET /v1/feeds/{name}/versions", path: "/v1/feeds/news/versions", status: 200},
		{op: "GET /v1/feeds/{name}/diff", path: "/v1/feeds/news/diff?from=1&to=2", status: 200},
		{op: "GET /v1/feeds/{name}/aside", path: "/v1/feeds/news/aside", status: 200},
		{op: "POST /v1/warm", path: "/v1/warm", body: `{"client":"phone"}`, status: 202},
		{op: "POST /v1/warm", path: "/v1/warm", body: `{"client":""}`, status: 400},
		{op: "POST /v1/quotas/{name}/charge", path: "/v1/quotas/youtube/charge", body: `{"id":"a","cost":250,"priority":"interactive"}`, status: 200},
		{op: "POST /v1/quotas/{name}/charge", path: "/v1/quotas/youtube/charge", body: `{"id":"b","cost":250}`, status: 429},
		{op: "POST /v1/quotas/{name}/charge", path: "/v1/quotas/youtube/charge", body: `{"id":"c","cost":250,"no_line":true}`, status: 429},
		{op: "POST /v1/quotas/{name}/charge", path: "/v1/quotas/youtube/charge", body: `{"id":"d","cost":20000}`, status: 422},
		{op: "GET /v1/quotas", path: "/v1/quotas", status: 200},
		{op: "GET /v1/quotas/{name}", path: "/v1/quotas/youtube", status: 200},
		{op: "GET /v1/quotas/{name}", path: "/v1/quotas/nosuch", status: 404},
		{op: "POST /v1/quotas/{name}/refund", path: "/v1/quotas/youtube/refund", body: `{"id":"a"}`, status: 200},
		{op: "GET /v1/pools", path: "/v1/pools", status: 200},
		{op: "GET /v1/pools/{name}", path: "/v1/pools/public", status: 200},
		{op: "GET /v1/pools/{name}", path: "/v1/pools/nosuch", status: 404},
		{op: "GET /v1/schedules", path: "/v1/schedules?ahead=24h", status: 200},
		{op: "POST /v1/schedules/{name}/pause", path: "/v1/schedules/news/pause", body: `{"for":"30m"}`, status: 200},
		{op: "POST /v1/schedules/{name}/resume", path: "/v1/schedules/news/resume", status: 200},
		{op: "POST /v1/schedules/{name}/trigger", path: "/v1/schedules/news/trigger", status: 202},
		{op: "POST /v1/schedules/{name}/trigger", path: "/v1/schedules/nosuch/trigger", status: 404},
		{op: "GET /v1/openapi.json", path: "/v1/openapi.json", status: 200},
		{op: "GET /v1/openapi.yaml", path: "/v1/openapi.yaml", status: 200},
	}
	base, doc := w.start(), apiDocument(t)
	shown := map[string]bool{}
	for _, x := range exchanges {
		name := fmt.Sprintf("%s: %s %s", x.op, x.path, x.body)
		op, ok := doc.operation(x.op)
		if !ok {
			t.Errorf("%s: not in openapi.yaml", x.op)
			continue
		}
		status, header, body := w.exchange(base, x)
		if status != x.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, x.status, body)
		}
		if status < 300 && x.body != "" {
			if err := op.checkRequest(x.mediaType(), []byte(x.body)); err != nil {
				t.Errorf("%s: it was taken, but openapi.yaml has another shape: %v", name, err)
			}
		}
		if err := op.checkAnswer(status, header, body); err != nil && !(status < 300 && strings.Contains(x.path, "as=raw")) {
			t.Errorf("%s: %d: %v\n%s", name, status, err, body)
		}
		shown[x.op] = shown[x.op] || status < 300
	}
	for _, op := range doc.operations() {
		if !shown[op.name()] {
			t.Errorf("%s: no success was looked at", op.name())
		}
	}
}

func (x exchange) mediaType() string {
	if x.kind == "" {
		return jsonType
	}
	return x.kind
}

func (w *world) exchange(base string, x exchange) (int, http.Header, []byte) {
	w.Helper()
	method, _, _ := strings.Cut(x.op, " ")
	req, err := http.NewRequestWithContext(w.Context(), method, base+x.path, strings.NewReader(x.body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+writeToken)
	if x.body != "" {
		req.Header.Set("Content-Type", x.mediaType())
	}
	if x.header[0] != "" {
		req.Header.Set(x.header[0], x.header[1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, resp.Header, body
}

var knownParameters = regexp.MustCompile(`is not known; known are (.*)$`)

// TestOpenAPIHasTheParametersThatTheServerKnows asks each operation with one
// that does not exist: the refusal names those that do.
func TestOpenAPIHasTheParametersThatTheServerKnows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withPushFeed(w)
	for _, op := range apiDocument(t).operations() {
		path := strings.NewReplacer("{id}", "nojob", "{name}", "news").Replace(op.path)
		if strings.HasPrefix(op.path, "/v1/quotas/") {
			path = strings.Replace(path, "news", "youtube", 1)
		}
		if op.method == put {
			path = strings.Replace(path, "news", "scores", 1)
		}
		var known []string
		rec := w.do(ask{method: op.method, path: path + "?nosuch=1", header: pairs([]string{"Content-Type", jsonType}), body: "{}"})
		if rec.Code == http.StatusBadRequest {
			var p Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if m := knownParameters.FindStringSubmatch(p.Detail); m != nil {
				known = strings.Split(m[1], ", ")
			}
		}
		documented := op.queryNames()
		slices.Sort(known)
		slices.Sort(documented)
		if !slices.Equal(known, documented) {
			t.Errorf("%s: the server knows %q, openapi.yaml has %q", op.name(), known, documented)
		}
	}
}

// TestOpenAPICheckCanFail: what the tests above lean on refuses what is wrong.
func TestOpenAPICheckCanFail(t *testing.T) {
	t.Parallel()
	op, ok := apiDocument(t).operation("GET /v1/jobs/{id}")
	if !ok {
		t.Fatal("no such operation")
	}
	h := func(kind string) http.Header { return http.Header{"Content-Type": {kind}} }
	good := `{"id":"a","feed":"f","queue":"q","state":"done","attempts":1,"snoozes":0,"requests_sent":1,"crashes":0,"tick":null,"next_at":null,"last_error":"","ended_at":"2026-11-30T08:00:00Z"}`
	if err := op.checkAnswer(200, h(jsonType), []byte(good)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a field more":         op.checkAnswer(200, h(jsonType), []byte(strings.Replace(good, `{"id"`, `{"more":1,"id"`, 1))),
		"a field less":         op.checkAnswer(200, h(jsonType), []byte(strings.Replace(good, `"id":"a",`, ``, 1))),
		"no state of ours":     op.checkAnswer(200, h(jsonType), []byte(strings.Replace(good, `"done"`, `"asleep"`, 1))),
		"no instant":           op.checkAnswer(200, h(jsonType), []byte(strings.Replace(good, `2026-11-30T08:00:00Z`, `yesterday`, 1))),
		"another media type":   op.checkAnswer(200, h("text/html"), []byte(good)),
		"an undocumented 2xx":  op.checkAnswer(204, h(""), nil),
		"a problem sans code":  op.checkAnswer(404, h(problemType), []byte(`{"type":"about:blank","title":"Not Found","status":404}`)),
		"an error that is not": op.checkAnswer(404, h(jsonType), []byte(good)),
	} {
		if err == nil {
			t.Errorf("%s passes", what)
		}
	}
}

// checkDocumented holds any answer that a test gets under /v1 against the document.
func (w *world) checkDocumented(a ask, status int, header http.Header, body []byte) {
	w.Helper()
	path, query, _ := strings.Cut(a.path, "?")
	if !strings.HasPrefix(path, "/v1/") || a.method == http.MethodHead {
		return
	}
	op, ok := apiDocument(w).match(a.method, path)
	if !ok || slices.Contains([]int{404, 405, 421}, status) && header.Get("Content-Type") == problemType {
		return
	}
	if status < 300 && strings.Contains(query, "as=raw") {
		return // the upstream's own bytes
	}
	if err := op.checkAnswer(status, header, body); err != nil {
		w.Errorf("%s %s: %d is not as openapi.yaml says: %v\n%.500s", a.method, a.path, status, err, body)
	}
}

func contentKind(h http.Header) string {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

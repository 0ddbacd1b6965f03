package web

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// everyRoute is what the router has, so a route that comes is asked too.
func everyRoute(w *world) []route { return routes(w.server, http.NotFoundHandler()) }

var someNames = strings.NewReplacer("{$}", "", "{id}", "nojob", "{name}", "news", "{file}", "style.css", "{kind}", "schedule", "{verb}", "pause")

// A page of another site reaches no route that changes anything, whatever the
// browser sends along.
func TestNoRouteThatActsListensToOtherSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	k, _ := w.server.access.find(adminToken)
	cookie := cookieName + "=" + k.seal(time.Now().Add(time.Hour))
	acting := 0
	for _, rt := range everyRoute(w) {
		if rt.method == get {
			continue
		}
		acting++
		for _, from := range [][]string{
			{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site"},
			{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "http://localhost:8081"},
		} {
			rec := w.do(ask{method: rt.method, path: someNames.Replace(rt.path), header: pairs(append([]string{"Cookie", cookie}, from...))})
			w.wantProblem(rec, http.StatusForbidden, "cross-origin")
		}
	}
	if acting < 10 {
		t.Errorf("only %d routes act", acting)
	}
}

// A name that is bound to our address is not ours, on any route, with any
// credential. The judge alone answers by every name, and has nothing of ours.
func TestNoRouteAnswersToARebound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	for _, rt := range everyRoute(w) {
		rec := w.do(ask{method: rt.method, path: someNames.Replace(rt.path), header: map[string]string{
			"Host": "rebound.example", "Authorization": "Bearer " + adminToken, "Origin": "http://rebound.example", "Sec-Fetch-Site": "same-origin",
		}})
		if open := rt.path == "/judge"; open != (rec.Code != http.StatusMisdirectedRequest) {
			t.Errorf("%s %s: status %d", rt.method, rt.path, rec.Code)
		}
		if rt.path == "/judge" && strings.Contains(rec.Body.String(), adminToken) {
			t.Error("the judge says a token")
		}
	}
}

// A GET changes nothing, so it needs no more than the right to look.
func TestRolesOfRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := map[string]bool{"GET /login": true, "POST /login": true, "GET /healthz": true, "GET /readyz": true, "GET /judge": true}
	for _, rt := range everyRoute(w) {
		name := rt.method + " " + rt.path
		switch {
		case rt.role == "":
			if !open[name] {
				t.Errorf("%s is open to everybody", name)
			}
		case open[name]:
			t.Errorf("%s asks for a token", name)
		case rt.method == get && rt.role != Read, rt.method != get && rt.role == Read && rt.path != "/logout":
			t.Errorf("%s asks for %s", name, rt.role)
		}
	}
}

package web

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAccessMatrix asks every route with every kind of credential.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	w.put("news", time.Minute, nil)
	a := w.server.access
	cookieOf := func(token string, end time.Time) string {
		k, ok := a.find(token)
		if !ok {
			t.Fatalf("no key of %s", token)
		}
		return cookieName + "=" + k.seal(end)
	}
	soon := time.Now().Add(time.Hour)
	good := cookieOf(writeToken, soon)
	other := "A" // than what stands there
	if good[len(cookieName)+20] == 'A' {
		other = "B"
	}
	ended := cookieOf(adminToken, soon)
	w.wantStatus(w.do(ask{method: "POST", path: "/logout", header: pairs([]string{"Cookie", ended})}), http.StatusSeeOther)
	tokens := map[Role]string{Read: readToken, Write: writeToken, Admin: adminToken}
	credentials := []struct {
		name   string
		header [2]string
		role   Role // "" is nobody
	}{
		{"none", [2]string{}, ""},
		{"read token", [2]string{"Authorization", "Bearer " + readToken}, Read},
		{"write token", [2]string{"Authorization", "Bearer " + writeToken}, Write},
		{"admin token", [2]string{"Authorization", "bearer " + adminToken}, Admin},
		{"bad token", [2]string{"Authorization", "Bearer bad-token-0123456789"}, ""},
		{"basic", [2]string{"Authorization", "Basic YTpi"}, ""},
		{"read cookie", [2]string{"Cookie", cookieOf(readToken, soon)}, Read},
		{"write cookie", [2]string{"Cookie", good}, Write},
		{"admin cookie", [2]string{"Cookie", cookieOf(adminToken, soon)}, Admin},
		{"expired cookie", [2]string{"Cookie", cookieOf(adminToken, time.Now().Add(-time.Second))}, ""},
		{"cookie with another end", [2]string{"Cookie", cookieName + "=" + good[len(cookieName)+1:len(cookieName)+20] + other + good[len(cookieName)+21:]}, ""},
		{"ended cookie", [2]string{"Cookie", ended}, ""},
		{"rubbish cookie", [2]string{"Cookie", cookieName + "=x"}, ""},
	}
	fill := strings.NewReplacer("{$}", "", "{id}", "nojob", "{name}", "news", "{file}", "style.css")
	for _, rt := range append(routes(w.server, http.NotFoundHandler()), route{method: get, path: "/nowhere", role: Read}, route{method: put, path: "/v1/jobs", role: Read}) {
		path := fill.Replace(rt.path)
		if rt.path == "/monitor/" {
			path = "/monitor/api/queues/none"
		}
		for _, c := range credentials {
			a.failures = newFailures() // a 429 is another test's matter
			header := []string{}
			if c.header[0] == "Cookie" && c.role != "" {
				c.header[1] = cookieOf(tokens[c.role], soon) // a session of its own: one of the routes ends it
			}
			if c.header[0] != "" {
				header = c.header[:]
			}
			rec := w.do(ask{method: rt.method, path: path, header: pairs(header)})
			want := 0
			switch {
			case rt.role == "":
			case c.role == "":
				want = http.StatusUnauthorized
			case c.role.rank() < rt.role.rank():
				want = http.StatusForbidden
			}
			got := rec.Code
			if rt.path == "/login" && rt.method == post && got != http.StatusUnsupportedMediaType {
				t.Errorf("POST /login without a form, %s: status %d, want 415", c.name, got)
			}
			switch {
			case want != 0 && got != want:
				t.Errorf("%s %s, %s: status %d, want %d", rt.method, path, c.name, got, want)
			case want == 0 && (got == http.StatusUnauthorized || got == http.StatusForbidden):
				t.Errorf("%s %s, %s: status %d, want it let in", rt.method, path, c.name, got)
			case want != 0 && rec.Header().Get("WWW-Authenticate") == "":
				t.Errorf("%s %s, %s: no WWW-Authenticate", rt.method, path, c.name)
			case want != 0 && rec.Header().Get("Content-Type") != problemType:
				t.Errorf("%s %s, %s: Content-Type %q", rt.method, path, c.name, rec.Header().Get("Content-Type"))
			}
		}
	}
}

func TestWithoutTokensEverybodyMayDoEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wantStatus(w.get("/v1/feeds"), 200)
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news"}`), 202)
	w.wantStatus(w.post("/monitor/api/queues/interactive:pause", ""), 204)
	w.wantStatus(w.get("/login"), 303)
}

func TestABadTokenIsNotHealedByAGoodCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	k, _ := w.server.access.find(adminToken)
	rec := w.get("/v1/feeds", "Authorization", "Bearer wrong-wrong-wrong-wrong", "Cookie", cookieName+"="+k.seal(time.Now().Add(time.Hour)))
	w.wantProblem(rec, 401, "invalid-token")
	if got := rec.Header().Get("WWW-Authenticate"); got != `Bearer realm="feedwarden", error="invalid_token"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
}

func TestSessionsAreGoodForEveryServerWithTheSameToken(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(time.Hour)
	one, two := newAccess(threeTokens, ""), newAccess(threeTokens[:1], "")
	k, _ := one.find(readToken)
	if got, ok := two.session(k.seal(end)); !ok || got.key.name != "reader" {
		t.Errorf("the other server says %v, %v; want reader", got.key.name, ok)
	}
	k, _ = one.find(adminToken)
	if _, ok := two.session(k.seal(end)); ok {
		t.Error("a token that was taken away still has a session")
	}
	changed := newAccess([]Token{{"reader", "another-token-0123456789", Read}}, "")
	k, _ = one.find(readToken)
	if _, ok := changed.session(k.seal(end)); ok {
		t.Error("a token whose text has changed still has a session")
	}
}

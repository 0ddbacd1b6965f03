package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func (w *world) logIn(token, next string, header ...string) *httptest.ResponseRecorder {
	w.Helper()
	h := pairs(header)
	h["Content-Type"] = "application/x-www-form-urlencoded"
	return w.do(ask{method: "POST", path: "/login", header: h, body: url.Values{"token": {token}, "next": {next}}.Encode()})
}

func TestLoginAndLogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)

	rec := w.get("/feeds/news?version=1", "Accept", "text/html")
	w.wantStatus(rec, 401)
	for _, part := range []string{`name="token"`, `name="next" value="/feeds/news?version=1"`, "<style>"} {
		if !strings.Contains(rec.Body.String(), part) {
			t.Errorf("the page has no %q", part)
		}
	}
	rec = w.logIn("wrong-wrong-wrong", "/")
	w.wantStatus(rec, 401)
	if len(rec.Result().Cookies()) != 0 || !strings.Contains(rec.Body.String(), "No such token") || strings.Contains(rec.Body.String(), "wrong-wrong") {
		t.Error("a wrong token got a cookie, no word, or its echo")
	}
	if rec.Header().Get("WWW-Authenticate") == "" {
		t.Error("401 without WWW-Authenticate")
	}

	rec = w.logIn(readToken, "/feeds/news")
	w.wantStatus(rec, 303)
	if got := rec.Header().Get("Location"); got != "/feeds/news" {
		t.Errorf("Location %q", got)
	}
	c := rec.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge <= 0 || c.Secure {
		t.Errorf("cookie %+v", c)
	}
	if strings.Contains(c.Value, readToken) {
		t.Error("the token is in the cookie")
	}
	session := c.Name + "=" + c.Value
	rec = w.get("/", "Accept", "text/html", "Cookie", session)
	w.wantStatus(rec, 200)
	if !strings.Contains(rec.Body.String(), "Log out") || !strings.Contains(rec.Body.String(), "reader") {
		t.Error("the page does not say who is in, or how to leave")
	}
	rec = w.do(ask{method: "POST", path: "/logout", header: pairs([]string{"Cookie", session})})
	w.wantStatus(rec, 303)
	if c := rec.Result().Cookies()[0]; c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("after logout the cookie is %+v", c)
	}
}

func TestCookieIsSecureUnderTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	srv := httptest.NewTLSServer(w.server.Handler())
	defer srv.Close()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.PostForm(srv.URL+"/login", url.Values{"token": {readToken}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if c := resp.Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("cookies %v, want one that is Secure", c)
	}
}

func TestLoginFailuresAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	now := time.Now()
	w.server.access.now = func() time.Time { return now }
	for range failuresAllowed {
		w.wantStatus(w.logIn("wrong-wrong-wrong", "/"), 401)
	}
	rec := w.logIn("wrong-wrong-wrong", "/")
	w.wantProblem(rec, 429, "too-many-failures")
	w.wantStatus(w.logIn(readToken, "/"), 303) // whoever fails from the same address locks out nobody
	w.wantProblem(w.logIn("wrong-wrong-wrong", "/"), 429, "too-many-failures")
	if rec.Header().Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	w.wantProblem(w.get("/v1/feeds", "Authorization", "Bearer wrong-wrong-wrong"), 429, "too-many-failures")
	w.wantStatus(w.get("/v1/feeds", "Authorization", "Bearer "+readToken), 200)
	now = now.Add(failuresWithin)
	w.wantStatus(w.logIn(readToken, "/"), 303)
}

func TestFailuresAreCountedPerSender(t *testing.T) {
	t.Parallel()
	f, now := newFailures(), time.Now()
	from := func(addr string) *http.Request { return &http.Request{RemoteAddr: addr} }
	for range failuresAllowed {
		if err := f.note(from("[2001:db8::1]:5000"), now); err != nil {
			t.Fatal(err)
		}
	}
	if f.note(from("[2001:db8::ffff]:6000"), now) == nil {
		t.Error("an address of the same network is not refused")
	}
	if f.note(from("[2001:db8:0:1::1]:5000"), now) != nil || f.note(from("192.0.2.1:5000"), now) != nil {
		t.Error("an address of another network is refused")
	}
}

func TestNextIsAPathOfOurs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/feeds/news?version=2": "/feeds/news?version=2",
		"":                      "/",
		"feeds":                 "/",
		"//evil.example":        "/",
		"https://evil.example/": "/",
		`/\evil.example`:        "/",
		"/\tevil":               "/",
		"javascript:alert(1)":   "/",
		"/login":                "/",
		"/logout":               "/",
		"/%zz":                  "/",
	} {
		if got := localPath(text); got != want {
			t.Errorf("localPath(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestALargeFormIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	rec := w.logIn(strings.Repeat("x", maxForm), "/")
	w.wantProblem(rec, 413, "too-large")
	rec = w.do(ask{method: "POST", path: "/act/schedule/pause", body: "name=" + strings.Repeat("x", maxForm), header: map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Authorization": "Bearer " + writeToken,
	}})
	w.wantProblem(rec, 413, "too-large")
}

func TestALogoutEndsTheSessionInEveryCopyOfItsCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	first, second := w.logIn(readToken, "/").Result().Cookies()[0], w.logIn(readToken, "/").Result().Cookies()[0]
	look := func(c *http.Cookie) int { return w.get("/feeds", "Cookie", c.Name+"="+c.Value).Code }
	if look(first) != 200 || look(second) != 200 {
		t.Fatal("a login is not let in")
	}
	w.wantStatus(w.do(ask{method: "POST", path: "/logout", header: pairs([]string{"Cookie", first.Name + "=" + first.Value})}), 303)
	if got := look(first); got != 401 {
		t.Errorf("a copy of the cookie after the log-out: status %d, want 401", got)
	}
	if got := look(second); got != 200 {
		t.Errorf("another session of the same token: status %d, want 200", got)
	}
	keys := w.rdb.Keys(t.Context(), endedPrefix+"*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %v, want one", keys)
	}
	if ttl := w.rdb.TTL(t.Context(), keys[0]).Val(); ttl <= 0 || ttl > sessionLife {
		t.Errorf("it is remembered for %s, want no longer than the session's life", ttl)
	}
}

package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHostsThatAreNotOursAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Parts, _ *pace) { c.Hosts = []string{"Feeds.example.org", "10.1.2.3"} })
	for host, ours := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LOCALHOST.": true, "127.0.0.1:1": true, "[::1]": true, "[::1]:8080": true,
		"feeds.example.org": true, "feeds.example.org:443": true, "10.1.2.3": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "10.1.2.4": false, "0.0.0.0": false,
		"[::]": false, "": false, "localhost:8080@evil.example": false, "127.0.0.2": false,
	} {
		for _, path := range []string{"/v1/feeds", "/", "/healthz", "/login", "/nowhere"} {
			r := httptest.NewRequest("GET", "http://localhost"+path, nil)
			r.Host = host
			rec := httptest.NewRecorder()
			w.server.Handler().ServeHTTP(rec, r)
			if refused := rec.Code == http.StatusMisdirectedRequest; refused == ours {
				t.Errorf("Host %q, %s: status %d, ours = %v", host, path, rec.Code, ours)
			}
		}
	}
	w.wantProblem(w.get("/healthz", "Host", "evil.example"), 421, "host")
}

func TestTheAddressThatWasReachedIsOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens, func(c *Config, _ *Parts, _ *pace) { c.Listen = "0.0.0.0:0" })
	w.start()
	port := w.server.Addr().String()[strings.LastIndex(w.server.Addr().String(), ":"):]
	for host, want := range map[string]int{"127.0.0.1" + port: 200, "127.0.0.9" + port: 421, "rebound.example" + port: 421} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1"+port+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s: status %d, want %d", host, resp.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestPagesOfOtherSitesCannotPost(t *testing.T) {
	t.Parallel()
	open, closed := newWorld(t), newWorld(t, withTokens)
	k, _ := closed.server.access.find(adminToken)
	cookie := cookieName + "=" + k.seal(closed.server.access.now().Add(sessionLife))
	for _, c := range []struct {
		name    string
		header  []string
		refused bool
	}{
		{"a program", nil, false},
		{"our page", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:8080"}, false},
		{"our page, old browser", []string{"Origin", "http://localhost:8080"}, false},
		{"another site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, true},
		{"another port", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:9999"}, true},
		{"another site, old browser", []string{"Origin", "https://evil.example"}, true},
		{"a sandbox", []string{"Origin", "null"}, true},
	} {
		for _, w := range []*world{open, closed} {
			for _, call := range []struct{ method, path string }{
				{"POST", "/v1/jobs"}, {"DELETE", "/v1/jobs/x"}, {"POST", "/v1/quotas/youtube/charge"}, {"PUT", "/v1/feeds/news"},
				{"POST", "/v1/schedules/news/pause"}, {"POST", "/monitor/api/queues/q:pause"}, {"DELETE", "/monitor/api/queues/q"}, {"POST", "/logout"}, {"POST", "/login"},
			} {
				rec := w.do(ask{method: call.method, path: call.path, header: pairs(append([]string{"Cookie", cookie}, c.header...))})
				if refused := rec.Code == 403; refused != c.refused {
					t.Errorf("%s, %s %s: status %d, refused should be %v", c.name, call.method, call.path, rec.Code, c.refused)
				}
			}
		}
	}
	open.wantStatus(open.get("/v1/feeds", "Sec-Fetch-Site", "cross-site"), 200)
}

func TestEveryAnswerIsShielded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/", "/v1/feeds", "/healthz", "/metrics", "/monitor/", "/nowhere", "/assets/style.css"} {
		h := w.get(path).Header()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if strings.Contains(policy, "unsafe") && path != "/monitor/" {
			t.Errorf("%s: policy %q lets inline text run", path, policy)
		}
	}
}

func TestAPanicIsA500AndLeavesTheServerAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boom := w.server.shield(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			_, _ = rw.Write([]byte("half"))
		}
		panic("boom " + apiKey[:0])
	}))
	srv := httptest.NewServer(boom)
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/early")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 500 || resp.Header.Get("Content-Type") != problemType {
		t.Errorf("status %d, %q", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	if resp, err := srv.Client().Get(srv.URL + "/late"); err == nil {
		defer resp.Body.Close()
		buf := make([]byte, 100)
		for err == nil {
			_, err = resp.Body.Read(buf)
		}
		if err.Error() == "EOF" {
			t.Error("an answer that was cut looks whole")
		}
	}
	if !strings.Contains(w.logs.String(), "a handler panicked") {
		t.Error("the log says nothing of the panic")
	}
}

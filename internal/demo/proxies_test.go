package demo

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/faultkit"
)

func through(t *testing.T, proxy *url.URL) *http.Client {
	t.Helper()
	return plainClient(t, &http.Transport{Proxy: http.ProxyURL(proxy)})
}

func TestWorldShowsTheWayOfEachRequest(t *testing.T) {
	w := world(t, Options{User: "ann", Password: "p@ss:w"})
	for _, u := range w.ProxyURLs() {
		resp, _ := ask(t, through(t, u), w.Upstream.FeedURL())
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d", u.Redacted(), resp.StatusCode)
		}
	}
	ask(t, plainClient(t, &http.Transport{}), w.Upstream.FeedURL())
	s := w.Upstream.Stats()
	for _, via := range []string{w.HTTP[0].Name(), w.HTTP[1].Name(), w.SOCKS.Name(), "direct"} {
		if s.ByVia[via] != 1 {
			t.Errorf("%s carried %d: %v", via, s.ByVia[via], s.ByVia)
		}
	}
	if s.Requests != 4 {
		t.Errorf("%d requests", s.Requests)
	}
	for _, l := range w.Upstream.Log() {
		if l.Via == "" || l.Status != 200 || l.Remote == "" || strings.Contains(l.Remote, ":") {
			t.Errorf("log %+v", l)
		}
	}
}

func TestLoginsAreAskedFor(t *testing.T) {
	w := world(t, Options{User: "ann", Password: "secret"})
	resp, _ := ask(t, through(t, &url.URL{Scheme: "http", Host: w.HTTP[1].Addr()}), w.Upstream.FeedURL())
	if resp.StatusCode != http.StatusProxyAuthRequired || resp.Header.Get("Proxy-Authenticate") == "" {
		t.Errorf("status %d", resp.StatusCode)
	}
	c := through(t, &url.URL{Scheme: "socks5", Host: w.SOCKS.Addr(), User: url.UserPassword("ann", "wrong")})
	if resp, err := c.Get(w.Upstream.FeedURL()); err == nil {
		_ = resp.Body.Close()
		t.Error("socks5 let a wrong password pass")
	}
	// It is counted once the client has its answer.
	for deadline := time.Now().Add(30 * time.Second); w.HTTP[1].Stats().AuthFailures != 1 || w.SOCKS.Stats().AuthFailures != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v %+v", w.HTTP[1].Stats(), w.SOCKS.Stats())
		}
	}
}

func TestTunnel(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secure") }))
	t.Cleanup(s.Close)
	w := world(t, Options{})
	for _, u := range w.ProxyURLs() {
		c := plainClient(t, &http.Transport{
			Proxy: http.ProxyURL(u), TLSClientConfig: s.Client().Transport.(*http.Transport).TLSClientConfig,
		})
		if _, body := ask(t, c, s.URL); body != "secure" {
			t.Errorf("%s: %q", u.Scheme, body)
		}
	}
	for _, p := range []faultkit.Stats{w.HTTP[0].Stats(), w.HTTP[1].Stats(), w.SOCKS.Stats()} {
		if p.Tunnels != 1 || p.Connections != 1 {
			t.Errorf("%+v", p)
		}
	}
}

func TestForwardKeepsHopHeadersBack(t *testing.T) {
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("X-End", "1")
	}))
	t.Cleanup(s.Close)
	w := world(t, Options{User: "ann", Password: "secret"})
	resp, _ := ask(t, through(t, w.HTTP[1].URL()), s.URL, "Connection", "X-Mine", "X-Mine", "1", "X-End", "1")
	if got.Get("Proxy-Authorization")+got.Get("X-Mine") != "" || got.Get("X-End") != "1" || got.Get("Via") == "" {
		t.Errorf("the target got %v", got)
	}
	if resp.Header.Get("X-Hop") != "" || resp.Header.Get("X-End") != "1" {
		t.Errorf("the client got %v", resp.Header)
	}
}

func TestProxyRefusesOriginForm(t *testing.T) {
	w := world(t, Options{})
	if resp, _ := ask(t, plainClient(t, &http.Transport{}), "http://"+w.HTTP[0].Addr()+"/x"); resp.StatusCode != 400 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestHungProxyIsMended(t *testing.T) {
	w := world(t, Options{})
	for _, p := range []*faultkit.Proxy{w.HTTP[0], w.SOCKS} {
		_ = p.Fail(faultkit.Hang, 0)
		c := through(t, p.URL())
		got := make(chan int, 1)
		go func() {
			resp, _ := ask(t, c, w.Upstream.FeedURL())
			got <- resp.StatusCode
		}()
		for p.Stats().Connections == 0 {
			<-time.NewTimer(time.Millisecond).C
		}
		select {
		case s := <-got:
			t.Errorf("answered %d while it hangs", s)
		default:
		}
		_ = p.Fail(faultkit.NoFault, 0)
		if s := <-got; s != 200 {
			t.Errorf("status %d", s)
		}
	}
}

func TestCloseEndsWhatIsOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := StartWorld(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	hang, release := context.WithCancel(t.Context())
	defer release()
	w.Upstream.Hang(hang)
	failed := make(chan error, 3)
	for _, u := range w.ProxyURLs() {
		c := through(t, u)
		go func() {
			resp, err := c.Get(w.Upstream.FeedURL())
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			failed <- err
		}()
	}
	for w.Upstream.Stats().Requests < 3 {
		<-time.NewTimer(time.Millisecond).C
	}
	cancel() // the context ends the world as Close does
	for range 3 {
		<-failed
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

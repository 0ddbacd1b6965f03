package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"go.uber.org/goleak"

	"feedwarden/internal/faultkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open is a client that may reach the loopback servers of these tests.
func open(t *testing.T, c Config) *Client {
	t.Helper()
	c.AllowPrivate = true
	return client(t, c)
}

func client(t *testing.T, c Config) *Client {
	t.Helper()
	cl := New(c)
	t.Cleanup(cl.Close)
	return cl
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func say(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func startProxy(t *testing.T, scheme string, o faultkit.Options) *faultkit.Proxy {
	t.Helper()
	p, err := faultkit.Start(context.WithoutCancel(t.Context()), scheme, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func httpProxy(t *testing.T, o faultkit.Options) *faultkit.Proxy { return startProxy(t, "http", o) }

func socksProxy(t *testing.T, o faultkit.Options) *faultkit.Proxy { return startProxy(t, "socks5", o) }

func authority(t *testing.T) *faultkit.Authority {
	t.Helper()
	a, err := faultkit.NewAuthority("of the test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func faultTarget(t *testing.T, a *faultkit.Authority, h http.HandlerFunc) *faultkit.Target {
	t.Helper()
	tg, err := faultkit.StartTarget(context.WithoutCancel(t.Context()), a, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	})
	return tg
}

// anyHost is a proxy that itself answers for every host it is asked for, so
// that names of the public internet can be used.
func anyHost(t *testing.T, h http.HandlerFunc) Via {
	t.Helper()
	s := serve(t, h)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return Via{ID: "any-host", Proxy: u}
}

func get(t *testing.T, c *Client, rawURL string, via Via) *Response {
	t.Helper()
	resp, err := c.Do(t.Context(), Request{URL: rawURL}, via)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	return resp
}

// wantKind fails unless err is an *Error of that kind.
func wantKind(t *testing.T, err error, want Kind) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("err = %v, want an *Error of kind %s", err, want)
	}
	if e.Kind != want {
		t.Fatalf("kind = %s, want %s: %v", e.Kind, want, err)
	}
	return e
}

// until polls for a condition that other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for: %s", what)
		}
		runtimeYield()
	}
}

func runtimeYield() {
	t := time.NewTimer(2 * time.Millisecond)
	<-t.C
}

package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"net"

	"go.uber.org/goleak"

	"feedwarden/internal/demo"
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

func httpProxy(t *testing.T, o demo.ProxyOptions) *demo.HTTPProxy {
	t.Helper()
	p, err := demo.StartHTTPProxy(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func socksProxy(t *testing.T, o demo.ProxyOptions) *demo.SOCKS5Proxy {
	t.Helper()
	p, err := demo.StartSOCKS5Proxy(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
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

// process starts a program that listens on a port of its own and waits for it.
func process(t *testing.T, args func(port int) []string) string {
	t.Helper()
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		line := args(port)
		bin, err := exec.LookPath(line[0])
		if err != nil {
			t.Fatalf("%s is needed by this test and is not on PATH: %v", line[0], err)
		}
		cmd := exec.Command(bin, line[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if answers(t.Context(), addr, ended) {
			return addr
		}
	}
	t.Fatal("the program did not start to listen")
	return ""
}

func answers(ctx context.Context, addr string, ended <-chan struct{}) bool {
	var d net.Dialer
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); runtimeYield() {
		select {
		case <-ended:
			return false
		default:
		}
		if c, err := d.DialContext(ctx, "tcp", addr); err == nil {
			_ = c.Close()
			return true
		}
	}
	return false
}

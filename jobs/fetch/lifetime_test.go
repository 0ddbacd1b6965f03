package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"feedwarden/internal/faultkit"
)

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestThousandFetchesOverFiftyEndpoints(t *testing.T) {
	tg := newTargets(t)
	c := open(t, Config{RootCAs: tg.config.RootCAs, MaxTransports: 10})
	var vias []Via
	for i := range 50 {
		p := httpProxy(t, faultkit.Options{})
		vias = append(vias, Via{ID: fmt.Sprint(i), Proxy: p.URL()})
	}
	goroutines, fds := runtime.NumGoroutine(), descriptors(t)
	most := 0
	for round := range 20 {
		u := tg.http.URL
		if round%7 == 3 {
			u = tg.https.URL // handshakes take long under the race detector
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if _, err := c.Do(t.Context(), Request{URL: u}, vias[i]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		until(t, "evicted transports to close", func() bool { return c.pool.open.Load() <= 20 })
		most = max(most, int(c.pool.open.Load()))
	}
	if n := c.pool.kept.Len(); n != 10 {
		t.Errorf("%d transports are kept, want 10", n)
	}
	t.Logf("at most %d connections were open between rounds", most)
	c.Close()
	until(t, "connections to close", func() bool { return c.pool.open.Load() == 0 })
	// The proxies keep their own connections to the targets, one or two each.
	until(t, "goroutines and descriptors to be as before", func() bool {
		return runtime.NumGoroutine() <= goroutines+50*2*4 && descriptors(t) <= fds+50*2*2
	})
}

func TestEvictionSparesWhatIsInUse(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{})
	var once sync.Once
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			once.Do(func() { close(arrived) })
			<-release
		}
		_, _ = io.WriteString(w, "ok")
	})
	c := open(t, Config{MaxTransports: 1})
	p1, p2 := httpProxy(t, faultkit.Options{}), httpProxy(t, faultkit.Options{})
	got := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), Request{URL: s.URL + "/slow"}, Via{ID: "1", Proxy: p1.URL()})
		got <- err
	}()
	<-arrived
	get(t, c, s.URL, Via{ID: "2", Proxy: p2.URL()}) // evicts the first
	close(release)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	// Its connection is not kept once it is done.
	until(t, "only the second endpoint's connection", func() bool { return c.pool.open.Load() == 1 })
}

// quiet accepts connections and never says a word.
func quiet(t *testing.T) (addr string, accepted *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted = &atomic.Int64{}
	var conns []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			accepted.Add(1)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return l.Addr().String(), accepted
}

// Wherever it waits, a fetch whose caller gives up ends at once and leaves
// nothing behind.
func TestCancelled(t *testing.T) {
	for _, tt := range []struct {
		name string
		url  func(quiet string) string
		via  func(quiet string) Via
	}{
		{"for headers", func(q string) string { return "http://" + q }, func(string) Via { return Via{} }},
		{"for a TLS handshake", func(q string) string { return "https://" + q }, func(string) Via { return Via{} }},
		{"for a proxy's answer", func(string) string { return "http://127.0.0.1:1024/" }, func(q string) Via { return Via{ID: "p", Proxy: &url.URL{Scheme: "http", Host: q}} }},
		{"for a tunnel", func(string) string { return "https://127.0.0.1:1024/" }, func(q string) Via { return Via{ID: "p", Proxy: &url.URL{Scheme: "http", Host: q}} }},
		{"for a socks handshake", func(string) string { return "http://127.0.0.1:1024/" }, func(q string) Via { return Via{ID: "p", Proxy: &url.URL{Scheme: "socks5", Host: q}} }},
		{"for a TLS handshake with a proxy", func(string) string { return "http://127.0.0.1:1024/" }, func(q string) Via { return Via{ID: "p", Proxy: &url.URL{Scheme: "https", Host: q}} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, Config{})
			addr, accepted := quiet(t)
			before := goleak.IgnoreCurrent()
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() {
				_, err := c.Do(ctx, Request{URL: tt.url(addr)}, tt.via(addr))
				got <- err
			}()
			until(t, "the connection", func() bool { return accepted.Load() > 0 })
			started := time.Now()
			cancel()
			err := <-got
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("took %v to give up", took)
			}
			e := wantKind(t, err, KindCancelled)
			if !errors.Is(e, context.Canceled) {
				t.Errorf("%v is not context.Canceled", e)
			}
			goleak.VerifyNone(t, before)
			if n := c.pool.open.Load(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}

func TestCancelledWithinBody(t *testing.T) {
	sent := make(chan struct{})
	var once sync.Once
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a beginning")
		_ = http.NewResponseController(w).Flush()
		once.Do(func() { close(sent) })
		<-r.Context().Done()
	})
	c := open(t, Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, Request{URL: s.URL}, Via{})
		got <- err
	}()
	<-sent
	cancel(errors.New("a cause of the caller's own"))
	wantKind(t, <-got, KindCancelled)
	until(t, "the connection to close", func() bool { return c.pool.open.Load() == 0 })
}

func TestCancelledBeforehand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := open(t, Config{}).Do(ctx, Request{URL: "http://127.0.0.1:1024/"}, Via{})
	wantKind(t, err, KindCancelled)
}

func TestCallersDeadline(t *testing.T) {
	addr, _ := quiet(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := open(t, Config{}).Do(ctx, Request{URL: "http://" + addr}, Via{})
	e := wantKind(t, err, KindTimeout)
	if !errors.Is(e, context.DeadlineExceeded) {
		t.Error(e)
	}
}

// A silent endpoint ends with our own timeouts, and leaves nothing either:
// net/http alone would wait a minute for its answer to CONNECT.
func TestSilentProxyLeavesNothing(t *testing.T) {
	for _, scheme := range []string{"http", "socks5", "https"} {
		addr, _ := quiet(t)
		c := open(t, Config{Timeout: 60 * time.Millisecond})
		before := goleak.IgnoreCurrent()
		_, err := c.Do(t.Context(), Request{URL: "https://127.0.0.1:1024/"}, Via{ID: "p", Proxy: &url.URL{Scheme: scheme, Host: addr}})
		wantKind(t, err, KindTimeout)
		goleak.VerifyNone(t, before)
	}
}

// Two requests wait for one host; each must be able to use what was dialled
// for the other.
func TestConnectionChangesHands(t *testing.T) {
	s := serve(t, say("ok"))
	c := open(t, Config{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if _, err := c.Do(t.Context(), Request{URL: s.URL}, Via{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A connection that nobody used lies idle while the one it was dialled for is
// served by another; to net/http it is a kept one. Who takes it as its owner ends
// goes out anew.
func TestConnectionTakenAsItsOwnerEnds(t *testing.T) {
	s := serve(t, say("ok"))
	for _, reused := range []bool{false, true} {
		for _, taken := range []bool{false, true} {
			var count atomic.Int64
			owner, end := context.WithCancel(t.Context())
			conn, err := dialFor(&net.Dialer{}, &count)(withOwner(owner), "tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if taken {
				(&progress{}).trace().GotConn(httptrace.GotConnInfo{Conn: conn})
			}
			end()
			p := &progress{}
			p.trace().GotConn(httptrace.GotConnInfo{Conn: conn, Reused: reused})
			p.trace().WroteHeaders() // into a buffer
			if p.lost.Load() == taken || p.again() == taken {
				t.Errorf("reused %v, taken over before %v: lost %v, goes out anew %v", reused, taken, p.lost.Load(), p.again())
			}
			if n := count.Load(); n == 0 == taken {
				t.Errorf("reused %v, taken over before %v: %d connections are open", reused, taken, n)
			}
			_ = conn.Close()
		}
	}
}

func TestDirectDialIsGuarded(t *testing.T) {
	s := serve(t, say("private"))
	tr := New(Config{}).pool.build(Via{})
	_, err := tr.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	var p *policyError
	if !errors.As(err, &p) {
		t.Fatalf("a name that resolves to loopback would be dialled: %v", err)
	}
	if classify(err, &progress{}) != KindPolicy {
		t.Errorf("%v is of kind %s", err, classify(err, &progress{}))
	}
	// A proxy's own address is the pool's business.
	tr = New(Config{}).pool.build(Via{Proxy: &url.URL{Scheme: "http", Host: s.Listener.Addr().String()}})
	conn, err := tr.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestHTTP2IsNotSpoken(t *testing.T) {
	tg := newTargets(t)
	tr := open(t, tg.config).pool.build(Via{})
	if tr.TLSNextProto == nil || tr.ForceAttemptHTTP2 {
		t.Error("the transport would speak HTTP/2")
	}
	conn, err := tls.Dial("tcp", tg.https.Listener.Addr().String(), tr.TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if p := conn.ConnectionState().NegotiatedProtocol; p != "" {
		t.Errorf("negotiated %q", p)
	}
}

package faultkit

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("os/exec.(*Cmd).Wait"))
}

const (
	size = 50_000
	cut  = 20_000 // where "in mid-answer" is
)

var page = bytes.Repeat([]byte("0123456789"), size/10)

// stage is a target, and proxies to it.
type stage struct {
	t      *testing.T
	ca     *Authority
	target *Target
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ca, err := NewAuthority("of the test")
	if err != nil {
		t.Fatal(err)
	}
	target, err := StartTarget(context.WithoutCancel(t.Context()), ca, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	return &stage{t, ca, target}
}

func (s *stage) proxy(scheme string) *Proxy {
	s.t.Helper()
	p, err := Start(context.WithoutCancel(s.t.Context()), scheme, Options{User: "ann", Password: "secret", Authority: s.ca})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return p
}

func (s *stage) client(proxy *url.URL, roots *x509.CertPool) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// got is what a client has of one request.
type got struct {
	status int
	body   []byte
	err    error
}

func get(ctx context.Context, c *http.Client, address string) got {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return got{err: err}
	}
	resp, err := c.Do(r)
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, body, err}
}

func (g got) whole() bool {
	return g.err == nil && g.status == http.StatusOK && bytes.Equal(g.body, page)
}

func (g got) failsWith(parts ...string) bool {
	if g.err == nil {
		return false
	}
	for _, p := range parts {
		if strings.Contains(g.err.Error(), p) {
			return true
		}
	}
	return false
}

// late says that time was up, and how much had come by then.
func (g got) late(least, most int) bool {
	var ne net.Error
	return errors.As(g.err, &ne) && ne.Timeout() && len(g.body) >= least && len(g.body) <= most
}

// Each fault by each kind of proxy, to an http and an https target, as a client
// meets it; and what was mended serves again.
func TestEachFaultDoesWhatItSays(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	forged := func(tls bool, plain func(got) bool) func(got) bool {
		if tls {
			return func(g got) bool { var unknown x509.UnknownAuthorityError; return errors.As(g.err, &unknown) }
		}
		return plain
	}
	// what a fault looks like: by a proxy of a scheme, to a target with TLS or without
	looks := map[Fault]func(scheme string, secure bool) func(got) bool{
		NoFault: func(string, bool) func(got) bool { return got.whole },
		Gone: func(string, bool) func(got) bool {
			return func(g got) bool { return g.failsWith("connection refused") }
		},
		Drop: func(string, bool) func(got) bool {
			return func(g got) bool { return g.failsWith("EOF", "reset", "broken pipe", "closed idle") }
		},
		Hang: func(string, bool) func(got) bool { return func(g got) bool { return g.late(0, 0) } },
		Auth: func(scheme string, secure bool) func(got) bool {
			switch {
			case scheme == "socks5":
				return func(g got) bool { return g.failsWith("no acceptable authentication methods") }
			case secure:
				return func(g got) bool { return g.failsWith("Proxy Authentication Required") }
			}
			return func(g got) bool { return g.err == nil && g.status == http.StatusProxyAuthRequired }
		},
		Refuse: func(scheme string, secure bool) func(got) bool {
			switch {
			case scheme == "socks5":
				return func(g got) bool { return g.failsWith("connection refused") }
			case secure:
				return func(g got) bool { return g.failsWith("Bad Gateway") }
			}
			return func(g got) bool { return g.err == nil && g.status == http.StatusBadGateway }
		},
		Mute: func(string, bool) func(got) bool { return func(g got) bool { return g.late(0, 0) } },
		Garbage: func(scheme string, _ bool) func(got) bool {
			if scheme == "socks5" {
				return func(g got) bool { return g.failsWith("unexpected protocol version", "EOF", "reset") }
			}
			return func(g got) bool { return g.failsWith("malformed HTTP") }
		},
		Reset: func(string, bool) func(got) bool {
			return func(g got) bool { return g.failsWith("connection reset") && len(g.body) < size }
		},
		HalfClose: func(string, bool) func(got) bool {
			return func(g got) bool { return g.failsWith("unexpected EOF") && len(g.body) < size }
		},
		Drip: func(_ string, secure bool) func(got) bool {
			if secure { // TLS gives nothing of a record that is not whole
				return func(g got) bool { return g.late(0, cut+1000) }
			}
			return func(g got) bool { return g.late(cut/2, cut+1000) }
		},
		WrongCert: func(_ string, secure bool) func(got) bool { return forged(secure, got.whole) },
		Inject: func(_ string, secure bool) func(got) bool {
			return forged(secure, func(g got) bool { return g.err == nil && g.status == http.StatusOK && string(g.body) == InjectedPage })
		},
		Alter: func(_ string, secure bool) func(got) bool {
			return forged(secure, func(g got) bool { return g.err == nil && string(g.body) == string(page)+InjectedText })
		},
		Reveal: func(string, bool) func(got) bool { return got.whole },
	}
	var running sync.WaitGroup
	for _, f := range append([]Fault{NoFault}, Faults...) {
		look := looks[f]
		if look == nil {
			t.Errorf("nothing says how %q looks", f)
			continue
		}
		for _, scheme := range []string{"http", "https", "socks5"} {
			for _, address := range []string{s.target.HTTP, s.target.HTTPS} {
				p := s.proxy(scheme)
				name := fmt.Sprintf("%q by an %s proxy to %s", f, scheme, address)
				running.Go(func() { // at once: many of them wait for their time to be up
					if err := p.Fail(f, cut); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					limit := 30 * time.Second
					switch f {
					case Hang, Mute:
						limit = 3 * time.Second
					case Drip: // its beginning is to come in that time
						limit = 10 * time.Second
					}
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					g := get(ctx, s.client(p.URL(), s.ca.Pool()), address)
					if !look(scheme, strings.HasPrefix(address, "https:"))(g) {
						t.Errorf("%s: status %d, %d bytes, %v", name, g.status, len(g.body), g.err)
					}
					if err := p.Fail(NoFault, 0); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if g := get(t.Context(), s.client(p.URL(), s.ca.Pool()), address); !g.whole() {
						t.Errorf("%s, mended: status %d, %d bytes, %v", name, g.status, len(g.body), g.err)
					}
				})
			}
		}
	}
	running.Wait()
	if n := s.target.Direct(); n != 0 {
		t.Errorf("%d connections came past the proxies", n)
	}
}

// A target knows whoever comes past the proxies, and what comes through them.
func TestTargetTellsDirectFromThrough(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.proxy("http")
	if g := get(t.Context(), s.client(p.URL(), s.ca.Pool()), s.target.HTTP+"/through"); !g.whole() || s.target.Direct() != 0 {
		t.Fatalf("%v, %d direct", g.err, s.target.Direct())
	}
	if g := get(t.Context(), s.client(nil, s.ca.Pool()), s.target.HTTPS+"/past"); !g.whole() || s.target.Direct() != 1 {
		t.Fatalf("%v, %d direct", g.err, s.target.Direct())
	}
	seen := s.target.Seen()
	if len(seen) != 2 || !seen[0].From.Equal(p.From()) || seen[0].Secure || seen[1].Path != "/past" || !seen[1].Secure {
		t.Errorf("%+v", seen)
	}
	asked := p.Seen()
	if len(asked) != 1 || asked[0].Target != s.target.HTTP+"/through" || asked[0].User != "ann" || asked[0].Password != "secret" {
		t.Errorf("%+v", asked)
	}
}

// Reveal names the client in requests that the proxy reads, and in no tunnel;
// without it none is named. Inject and Alter reach into TLS where a client trusts the rogue.
func TestWhatReachesTheTargetAndTheTrustingClient(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.proxy("http")
	for _, f := range []Fault{NoFault, Reveal} {
		if err := p.Fail(f, 0); err != nil {
			t.Fatal(err)
		}
		c := s.client(p.URL(), s.ca.Pool())
		for _, address := range []string{s.target.HTTP, s.target.HTTPS} {
			if g := get(t.Context(), c, address); !g.whole() {
				t.Fatal(g.err)
			}
			seen := s.target.Seen()
			last := seen[len(seen)-1]
			if named := last.Header.Get("X-Forwarded-For") != "" && last.Header.Get("Forwarded") != ""; named != (f == Reveal && !last.Secure) {
				t.Errorf("%q, TLS %v: %v", f, last.Secure, last.Header)
			}
			if last.Header.Get("Proxy-Authorization") != "" {
				t.Errorf("%q: the login went on to the target", f)
			}
		}
	}
	rogue, err := p.Rogue()
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[Fault]string{WrongCert: string(page), Inject: InjectedPage, Alter: string(page) + InjectedText} {
		if err := p.Fail(f, 0); err != nil {
			t.Fatal(err)
		}
		if g := get(t.Context(), s.client(p.URL(), rogue.Pool()), s.target.HTTPS); g.err != nil || string(g.body) != want {
			t.Errorf("%s to a client that trusts it: %d bytes, %v", f, len(g.body), g.err)
		}
	}
}

package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/internal/faultkit"
)

// targets are an http and an https server that count their requests.
type targets struct {
	http, https *httptest.Server
	authority   *faultkit.Authority // of https proxies; the config trusts it too
	requests    atomic.Int64
	config      Config
}

func newTargets(t *testing.T) *targets {
	t.Helper()
	tg := &targets{}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tg.requests.Add(1)
		_, _ = fmt.Fprintf(w, "from %s", r.RemoteAddr)
	})
	tg.http, tg.https = httptest.NewServer(h), httptest.NewTLSServer(h)
	t.Cleanup(tg.http.Close)
	t.Cleanup(tg.https.Close)
	tg.authority = authority(t)
	tg.config.RootCAs = tg.authority.Pool()
	tg.config.RootCAs.AddCert(tg.https.Certificate())
	return tg
}

// both runs a test for each target.
func (tg *targets) both(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("http", func(t *testing.T) { f(t, tg.http.URL) })
	t.Run("https", func(t *testing.T) { f(t, tg.https.URL) })
}

func TestThroughProxies(t *testing.T) {
	login := faultkit.Options{User: "ann", Password: "p@ss:word"}
	plain, closed := httpProxy(t, faultkit.Options{}), httpProxy(t, login)
	socks, closedSocks := socksProxy(t, faultkit.Options{}), socksProxy(t, login)
	tg := newTargets(t)
	secure := startProxy(t, "https", faultkit.Options{Authority: tg.authority})
	socksh := *socks.URL()
	socksh.Scheme = "socks5h"
	for name, p := range map[string]*url.URL{
		"http": plain.URL(), "http with login": closed.URL(),
		"socks5": socks.URL(), "socks5 with login": closedSocks.URL(), "socks5h": &socksh,
		"https": secure.URL(),
	} {
		t.Run(name, func(t *testing.T) {
			tg.both(t, func(t *testing.T, u string) {
				resp := get(t, open(t, tg.config), u, Via{ID: name, Proxy: p})
				if !strings.HasPrefix(string(resp.Body), "from 127.0.") || strings.HasPrefix(string(resp.Body), "from 127.0.0.1:") {
					t.Errorf("body %q", resp.Body)
				}
			})
		})
	}
	for name, st := range map[string]faultkit.Stats{"http": plain.Stats(), "http with login": closed.Stats(), "socks5": socks.Stats(), "socks5 with login": closedSocks.Stats()} {
		if st.Requests+st.Tunnels < 2 || st.AuthFailures != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

func TestEachEndpointHasItsOwnConnections(t *testing.T) {
	tg := newTargets(t)
	c := open(t, tg.config)
	var proxies []*faultkit.Proxy
	for range 3 {
		proxies = append(proxies, httpProxy(t, faultkit.Options{}))
	}
	tg.both(t, func(t *testing.T, u string) {
		for i := range 12 {
			get(t, c, u, Via{ID: "p", Proxy: proxies[i%3].URL()})
		}
	})
	for i, p := range proxies {
		// Four requests in absolute form, and four through one kept tunnel.
		if st := p.Stats(); st.Requests != 4 || st.Tunnels != 1 {
			t.Errorf("proxy %d carried %+v", i, st)
		}
	}
}

func TestDeadProxyNeverMeansDirect(t *testing.T) {
	tg := newTargets(t)
	c := open(t, tg.config)
	p, s := httpProxy(t, faultkit.Options{}), socksProxy(t, faultkit.Options{})
	vias := []Via{{ID: "http", Proxy: p.URL()}, {ID: "socks", Proxy: s.URL()}}
	tg.both(t, func(t *testing.T, u string) {
		for _, via := range vias {
			get(t, c, u, via)
		}
	})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	before := tg.requests.Load()
	until(t, "the client to notice", func() bool { return c.pool.open.Load() == 0 })
	tg.both(t, func(t *testing.T, u string) {
		for _, via := range vias {
			_, err := c.Do(t.Context(), Request{URL: u}, via)
			wantKind(t, err, KindConnect)
		}
	})
	if n := tg.requests.Load() - before; n != 0 {
		t.Errorf("the target saw %d requests without a proxy", n)
	}
}

func TestEndpointWithoutURLIsNotDirect(t *testing.T) {
	tg := newTargets(t)
	_, err := open(t, tg.config).Do(t.Context(), Request{URL: tg.http.URL}, Via{ID: "p1"})
	wantKind(t, err, KindPolicy)
	if tg.requests.Load() != 0 {
		t.Error("the request went out directly")
	}
	get(t, open(t, tg.config), tg.http.URL, Via{ID: "direct"})
}

// A list can only hold public addresses; what a name stands for is seen when it is dialled.
func TestPublicPoolsReachNoPrivateProxyByName(t *testing.T) {
	tg := newTargets(t)
	p := httpProxy(t, faultkit.Options{})
	_, port, _ := strings.Cut(p.Addr(), ":")
	named := &url.URL{Scheme: "http", Host: "localhost:" + port}
	c := open(t, tg.config)
	get(t, c, tg.http.URL, Via{ID: "p", Proxy: named})
	_, err := c.Do(t.Context(), Request{URL: tg.http.URL}, Via{ID: "p", Proxy: named, PublicOnly: true})
	wantKind(t, err, KindConnect)
	if n := p.Stats().Connections; n != 1 {
		t.Errorf("the proxy saw %d connections", n)
	}
}

func TestProxiesThatCannotBeSpokenTo(t *testing.T) {
	for _, p := range []string{"socks4://127.0.0.1:1080", "ftp://127.0.0.1:21", "//127.0.0.1:8080", "http://", "socks5://" + strings.Repeat("u", 300) + ":p@127.0.0.1:1080"} {
		_, err := open(t, Config{}).Do(t.Context(), Request{URL: "http://127.0.0.1:1/"}, Via{ID: "p", Proxy: must(url.Parse(p))})
		wantKind(t, err, KindPolicy)
	}
}

func TestEnvironmentProxiesAreIgnored(t *testing.T) {
	p, used := httpProxy(t, faultkit.Options{}), httpProxy(t, faultkit.Options{})
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, p.URL().String())
	}
	t.Setenv("NO_PROXY", "*")
	tg := newTargets(t)
	c := open(t, tg.config)
	tg.both(t, func(t *testing.T, u string) {
		get(t, c, u, Via{})
		get(t, c, u, Via{ID: "p", Proxy: used.URL()}) // NO_PROXY does not count either
	})
	if st := p.Stats(); st.Connections != 0 {
		t.Errorf("the environment's proxy was used: %+v", st)
	}
	if st := used.Stats(); st.Requests != 1 || st.Tunnels != 1 {
		t.Errorf("the endpoint was not used: %+v", st)
	}
	// Loopback is exempt from the environment's proxies in net/http, so look
	// at the transport too.
	if c.pool.build(Via{}).Proxy != nil {
		t.Error("a direct transport asks for a proxy")
	}
}

func TestRefusedLogin(t *testing.T) {
	const password = "hunter2-secret"
	login := faultkit.Options{User: "ann", Password: "right"}
	p, s := httpProxy(t, login), socksProxy(t, login)
	tg := newTargets(t)
	for name, proxy := range map[string]*url.URL{
		"http, none":   {Scheme: "http", Host: p.Addr()},
		"http, wrong":  {Scheme: "http", Host: p.Addr(), User: url.UserPassword("ann", password)},
		"socks, none":  {Scheme: "socks5", Host: s.Addr()},
		"socks, wrong": {Scheme: "socks5", Host: s.Addr(), User: url.UserPassword("ann", password)},
	} {
		t.Run(name, func(t *testing.T) {
			// The two shapes of a 407: an answer for http, a failed tunnel for https.
			tg.both(t, func(t *testing.T, u string) {
				_, err := open(t, tg.config).Do(t.Context(), Request{URL: u}, Via{ID: "p1", Proxy: proxy})
				e := wantKind(t, err, KindProxyAuth)
				if strings.Contains(e.Error(), password) || strings.Contains(e.Error(), "ann") {
					t.Errorf("the error names the login: %v", e)
				}
			})
		})
	}
	if tg.requests.Load() != 0 {
		t.Error("the target saw a request")
	}
}

// Within a tunnel only the target speaks, so its 407 says nothing of the proxy.
func TestTargetsOwn407(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(407) }))
	t.Cleanup(s.Close)
	c := open(t, Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	p := httpProxy(t, faultkit.Options{})
	if resp := get(t, c, s.URL, Via{ID: "p", Proxy: p.URL()}); resp.Status != 407 {
		t.Errorf("status %d", resp.Status)
	}
	sp := socksProxy(t, faultkit.Options{})
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(407) })
	if resp := get(t, c, plain.URL, Via{ID: "s", Proxy: sp.URL()}); resp.Status != 407 {
		t.Errorf("status %d", resp.Status)
	}
}

// What each way of failing is called, for every kind of proxy and target.
func TestEachFaultHasItsKind(t *testing.T) {
	ca := authority(t)
	big := bytes.Repeat([]byte("all is well\n"), 30_000)
	target := faultTarget(t, ca, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(big) })
	const answered, altered = Kind("answered"), Kind("altered") // an answer that is no error here
	// Keys are "proxy target", "proxy", or "" for all others; the most exact one holds.
	for _, tt := range []struct {
		fault faultkit.Fault
		after int64
		want  map[string]Kind
	}{
		{faultkit.Gone, 0, map[string]Kind{"": KindConnect}},
		{faultkit.Drop, 0, map[string]Kind{"": KindReset}},
		{faultkit.Hang, 0, map[string]Kind{"": KindTimeout}},
		{faultkit.Mute, 0, map[string]Kind{"": KindTimeout}},
		{faultkit.Auth, 0, map[string]Kind{"": KindProxyAuth}},
		// To an http target an http proxy's 502 is an answer like any other.
		{faultkit.Refuse, 0, map[string]Kind{"": KindUnreachable, "http http": answered, "https http": answered}},
		{faultkit.Garbage, 0, map[string]Kind{"": KindProtocol, "socks5": KindReset}},
		{faultkit.Reset, 100_000, map[string]Kind{"": KindReset}},
		{faultkit.HalfClose, 100_000, map[string]Kind{"": KindTruncated}},
		{faultkit.Drip, 100_000, map[string]Kind{"": KindTimeout}},
		{faultkit.WrongCert, 0, map[string]Kind{"": answered, "http https": KindTLS, "https https": KindTLS, "socks5 https": KindTLS}},
		{faultkit.Inject, 0, map[string]Kind{"": altered, "http https": KindTLS, "https https": KindTLS, "socks5 https": KindTLS}},
		{faultkit.Alter, 0, map[string]Kind{"": altered, "http https": KindTLS, "https https": KindTLS, "socks5 https": KindTLS}},
		{faultkit.Reveal, 0, map[string]Kind{"": answered}},
	} {
		for _, scheme := range []string{"http", "https", "socks5"} {
			for kind, u := range map[string]string{"http": target.HTTP, "https": target.HTTPS} {
				t.Run(fmt.Sprintf("%s/%s proxy/%s target", tt.fault, scheme, kind), func(t *testing.T) {
					t.Parallel()
					p := startProxy(t, scheme, faultkit.Options{Authority: ca})
					c := open(t, Config{RootCAs: ca.Pool()})
					get(t, c, u, Via{ID: "p", Proxy: p.URL()}) // well before
					if err := p.Fail(tt.fault, tt.after); err != nil {
						t.Fatal(err)
					}
					// A connection that was kept from before would hide what a new one meets.
					cfg := Config{RootCAs: ca.Pool()}
					if tt.want[""] == KindTimeout {
						cfg.HeaderTimeout, cfg.IdleBody, cfg.MinRate = time.Second, time.Second, 10_000
					}
					c = open(t, cfg)
					resp, err := c.Do(t.Context(), Request{URL: u}, Via{ID: "p", Proxy: p.URL()})
					want, ok := tt.want[scheme+" "+kind]
					if !ok {
						if want, ok = tt.want[scheme]; !ok {
							want = tt.want[""]
						}
					}
					switch want {
					case answered, altered:
						if err != nil {
							t.Fatal(err)
						}
						if same := bytes.Equal(resp.Body, big); resp.Status == http.StatusOK && same == (want == altered) {
							t.Errorf("the body is whole: %t", same)
						}
					default:
						wantKind(t, err, want)
					}
					if err := p.Fail(faultkit.NoFault, 0); err != nil {
						t.Fatal(err)
					}
					get(t, c, u, Via{ID: "p", Proxy: p.URL()}) // and well after
				})
			}
		}
	}
	t.Cleanup(func() {
		if n := target.Direct(); n != 0 {
			t.Errorf("%d connections reached the target past the proxies", n)
		}
	})
}

func TestTLSFailures(t *testing.T) {
	tg := newTargets(t)
	p := httpProxy(t, faultkit.Options{})
	for name, via := range map[string]Via{
		"direct":    {},
		"tunnel":    {ID: "p", Proxy: p.URL()},
		"its proxy": {ID: "p", Proxy: startProxy(t, "https", faultkit.Options{Authority: tg.authority}).URL()},
	} {
		t.Run(name, func(t *testing.T) {
			// The test's certificate is known to no system.
			_, err := open(t, Config{}).Do(t.Context(), Request{URL: tg.https.URL}, via)
			wantKind(t, err, KindTLS)
		})
	}
	_, err := open(t, Config{}).Do(t.Context(), Request{URL: strings.Replace(tg.http.URL, "http://", "https://", 1)}, Via{})
	wantKind(t, err, KindTLS)
}

func TestTinyproxy(t *testing.T) {
	tg := newTargets(t)
	for _, login := range []*url.Userinfo{nil, url.UserPassword("ann", "secret-pass")} {
		realProxy(t, tg, faultkit.Tinyproxy(t, login), "https://127.0.0.1:1024/")
	}
}

func TestMicrosocks(t *testing.T) {
	tg := newTargets(t)
	for _, login := range []*url.Userinfo{nil, url.UserPassword("ann", "secret-pass")} {
		realProxy(t, tg, faultkit.Microsocks(t, login), "http://127.0.0.1:1024/")
	}
}

// realProxy holds somebody else's proxy to what ours are held to. At absent
// there is no target.
func realProxy(t *testing.T, tg *targets, proxy *url.URL, absent string) {
	t.Helper()
	c := open(t, tg.config)
	tg.both(t, func(t *testing.T, u string) {
		get(t, c, u, Via{ID: "real", Proxy: proxy})
		if proxy.User == nil {
			return
		}
		for _, wrong := range []*url.Userinfo{nil, url.UserPassword("ann", "wrong-pass")} {
			_, err := c.Do(t.Context(), Request{URL: u}, Via{ID: "real", Proxy: &url.URL{Scheme: proxy.Scheme, Host: proxy.Host, User: wrong}})
			wantKind(t, err, KindProxyAuth)
		}
	})
	_, err := c.Do(t.Context(), Request{URL: absent}, Via{ID: "real", Proxy: proxy})
	wantKind(t, err, KindUnreachable)
}

// TestEndpointsNameThatBecamePrivate: the address that is dialled counts, not
// what the name meant when it was imported.
func TestEndpointsNameThatBecamePrivate(t *testing.T) {
	tg := newTargets(t)
	httpP, socks := httpProxy(t, faultkit.Options{User: "ann", Password: "canary-77aa"}), socksProxy(t, faultkit.Options{})
	for name, p := range map[string]*url.URL{"http": httpP.URL(), "socks5": socks.URL()} {
		t.Run(name, func(t *testing.T) {
			for _, host := range []string{"localhost", p.Hostname()} {
				named := *p
				named.Host = net.JoinHostPort(host, p.Port())
				tg.both(t, func(t *testing.T, u string) {
					c := open(t, tg.config)
					// Allowed first: a connection that is kept must not serve one that may not have it.
					get(t, c, u, Via{ID: name, Proxy: &named})
					_, err := c.Do(t.Context(), Request{URL: u}, Via{ID: name, Proxy: &named, PublicOnly: true})
					e := wantKind(t, err, KindConnect)
					if !e.Unsent || !strings.Contains(e.Error(), "allow_private") || strings.Contains(e.Error(), "canary") {
						t.Errorf("got %v, unsent: %v", e, e.Unsent)
					}
				})
			}
		})
	}
	if n := tg.requests.Load(); n != 8 {
		t.Errorf("%d requests reached the targets, want the 8 that were allowed", n)
	}
}

// What a refused tunnel or a failed handshake kept from leaving is not paid
// for; what an http proxy was handed may have gone on.
func TestWhatATunnelRefusedHasNotLeft(t *testing.T) {
	ca := authority(t)
	target := faultTarget(t, ca, say("well"))
	for _, tt := range []struct {
		fault  faultkit.Fault
		scheme string
		u      string
		unsent bool
	}{
		{faultkit.Auth, "http", target.HTTPS, true},
		{faultkit.Refuse, "http", target.HTTPS, true},
		{faultkit.WrongCert, "http", target.HTTPS, true},
		{faultkit.Auth, "socks5", target.HTTP, true},
		{faultkit.Refuse, "socks5", target.HTTPS, true},
		{faultkit.Gone, "http", target.HTTP, true},
		{faultkit.Auth, "http", target.HTTP, false},
		{faultkit.Garbage, "http", target.HTTP, false},
	} {
		p := startProxy(t, tt.scheme, faultkit.Options{Authority: ca})
		if err := p.Fail(tt.fault, 0); err != nil {
			t.Fatal(err)
		}
		before := len(target.Seen())
		_, err := open(t, Config{RootCAs: ca.Pool()}).Do(t.Context(), Request{URL: tt.u}, Via{ID: "p", Proxy: p.URL()})
		var e *Error
		if !errors.As(err, &e) || e.Unsent != tt.unsent {
			t.Errorf("%s by %s to %s: %v, want unsent %v", tt.fault, tt.scheme, tt.u, err, tt.unsent)
		}
		if tt.unsent && len(target.Seen()) != before {
			t.Errorf("%s by %s to %s: the target saw a request", tt.fault, tt.scheme, tt.u)
		}
	}
}

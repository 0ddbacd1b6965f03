package fetch

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/internal/demo"
)

// targets are an http and an https server that count their requests.
type targets struct {
	http, https *httptest.Server
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
	tg.config.RootCAs = tg.https.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return tg
}

// both runs a test for each target.
func (tg *targets) both(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("http", func(t *testing.T) { f(t, tg.http.URL) })
	t.Run("https", func(t *testing.T) { f(t, tg.https.URL) })
}

func TestThroughProxies(t *testing.T) {
	login := demo.ProxyOptions{User: "ann", Password: "p@ss:word"}
	plain, closed := httpProxy(t, demo.ProxyOptions{}), httpProxy(t, login)
	socks, closedSocks := socksProxy(t, demo.ProxyOptions{}), socksProxy(t, login)
	tg := newTargets(t)
	socksh := *socks.URL()
	socksh.Scheme = "socks5h"
	for name, p := range map[string]*url.URL{
		"http": plain.URL(), "http with login": closed.URL(),
		"socks5": socks.URL(), "socks5 with login": closedSocks.URL(), "socks5h": &socksh,
		"https": tlsFront(t, plain.Addr(), tg.https),
	} {
		t.Run(name, func(t *testing.T) {
			tg.both(t, func(t *testing.T, u string) {
				resp := get(t, open(t, tg.config), u, Via{ID: name, Proxy: p})
				if !strings.HasPrefix(string(resp.Body), "from 127.0.0.") {
					t.Errorf("body %q", resp.Body)
				}
			})
		})
	}
	for name, st := range map[string]demo.ProxyStats{"http": plain.Stats(), "http with login": closed.Stats(), "socks5": socks.Stats(), "socks5 with login": closedSocks.Stats()} {
		if st.Requests+st.Tunnels < 2 || st.AuthFailures != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// tlsFront puts TLS before a proxy, with a server's certificate.
func tlsFront(t *testing.T, addr string, cert *httptest.Server) *url.URL {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: cert.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				p, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(p, c); _ = p.Close() }()
				_, _ = io.Copy(c, p)
			}()
		}
	}()
	return &url.URL{Scheme: "https", Host: l.Addr().String()}
}

func TestEachEndpointHasItsOwnConnections(t *testing.T) {
	tg := newTargets(t)
	c := open(t, tg.config)
	var proxies []*demo.HTTPProxy
	for range 3 {
		proxies = append(proxies, httpProxy(t, demo.ProxyOptions{}))
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
	p, s := httpProxy(t, demo.ProxyOptions{}), socksProxy(t, demo.ProxyOptions{})
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

func TestProxiesThatCannotBeSpokenTo(t *testing.T) {
	for _, p := range []string{"socks4://127.0.0.1:1080", "ftp://127.0.0.1:21", "//127.0.0.1:8080", "http://", "socks5://" + strings.Repeat("u", 300) + ":p@127.0.0.1:1080"} {
		_, err := open(t, Config{}).Do(t.Context(), Request{URL: "http://127.0.0.1:1/"}, Via{ID: "p", Proxy: must(url.Parse(p))})
		wantKind(t, err, KindPolicy)
	}
}

func TestEnvironmentProxiesAreIgnored(t *testing.T) {
	p, used := httpProxy(t, demo.ProxyOptions{}), httpProxy(t, demo.ProxyOptions{})
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
	if c.pool.build(nil).Proxy != nil {
		t.Error("a direct transport asks for a proxy")
	}
}

func TestRefusedLogin(t *testing.T) {
	const password = "hunter2-secret"
	login := demo.ProxyOptions{User: "ann", Password: "right"}
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
	p := httpProxy(t, demo.ProxyOptions{})
	if resp := get(t, c, s.URL, Via{ID: "p", Proxy: p.URL()}); resp.Status != 407 {
		t.Errorf("status %d", resp.Status)
	}
	sp := socksProxy(t, demo.ProxyOptions{})
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(407) })
	if resp := get(t, c, plain.URL, Via{ID: "s", Proxy: sp.URL()}); resp.Status != 407 {
		t.Errorf("status %d", resp.Status)
	}
}

func TestFaultyProxies(t *testing.T) {
	big := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) }
	plain := serve(t, big)
	secure := httptest.NewTLSServer(http.HandlerFunc(big))
	t.Cleanup(secure.Close)
	cfg := Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	type proxy interface {
		URL() *url.URL
		Fail(demo.Fault, int64)
	}
	for name, p := range map[string]proxy{"http": httpProxy(t, demo.ProxyOptions{}), "socks5": socksProxy(t, demo.ProxyOptions{})} {
		for _, tt := range []struct {
			fault demo.Fault
			after int64
			want  map[string]Kind // by target; "" for both
		}{
			{demo.FaultAuth, 0, map[string]Kind{"": KindProxyAuth}},
			// To an http target an http proxy's 502 is an answer like any other.
			{demo.FaultRefuse, 0, map[string]Kind{"": KindConnect, "http http": ""}},
			{demo.FaultDrop, 0, map[string]Kind{"": KindReset}},
			{demo.FaultHang, 0, map[string]Kind{"": KindTimeout}},
			{demo.FaultReset, 100_000, map[string]Kind{"": KindReset}},
		} {
			for scheme, u := range map[string]string{"http": plain.URL, "https": secure.URL} {
				t.Run(fmt.Sprintf("%s proxy, %s, %s target", name, tt.fault, scheme), func(t *testing.T) {
					cfg := cfg
					if tt.fault == demo.FaultHang {
						cfg.HeaderTimeout = 150 * time.Millisecond
					}
					c := open(t, cfg)
					p.Fail(tt.fault, tt.after)
					defer p.Fail(demo.NoFault, 0)
					resp, err := c.Do(t.Context(), Request{URL: u}, Via{ID: "p", Proxy: p.URL()})
					want, special := tt.want[name+" "+scheme]
					if !special {
						want = tt.want[""]
					}
					if want == "" {
						if err != nil || resp.Status != http.StatusBadGateway {
							t.Fatalf("%v, %+v", err, resp)
						}
						return
					}
					wantKind(t, err, want)
				})
			}
		}
	}
}

func TestTLSFailures(t *testing.T) {
	tg := newTargets(t)
	p := httpProxy(t, demo.ProxyOptions{})
	for name, via := range map[string]Via{
		"direct":    {},
		"tunnel":    {ID: "p", Proxy: p.URL()},
		"its proxy": {ID: "p", Proxy: tlsFront(t, p.Addr(), tg.https)},
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
		dir := t.TempDir()
		addr := process(t, func(port int) []string {
			conf := fmt.Sprintf("Port %d\nListen 127.0.0.1\nTimeout 20\nMaxClients 20\nAllow 127.0.0.1\nLogFile %q\nPidFile %q\n",
				port, filepath.Join(dir, "log"), filepath.Join(dir, "pid"))
			if login != nil {
				conf += "BasicAuth ann secret-pass\n"
			}
			file := filepath.Join(dir, "tinyproxy.conf")
			if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"tinyproxy", "-d", "-c", file}
		})
		c := open(t, tg.config)
		tg.both(t, func(t *testing.T, u string) {
			get(t, c, u, Via{ID: "tinyproxy", Proxy: &url.URL{Scheme: "http", Host: addr, User: login}})
			if login == nil {
				return
			}
			for _, wrong := range []*url.Userinfo{nil, url.UserPassword("ann", "wrong-pass")} {
				_, err := c.Do(t.Context(), Request{URL: u}, Via{ID: "tinyproxy", Proxy: &url.URL{Scheme: "http", Host: addr, User: wrong}})
				wantKind(t, err, KindProxyAuth)
			}
		})
		// A target that is not there.
		_, err := c.Do(t.Context(), Request{URL: "https://127.0.0.1:1024/"}, Via{ID: "tinyproxy", Proxy: &url.URL{Scheme: "http", Host: addr, User: login}})
		wantKind(t, err, KindConnect)
	}
}

func TestMicrosocks(t *testing.T) {
	tg := newTargets(t)
	for _, login := range []*url.Userinfo{nil, url.UserPassword("ann", "secret-pass")} {
		addr := process(t, func(port int) []string {
			args := []string{"microsocks", "-i", "127.0.0.1", "-p", fmt.Sprint(port)}
			if login != nil {
				args = append(args, "-u", "ann", "-P", "secret-pass")
			}
			return args
		})
		c := open(t, tg.config)
		tg.both(t, func(t *testing.T, u string) {
			get(t, c, u, Via{ID: "microsocks", Proxy: &url.URL{Scheme: "socks5", Host: addr, User: login}})
			if login == nil {
				return
			}
			for _, wrong := range []*url.Userinfo{nil, url.UserPassword("ann", "wrong-pass")} {
				_, err := c.Do(t.Context(), Request{URL: u}, Via{ID: "microsocks", Proxy: &url.URL{Scheme: "socks5", Host: addr, User: wrong}})
				wantKind(t, err, KindProxyAuth)
			}
		})
		_, err := c.Do(t.Context(), Request{URL: "http://127.0.0.1:1024/"}, Via{ID: "microsocks", Proxy: &url.URL{Scheme: "socks5", Host: addr, User: login}})
		wantKind(t, err, KindConnect)
	}
}

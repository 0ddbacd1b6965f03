package fetch

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"feedwarden/internal/faultkit"
)

// environment sets the variables, and takes those away that the machine has.
func environment(t *testing.T, set map[string]string) {
	t.Helper()
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "REQUEST_METHOD"} {
		t.Setenv(name, set[name])
	}
}

func TestEnvironmentEndpointTakesTheProxyThatTheEnvironmentNames(t *testing.T) {
	var proxied []string
	over := anyHost(t, func(w http.ResponseWriter, r *http.Request) {
		proxied = append(proxied, r.URL.Host)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://direct.example.net:"+r.URL.Query().Get("port")+"/", http.StatusFound)
		}
	})
	var direct atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { direct.Add(1) })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	resolver, _ := names(t, map[string][]string{"direct.example.net": {"127.0.0.1"}})
	environment(t, map[string]string{"HTTP_PROXY": over.Proxy.String(), "NO_PROXY": "direct.example.net"})

	c := client(t, Config{AllowPrivate: true, resolver: resolver})
	via := Via{ID: "environment", Environment: true}
	get(t, c, "http://feeds.example.com/", via)
	if len(proxied) != 1 || proxied[0] != "feeds.example.com" || direct.Load() != 0 {
		t.Errorf("through the proxy %q, %d directly", proxied, direct.Load())
	}
	// Each hop by its own URL: the redirect leads where NO_PROXY says that there is no proxy.
	resp := get(t, c, "http://feeds.example.com/away?port="+port, via)
	if resp.Redirects != 1 || len(proxied) != 2 || direct.Load() != 1 {
		t.Errorf("%d redirects, through the proxy %q, %d directly", resp.Redirects, proxied, direct.Load())
	}
	// And no other endpoint asks the environment.
	get(t, c, "http://direct.example.net:"+port+"/", Via{})
	if len(proxied) != 2 || direct.Load() != 2 {
		t.Errorf("a direct request: through the proxy %q, %d directly", proxied, direct.Load())
	}
}

func TestEnvironmentEndpointIsGuardedWhereItIsDirect(t *testing.T) {
	resolver, _ := names(t, map[string][]string{"direct.example.net": {"127.0.0.1"}})
	environment(t, map[string]string{"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "direct.example.net"})
	_, err := client(t, Config{resolver: resolver}).Do(t.Context(), Request{URL: "http://direct.example.net/"}, Via{ID: "environment", Environment: true})
	wantKind(t, err, KindPolicy)
}

func TestEnvironmentsDeadProxyNeverMeansDirect(t *testing.T) {
	var direct atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { direct.Add(1) })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	resolver, _ := names(t, map[string][]string{"feeds.example.com": {"127.0.0.1"}})
	p := httpProxy(t, faultkit.Options{})
	dead := p.URL()
	dead.User = url.UserPassword("ann", "canary-5511")
	_ = p.Close()
	environment(t, map[string]string{"HTTP_PROXY": dead.String()})
	_, err := client(t, Config{AllowPrivate: true, resolver: resolver}).Do(t.Context(),
		Request{URL: "http://feeds.example.com:" + port + "/"}, Via{ID: "environment", Environment: true})
	if e := wantKind(t, err, KindConnect); strings.Contains(e.Error(), "canary") {
		t.Errorf("the error quotes a password: %v", e)
	}
	if direct.Load() != 0 {
		t.Error("the target was asked directly")
	}
}

func TestEnvironmentThatCannotBeRead(t *testing.T) {
	environment(t, map[string]string{"HTTP_PROXY": "http://user:canary-9922@[::1"})
	_, err := client(t, Config{}).Do(t.Context(), Request{URL: "http://feeds.example.com/"}, Via{ID: "environment", Environment: true})
	// What httpproxy makes of it is a host that does not exist: an endpoint that is not there.
	if e := wantKind(t, err, KindConnect); strings.Contains(e.Error(), "canary") {
		t.Errorf("the error quotes a password: %v", e)
	}
	environment(t, map[string]string{"HTTP_PROXY": "socks4://127.0.0.1:1"})
	_, err = client(t, Config{}).Do(t.Context(), Request{URL: "http://feeds.example.com/"}, Via{ID: "environment", Environment: true})
	wantKind(t, err, KindPolicy)
}

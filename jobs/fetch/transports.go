package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// directID names the built-in endpoint that is no proxy.
const directID = "direct"

// proxySchemes are the proxies that can be spoken to. net/http would send
// others, socks4 say, a CONNECT in plain text.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// transports keeps one http.Transport an endpoint. A shared one would send a
// request over whichever endpoint's connection is open.
type transports struct {
	cfg  Config
	open atomic.Int64 // connections

	mu     sync.Mutex
	kept   *simplelru.LRU[string, *transport]
	closed bool
}

// transport is one endpoint's, closed when it has left the LRU and nobody uses
// it any more.
type transport struct {
	*http.Transport
	users   int
	evicted bool
}

func newTransports(cfg Config) *transports {
	t := &transports{cfg: cfg}
	// NewLRU fails for a size below one, which the defaults exclude.
	t.kept, _ = simplelru.NewLRU(cfg.MaxTransports, func(_ string, tr *transport) {
		tr.evicted = true
		tr.CloseIdleConnections()
	})
	return t
}

// take gives the endpoint's transport, and a function that gives it back.
func (t *transports) take(via Via) (*transport, func(), error) {
	if err := checkVia(via); err != nil {
		return nil, nil, err
	}
	key := directID
	if via.Proxy != nil {
		key = via.Proxy.String()
		if via.PublicOnly {
			key = "public " + key
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, &policyError{"the client is closed"}
	}
	tr, ok := t.kept.Get(key)
	if !ok {
		tr = &transport{Transport: t.build(via)}
		t.kept.Add(key, tr)
	}
	tr.users++
	return tr, func() { t.giveBack(tr) }, nil
}

func (t *transports) giveBack(tr *transport) {
	t.mu.Lock()
	tr.users--
	last := tr.users == 0 && tr.evicted
	t.mu.Unlock()
	if last {
		tr.CloseIdleConnections()
	}
}

// close drops every kept connection; what is in flight ends on its own.
func (t *transports) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.kept.Purge()
}

func (t *transports) build(via Via) *http.Transport {
	dialer := &net.Dialer{Timeout: t.cfg.DialTimeout, KeepAlive: 30 * time.Second, Resolver: t.cfg.resolver}
	tr := &http.Transport{
		// The caller knows its encodings; see Client.Do.
		DisableCompression:     true,
		TLSHandshakeTimeout:    t.cfg.DialTimeout,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           32,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: 256 << 10,
		TLSClientConfig:        &tls.Config{RootCAs: t.cfg.RootCAs, MinVersion: tls.VersionTLS12},
		OnProxyConnectResponse: connectAnswer,
		// Not nil, so that HTTP/2 is never spoken.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	if via.Proxy == nil {
		dialer.Control = guardDial(t.cfg.AllowPrivate)
		tr.MaxIdleConns, tr.MaxIdleConnsPerHost = 256, 64
	} else {
		tr.Proxy = http.ProxyURL(via.Proxy)
		if via.PublicOnly {
			dialer.Control = guardEndpoint
		}
	}
	tr.DialContext = dialFor(dialer, &t.open)
	return tr
}

// proxyAnswer is a proxy's refusal to open a tunnel.
type proxyAnswer struct{ status int }

func (e *proxyAnswer) Error() string {
	if e.status == http.StatusProxyAuthRequired {
		return "the proxy asks for a user and password, or refuses ours (407)"
	}
	return fmt.Sprintf("the proxy did not open a tunnel: it answered %d", e.status)
}

// connectAnswer gives the refusal a type; net/http would give its text alone.
func connectAnswer(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized: // tinyproxy's word for a wrong login
		return &proxyAnswer{http.StatusProxyAuthRequired}
	}
	return &proxyAnswer{resp.StatusCode}
}

func checkVia(via Via) error {
	p := via.Proxy
	if via.Environment {
		if p != nil {
			return &policyError{"an endpoint has a URL, or is the environment's, not both"}
		}
		return nil
	}
	if p == nil {
		if via.ID != "" && via.ID != directID {
			return &policyError{"the endpoint has no URL, and a request is not sent directly in its place"}
		}
		return nil
	}
	if !slices.Contains(proxySchemes, p.Scheme) {
		return &policyError{fmt.Sprintf("a proxy of scheme %q cannot be used; http, https, socks5 and socks5h can", clip(p.Scheme, 16))}
	}
	if p.Hostname() == "" {
		return &policyError{"the proxy's URL has no host"}
	}
	pass, _ := p.User.Password()
	if p.Scheme[0] == 's' && (len(p.User.Username()) > 255 || len(pass) > 255) {
		return &policyError{"a socks5 user or password is longer than 255 bytes"}
	}
	return nil
}

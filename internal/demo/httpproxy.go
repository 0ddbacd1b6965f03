package demo

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// ProxyOptions name a proxy and its login.
type ProxyOptions struct {
	Name           string
	User, Password string // none when empty
}

func (o ProxyOptions) url(scheme string, addr net.Addr) *url.URL {
	u := &url.URL{Scheme: scheme, Host: addr.String()}
	if o.User != "" {
		u.User = url.UserPassword(o.User, o.Password)
	}
	return u
}

// HTTPProxy is a forward proxy: CONNECT, and requests in absolute form.
type HTTPProxy struct {
	*gate
	o         ProxyOptions
	exits     *exits
	from      net.IP
	transport *http.Transport
	server    *http.Server
	running   sync.WaitGroup
}

// StartHTTPProxy starts a proxy on a free port of 127.0.0.1.
func StartHTTPProxy(ctx context.Context, o ProxyOptions) (*HTTPProxy, error) {
	return startHTTPProxy(ctx, o, newExits())
}

func startHTTPProxy(ctx context.Context, o ProxyOptions, e *exits) (*HTTPProxy, error) {
	g, err := newGate(ctx)
	if err != nil {
		return nil, fmt.Errorf("http proxy: %w", err)
	}
	if o.Name == "" {
		o.Name = "http"
	}
	p := &HTTPProxy{gate: g, o: o, exits: e, from: e.address()}
	p.transport = &http.Transport{
		DisableCompression: true,
		IdleConnTimeout:    10 * time.Second,
		DialContext:        func(ctx context.Context, _, addr string) (net.Conn, error) { return p.dial(ctx, addr) },
	}
	p.server = &http.Server{
		Handler:           http.HandlerFunc(p.serve),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	p.running.Go(func() { _ = p.server.Serve(g) })
	return p, nil
}

// Addr is host and port.
func (p *HTTPProxy) Addr() string { return p.gate.Addr().String() }

// Name is the name under which the upstream's log knows it.
func (p *HTTPProxy) Name() string { return p.o.Name }

// URL is the proxy's URL, with its login.
func (p *HTTPProxy) URL() *url.URL { return p.o.url("http", p.gate.Addr()) }

// Close ends the proxy and what goes through it.
func (p *HTTPProxy) Close() error {
	err := errors.Join(p.server.Close(), p.closeAll())
	p.transport.CloseIdleConnections()
	p.running.Wait()
	p.transport.CloseIdleConnections()
	return err
}

func (p *HTTPProxy) dial(ctx context.Context, addr string) (net.Conn, error) {
	if f, _, _ := p.failing(); f == FaultRefuse {
		p.failures.Add(1)
		return nil, errors.New("demo: refused by fault")
	}
	c, err := p.exits.dial(ctx, p.o.Name, p.from, addr)
	if err != nil {
		p.failures.Add(1)
	}
	return c, err
}

func (p *HTTPProxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.admitted(r) {
		p.authFailures.Add(1)
		w.Header().Set("Proxy-Authenticate", `Basic realm="`+p.o.Name+`"`)
		http.Error(w, "a user and password are needed", http.StatusProxyAuthRequired)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.IsAbs() && r.URL.Scheme == "http":
		p.forward(w, r)
	default:
		http.Error(w, "this is a proxy: ask for http://host/path, or CONNECT", http.StatusBadRequest)
	}
}

func (p *HTTPProxy) admitted(r *http.Request) bool {
	if f, _, _ := p.failing(); f == FaultAuth {
		return false
	}
	if p.o.User == "" {
		return true
	}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.o.User+":"+p.o.Password))
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(want)) == 1
}

// forward passes on a request in absolute form.
func (p *HTTPProxy) forward(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	out := r.Clone(r.Context())
	out.RequestURI = ""
	dropHopHeaders(out.Header)
	out.Header.Add("Via", "1.1 "+p.o.Name)
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		http.Error(w, "the target cannot be reached", http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	dropHopHeaders(resp.Header)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.Header().Add("Via", "1.1 "+p.o.Name)
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(flusher{w}, resp.Body); err != nil {
		// What the client has is not whole, and it must see that.
		panic(http.ErrAbortHandler)
	}
}

// flusher sends every piece at once, as a proxy of a slow body should.
type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

// dropHopHeaders takes out what concerns one connection (RFC 9110, 7.6.1).
func dropHopHeaders(h http.Header) {
	for _, v := range h.Values("Connection") {
		for _, name := range strings.Split(v, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade",
	} {
		h.Del(name)
	}
}

// tunnel answers CONNECT and joins the two ends.
func (p *HTTPProxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := p.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, "the target cannot be reached", http.StatusBadGateway)
		return
	}
	defer func() { _ = target.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection cannot be a tunnel", http.StatusInternalServerError)
		return
	}
	defer func() { _ = client.Close() }()
	p.tunnels.Add(1)
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(client, target, buffered)
}

// join copies both ways until both ends are done, or one breaks.
func join(client, target net.Conn, fromClient io.Reader) {
	done := make(chan struct{}, 2)
	pipe := func(dst net.Conn, src io.Reader) {
		_, err := io.Copy(dst, src)
		if cw, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
			_ = cw.CloseWrite()
		} else {
			_ = client.Close()
			_ = target.Close()
		}
		done <- struct{}{}
	}
	go pipe(target, fromClient)
	go pipe(client, target)
	<-done
	<-done
}

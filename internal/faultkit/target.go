package faultkit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Target is what requests are for: an http and an https server that record
// what reaches them.
type Target struct {
	// HTTP and HTTPS are the servers' addresses, such as http://127.0.0.1:1234.
	HTTP, HTTPS string

	servers []*http.Server
	running sync.WaitGroup
	direct  atomic.Int64

	mu   sync.Mutex
	seen []Arrived
}

// Arrived is one request at a target.
type Arrived struct {
	Method, Path string
	Secure       bool
	Header       http.Header
	From         net.IP // a proxy's From, or 127.0.0.1
}

// StartTarget serves h on two free ports of 127.0.0.1, with a certificate of a.
func StartTarget(ctx context.Context, a *Authority, h http.Handler) (*Target, error) {
	t := &Target{}
	cert, err := a.Leaf()
	if err != nil {
		return nil, err
	}
	for _, scheme := range []string{"http", "https"} {
		l, err := listen(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("faultkit: target: %w", err), t.Close())
		}
		s := &http.Server{Handler: t.record(h), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
		t.servers = append(t.servers, s)
		address := scheme + "://" + l.Addr().String()
		l = &arrivals{l, t}
		if scheme == "https" {
			t.HTTPS = address
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
		} else {
			t.HTTP = address
		}
		t.running.Go(func() { _ = s.Serve(l) })
	}
	return t, nil
}

// Direct counts connections that came past every proxy, whether or not a
// request followed. It needs a system with more loopback addresses than one.
func (t *Target) Direct() int { return int(t.direct.Load()) }

// Seen are the requests, in order; it is bounded.
func (t *Target) Seen() []Arrived {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Arrived(nil), t.seen...)
}

// Close ends both servers.
func (t *Target) Close() error {
	var all []error
	for _, s := range t.servers {
		all = append(all, s.Close())
	}
	t.running.Wait()
	return errors.Join(all...)
}

func (t *Target) record(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		t.mu.Lock()
		if len(t.seen) < seenKept {
			t.seen = append(t.seen, Arrived{r.Method, r.URL.Path, r.TLS != nil, r.Header.Clone(), net.ParseIP(host)})
		}
		t.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

// arrivals looks where each connection comes from.
type arrivals struct {
	net.Listener
	t *Target
}

var plainLoopback = net.IPv4(127, 0, 0, 1)

// Accept counts a connection from 127.0.0.1.
func (a *arrivals) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if addr, ok := c.RemoteAddr().(*net.TCPAddr); ok && addr.IP.Equal(plainLoopback) {
		a.t.direct.Add(1)
	}
	return c, nil
}

package faultkit

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

// liar stands in the target's place: it ends TLS with a certificate of its own
// and answers what the fault says. It finds the target by the Host header.
type liar struct {
	proxy *Proxy

	mu       sync.Mutex
	ca       *Authority
	listener net.Listener
	server   *http.Server
	onward   *http.Transport
	running  sync.WaitGroup
}

func (l *liar) authority() (*Authority, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made()
}

func (l *liar) made() (*Authority, error) {
	var err error
	if l.ca == nil {
		l.ca, err = NewAuthority("somebody in the middle")
	}
	return l.ca, err
}

// dial connects to the liar, which starts with its first visitor.
func (l *liar) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	err := l.start(ctx)
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", l.listener.Addr().String())
}

func (l *liar) start(ctx context.Context) error {
	if l.listener != nil {
		return nil
	}
	ca, err := l.made()
	if err != nil {
		return err
	}
	cert, err := ca.Leaf()
	if err != nil {
		return err
	}
	inner, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := l.proxy
	l.listener = inner
	l.onward = &http.Transport{
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // whoever lies to the client does not ask the target
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return p.o.Exits.dial(ctx, p.o.Name, p.from, addr)
		},
	}
	l.server = &http.Server{
		Handler: http.HandlerFunc(l.answer), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	l.running.Go(func() { _ = l.server.Serve(&eitherListener{inner, config}) })
	return nil
}

func (l *liar) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		return
	}
	_ = l.server.Close()
	l.running.Wait()
	l.onward.CloseIdleConnections()
}

func (l *liar) answer(w http.ResponseWriter, r *http.Request) {
	f, _, _ := l.proxy.failing()
	if f == Inject {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, InjectedPage)
		return
	}
	rp := &httputil.ReverseProxy{
		Transport: l.onward, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = "http", pr.In.Host
			if c, ok := r.Context().Value(http.LocalAddrContextKey).(*eitherAddr); ok && c.secure() {
				pr.Out.URL.Scheme = "https"
			}
		},
	}
	if f == Alter {
		rp.ModifyResponse = func(resp *http.Response) error {
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), bytes.NewReader([]byte(InjectedText))))
			resp.ContentLength = int64(len(body) + len(InjectedText))
			resp.Header.Del("Content-Length")
			return nil
		}
	}
	rp.ServeHTTP(w, r)
}

// eitherListener takes TLS and plain connections on one port: the first byte
// tells them apart.
type eitherListener struct {
	net.Listener
	config *tls.Config
}

// Accept does not wait for that byte.
func (l *eitherListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &eitherConn{Conn: c, raw: c, config: l.config}, nil
}

type eitherConn struct {
	net.Conn // the raw connection, or TLS over it
	raw      net.Conn
	config   *tls.Config
	once     sync.Once
	err      error
	tls      bool
}

const tlsHandshake = 0x16 // a TLS record's first byte (RFC 8446, 5.1)

// Read looks at the first byte first: a server reads before it writes.
func (c *eitherConn) Read(p []byte) (int, error) {
	c.once.Do(func() {
		first := make([]byte, 1)
		if _, c.err = io.ReadFull(c.raw, first); c.err != nil {
			return
		}
		whole := &aheadConn{Conn: c.raw, ahead: first}
		c.Conn = whole
		if first[0] == tlsHandshake {
			c.tls = true
			c.Conn = tls.Server(whole, c.config)
		}
	})
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(p)
}

// LocalAddr lets a handler ask whether its connection speaks TLS.
func (c *eitherConn) LocalAddr() net.Addr { return &eitherAddr{c.raw.LocalAddr(), c} }

// SetReadDeadline goes to the raw connection, which is there from the start.
func (c *eitherConn) SetReadDeadline(t time.Time) error { return c.raw.SetReadDeadline(t) }

// Close ends the raw connection.
func (c *eitherConn) Close() error { return c.raw.Close() }

type eitherAddr struct {
	net.Addr
	conn *eitherConn
}

func (a *eitherAddr) secure() bool { return a.conn.tls }

// aheadConn gives what was read ahead first.
type aheadConn struct {
	net.Conn
	ahead []byte
}

func (c *aheadConn) Read(p []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

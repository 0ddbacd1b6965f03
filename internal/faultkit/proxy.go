package faultkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/armon/go-socks5"
)

// Options name a proxy and its login.
type Options struct {
	Name           string     // the scheme when empty
	User, Password string     // none when empty
	Exits          *Exits     // for proxies of one target whose ways are to be told apart
	Authority      *Authority // of an https proxy: signs its certificate
}

// Proxy is a forward proxy on 127.0.0.1.
type Proxy struct {
	*gate
	scheme    string
	o         Options
	from      net.IP
	transport *http.Transport
	http      *http.Server   // of an http or https proxy
	socks     *socks5.Server // of a socks5 proxy
	liar      *liar
	running   sync.WaitGroup
}

// Start starts a proxy on a free port: "http", "https" (which needs an
// Authority) or "socks5".
func Start(ctx context.Context, scheme string, o Options) (*Proxy, error) {
	g, err := newGate(ctx)
	if err != nil {
		return nil, fmt.Errorf("faultkit: start %s: %w", scheme, err)
	}
	if o.Name == "" {
		o.Name = scheme
	}
	if o.Exits == nil {
		o.Exits = everybody
	}
	p := &Proxy{gate: g, scheme: scheme, o: o, from: o.Exits.address()}
	p.transport = &http.Transport{
		DisableCompression: true,
		IdleConnTimeout:    10 * time.Second,
		DialContext:        func(ctx context.Context, _, addr string) (net.Conn, error) { return p.dial(ctx, addr) },
	}
	p.liar = &liar{proxy: p}
	switch scheme {
	case "http", "https":
		err = p.startHTTP()
	case "socks5":
		err = p.startSOCKS()
	default:
		err = errors.New("a scheme is http, https or socks5")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("faultkit: start %s: %w", scheme, err), g.Close())
	}
	return p, nil
}

// Addr is host and port.
func (p *Proxy) Addr() string { return p.addr.String() }

// Name is the name in Via and in Exits.
func (p *Proxy) Name() string { return p.o.Name }

// From is the address that a target on loopback sees; nil on systems that have
// 127.0.0.1 alone.
func (p *Proxy) From() net.IP { return p.from }

// URL is the proxy's URL, with its login.
func (p *Proxy) URL() *url.URL {
	u := &url.URL{Scheme: p.scheme, Host: p.Addr()}
	if p.o.User != "" {
		u.User = url.UserPassword(p.o.User, p.o.Password)
	}
	return u
}

// Fail makes the proxy fail from now on; NoFault mends it. after is what "in
// mid-answer" means, in bytes. An error means that its port was taken while it
// was Gone.
func (p *Proxy) Fail(f Fault, after int64) error {
	err := p.fail(f, after)
	p.transport.CloseIdleConnections() // a kept way to the target would pass the fault by
	return err
}

// Stats are the counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	open := len(p.conns)
	p.mu.Unlock()
	return Stats{
		Connections: p.accepted.Load(), Open: open, Requests: p.requests.Load(), Tunnels: p.tunnels.Load(),
		AuthFailures: p.authFailures.Load(), Failures: p.failures.Load(),
	}
}

// Seen is what clients have asked, in order; it is bounded.
func (p *Proxy) Seen() []Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Seen(nil), p.seen...)
}

// Rogue is the authority behind WrongCert, Inject and Alter. A client that
// trusts it sees the forged answers.
func (p *Proxy) Rogue() (*Authority, error) { return p.liar.authority() }

// Close ends the proxy and what goes through it.
func (p *Proxy) Close() error {
	var err error
	if p.http != nil {
		err = p.http.Close()
	}
	err = errors.Join(err, p.gate.Close())
	p.transport.CloseIdleConnections()
	p.liar.close()
	p.running.Wait()
	p.transport.CloseIdleConnections()
	return err
}

// dial connects to a target, or to whoever stands in its place.
func (p *Proxy) dial(ctx context.Context, addr string) (net.Conn, error) {
	f, _, _ := p.failing()
	switch f {
	case Refuse:
		p.failures.Add(1)
		return nil, errors.New("refused by fault") // the socks5 library reads the word
	case WrongCert, Inject, Alter:
		return p.liar.dial(ctx)
	}
	c, err := p.o.Exits.dial(ctx, p.o.Name, p.from, addr)
	if err != nil {
		p.failures.Add(1)
		return nil, err
	}
	return &targetConn{Conn: c, gate: p.gate, done: make(chan struct{})}, nil
}

// targetConn is a connection to a target; under Mute what comes from there is kept back.
type targetConn struct {
	net.Conn
	gate *gate
	once sync.Once
	done chan struct{}
}

// Close ends the connection, and a wait of Read.
func (c *targetConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// CloseWrite ends our side.
func (c *targetConn) CloseWrite() error { return closeWrite(c.Conn) }

// Read gives what the target says, once the proxy is not mute.
func (c *targetConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for {
		f, _, change := c.gate.failing()
		if f != Mute {
			return n, err
		}
		select {
		case <-change:
		case <-c.done:
			return 0, net.ErrClosed
		}
	}
}

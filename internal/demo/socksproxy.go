package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"sync"

	"github.com/armon/go-socks5"
)

// SOCKS5Proxy is a socks5 proxy.
type SOCKS5Proxy struct {
	*gate
	o       ProxyOptions
	exits   *exits
	from    net.IP
	server  *socks5.Server
	running sync.WaitGroup
}

// StartSOCKS5Proxy starts a proxy on a free port of 127.0.0.1.
func StartSOCKS5Proxy(ctx context.Context, o ProxyOptions) (*SOCKS5Proxy, error) {
	return startSOCKS5Proxy(ctx, o, newExits())
}

func startSOCKS5Proxy(ctx context.Context, o ProxyOptions, e *exits) (*SOCKS5Proxy, error) {
	g, err := newGate(ctx)
	if err != nil {
		return nil, fmt.Errorf("socks5 proxy: %w", err)
	}
	if o.Name == "" {
		o.Name = "socks5"
	}
	p := &SOCKS5Proxy{gate: g, o: o, exits: e, from: e.address()}
	p.server, err = socks5.New(&socks5.Config{
		AuthMethods: []socks5.Authenticator{p.login()},
		Dial:        func(ctx context.Context, _, addr string) (net.Conn, error) { return p.dial(ctx, addr) },
		Logger:      log.New(io.Discard, "", 0),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socks5 proxy: %w", err), g.closeAll())
	}
	p.running.Go(p.serve)
	return p, nil
}

// Addr is host and port.
func (p *SOCKS5Proxy) Addr() string { return p.gate.Addr().String() }

// Name is the name under which the upstream's log knows it.
func (p *SOCKS5Proxy) Name() string { return p.o.Name }

// URL is the proxy's URL, with its login.
func (p *SOCKS5Proxy) URL() *url.URL { return p.o.url("socks5", p.gate.Addr()) }

// Close ends the proxy and what goes through it.
func (p *SOCKS5Proxy) Close() error {
	err := p.closeAll()
	p.running.Wait()
	return err
}

func (p *SOCKS5Proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() {
			_ = p.server.ServeConn(c)
			_ = c.Close()
		})
	}
}

func (p *SOCKS5Proxy) dial(ctx context.Context, addr string) (net.Conn, error) {
	if f, _, _ := p.failing(); f == FaultRefuse {
		p.failures.Add(1)
		return nil, errors.New("refused by fault") // the library reads the word
	}
	c, err := p.exits.dial(ctx, p.o.Name, p.from, addr)
	if err != nil {
		p.failures.Add(1)
		return nil, err
	}
	p.tunnels.Add(1)
	return c, nil
}

func (p *SOCKS5Proxy) login() socks5.Authenticator {
	if p.o.User == "" {
		return &gateLogin{socks5.NoAuthAuthenticator{}, p.gate}
	}
	return &gateLogin{socks5.UserPassAuthenticator{Credentials: socks5.StaticCredentials{p.o.User: p.o.Password}}, p.gate}
}

// gateLogin counts refusals, and refuses everybody on demand.
type gateLogin struct {
	socks5.Authenticator
	gate *gate
}

func (l *gateLogin) Authenticate(r io.Reader, w io.Writer) (*socks5.AuthContext, error) {
	if f, _, _ := l.gate.failing(); f == FaultAuth {
		l.gate.authFailures.Add(1)
		_, _ = w.Write([]byte{5, 0xff})
		return nil, socks5.NoSupportedAuth
	}
	c, err := l.Authenticator.Authenticate(r, w)
	if err != nil {
		l.gate.authFailures.Add(1)
	}
	return c, err
}

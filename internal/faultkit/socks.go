package faultkit

import (
	"context"
	"io"
	"log"
	"net"

	"github.com/armon/go-socks5"
)

// startSOCKS serves socks5.
func (p *Proxy) startSOCKS() error {
	var err error
	p.socks, err = socks5.New(&socks5.Config{
		AuthMethods: []socks5.Authenticator{p.login()},
		Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			p.note(Seen{Method: "socks5", Target: addr})
			c, err := p.dial(ctx, addr)
			if err == nil {
				p.tunnels.Add(1)
			}
			return c, err
		},
		Logger: log.New(io.Discard, "", 0),
	})
	if err != nil {
		return err
	}
	p.running.Go(func() {
		for {
			c, err := p.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() {
				_ = p.socks.ServeConn(c)
				_ = c.Close()
			})
		}
	})
	return nil
}

func (p *Proxy) login() socks5.Authenticator {
	if p.o.User == "" {
		return &gateLogin{socks5.NoAuthAuthenticator{}, p.gate}
	}
	return &gateLogin{socks5.UserPassAuthenticator{Credentials: &logins{p}}, p.gate}
}

// logins notes what clients say.
type logins struct{ p *Proxy }

// Valid compares with the proxy's login.
func (l *logins) Valid(user, password string) bool {
	l.p.note(Seen{Method: "login", User: user, Password: password})
	return user == l.p.o.User && password == l.p.o.Password
}

// gateLogin counts refusals, and refuses everybody on demand.
type gateLogin struct {
	socks5.Authenticator
	gate *gate
}

// Authenticate answers a client's hello.
func (l *gateLogin) Authenticate(r io.Reader, w io.Writer) (*socks5.AuthContext, error) {
	switch f, _, _ := l.gate.failing(); f {
	case Garbage:
		_, _ = io.WriteString(w, garbageText)
		return nil, errFault
	case Auth:
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

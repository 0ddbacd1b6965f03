package fetch

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// net/http lets a dial go on when its request has ended, up to a minute for a
// silent proxy. Here a connection belongs to the request that asked for it,
// and ends with it, until a request has taken it over.

type ownerKey struct{}

// withOwner marks the request's context as the owner of connections that are
// dialled for it. net/http hands the values of a context to the dial, not its
// end.
func withOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, ctx)
}

// dialFor wraps a dialer's connections, and counts those that are open.
func dialFor(d *net.Dialer, open *atomic.Int64) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		owner, ok := ctx.Value(ownerKey{}).(context.Context) //nolint:contextcheck // net/http dials under a context of its own
		if !ok {
			owner = ctx
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(owner, cancel)()
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			if cause := context.Cause(owner); cause != nil {
				return nil, cause
			}
			return nil, err
		}
		open.Add(1)
		oc := &ownedConn{Conn: c, close: sync.OnceValue(func() error { open.Add(-1); return c.Close() })}
		oc.release = sync.OnceValue(context.AfterFunc(owner, func() { _ = oc.close() }))
		return oc, nil
	}
}

type ownedConn struct {
	net.Conn
	close func() error
	// release takes the connection from the one it was dialled for, and says
	// whether that was in time: each call what the first one said.
	release func() bool
}

// CloseWrite lets a TLS connection end its side alone.
func (c *ownedConn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return nil
}

func (c *ownedConn) Close() error {
	c.release()
	return c.close()
}

// progress is how far one round trip has got. net/http calls its hooks from
// goroutines of its own, some after the round trip has ended.
type progress struct {
	connected atomic.Bool // a TCP connection stands, new or kept
	ready     atomic.Bool // the request has a connection: any tunnel and TLS stand, and it can leave
	reused    atomic.Bool
	lost      atomic.Bool // the connection was closed with its first owner as we took it
	wrote     atomic.Bool // the request, or a part of it, has left
	answered  atomic.Bool // the answer's headers are here
}

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				p.connected.Store(true)
			}
		},
		GotConn: func(info httptrace.GotConnInfo) {
			p.connected.Store(true)
			p.ready.Store(true)
			p.reused.Store(info.Reused)
			c := info.Conn
			for {
				t, ok := c.(*tls.Conn)
				if !ok {
					break
				}
				c = t.NetConn()
			}
			if oc, ok := c.(*ownedConn); ok && !oc.release() {
				// Its owner ended just now, be it that it was never used or that
				// it lay idle. Closed here and at once, so that nothing can have
				// left through it.
				_ = oc.close()
				p.lost.Store(true)
			}
		},
		WroteHeaders: func() { p.wrote.Store(true) },
	}
}

// again says that the request may go out anew: none of it had left.
func (p *progress) again() bool {
	return p.lost.Load() || p.reused.Load() && !p.wrote.Load()
}

package demo

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// exits knows, for a connection that reaches the upstream, which proxy opened
// it. A socks5 proxy leaves no trace in the request itself.
type exits struct {
	mu    sync.Mutex
	names map[string]string // local address of a proxy's connection → its name
	next  atomic.Int32
}

func newExits() *exits { return &exits{names: map[string]string{}} }

// via is the name of the proxy behind a remote address, "direct" for none.
func (e *exits) via(remote string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if name, ok := e.names[remote]; ok {
		return name
	}
	return "direct"
}

// address is a loopback address of its own for a proxy to leave by, so that
// the upstream sees proxies as apart as it would on the internet. It is nil on
// systems that have 127.0.0.1 alone.
func (e *exits) address() net.IP {
	ip := net.IPv4(127, 0, 0, byte(2+e.next.Add(1)))
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return nil
	}
	_ = l.Close()
	return ip
}

// dial connects to a target for the named proxy.
func (e *exits) dial(ctx context.Context, name string, from net.IP, addr string) (net.Conn, error) {
	d := net.Dialer{}
	if ap, err := netip.ParseAddrPort(addr); err == nil && ap.Addr().IsLoopback() && ap.Addr().Is4() && from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	key := c.LocalAddr().String()
	e.mu.Lock()
	e.names[key] = name
	e.mu.Unlock()
	return &exitConn{Conn: c, forget: sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.names[key] == name {
			delete(e.names, key)
		}
	})}, nil
}

type exitConn struct {
	net.Conn
	forget func()
}

func (c *exitConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

func (c *exitConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends one direction of a TCP connection.
func closeWrite(c net.Conn) error {
	if t, ok := c.(*net.TCPConn); ok {
		return t.CloseWrite()
	}
	return nil
}

package faultkit

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Exits knows, for a connection that reaches a target, which proxy opened it.
// A socks5 proxy leaves no trace in the request itself.
type Exits struct {
	mu    sync.Mutex
	names map[string]string // local address of a proxy's connection → its name
	next  atomic.Int32
}

// NewExits is an empty register, for proxies that share a target.
func NewExits() *Exits { return &Exits{names: map[string]string{}} }

// everybody is the register of proxies that are given none, so that no two of
// them share an address.
var everybody = NewExits()

// Via is the name of the proxy behind a remote address, "direct" for none.
func (e *Exits) Via(remote string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if name, ok := e.names[remote]; ok {
		return name
	}
	return "direct"
}

// exitFirst is the first address of an exit; those below belong to others.
const exitFirst = 3

// address is a loopback address of its own for a proxy to leave by, so that
// the target sees proxies as apart as it would on the internet. It is nil on
// systems that have 127.0.0.1 alone.
func (e *Exits) address() net.IP {
	n := exitFirst + e.next.Add(1) - 1
	ip := net.IPv4(127, byte(n/250/250), byte(n/250), byte(n%250+1))
	if n < 250 {
		ip = net.IPv4(127, 0, 0, byte(n))
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return nil
	}
	_ = l.Close()
	return ip
}

// dial connects to a target for the named proxy.
func (e *Exits) dial(ctx context.Context, name string, from net.IP, addr string) (net.Conn, error) {
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

// Close ends the connection and forgets whose it was.
func (c *exitConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// CloseWrite ends our side.
func (c *exitConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends one direction of a connection.
func closeWrite(c net.Conn) error {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return nil
}

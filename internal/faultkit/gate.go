package faultkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// gate is a proxy's listener. It keeps track of connections, so that Close
// leaves nothing behind, and makes them fail on demand.
type gate struct {
	addr net.Addr

	mu       sync.Mutex
	listener net.Listener
	conns    map[*gateConn]struct{}
	closed   bool
	fault    Fault
	after    int64
	change   chan struct{} // closed when the fault changes
	seen     []Seen

	accepted, requests, tunnels, authFailures, failures atomic.Int64
}

func newGate(ctx context.Context) (*gate, error) {
	l, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	return &gate{addr: l.Addr(), listener: l, conns: map[*gateConn]struct{}{}, change: make(chan struct{})}, nil
}

// Addr is the address; net.Listener asks for it.
func (g *gate) Addr() net.Addr { return g.addr }

// Close ends the listener and every connection; an http.Server calls it too.
func (g *gate) Close() error {
	g.mu.Lock()
	g.closed = true
	err := g.listener.Close()
	// Whoever a fault holds is let go.
	g.fault = NoFault
	close(g.change)
	g.change = make(chan struct{})
	g.mu.Unlock()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	g.closeConns()
	return err
}

func (g *gate) closeConns() {
	g.mu.Lock()
	conns := make([]*gateConn, 0, len(g.conns))
	for c := range g.conns {
		conns = append(conns, c)
	}
	g.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// fail changes the fault. Coming back from Gone it takes its old address again.
func (g *gate) fail(f Fault, after int64) error {
	g.mu.Lock()
	was := g.fault
	var err error
	switch {
	case g.closed:
	case f == Gone && was != Gone:
		err = g.listener.Close()
	case f != Gone && was == Gone:
		for range 50 { // a connection that just ended may hold the address for a moment
			var l net.Listener
			if l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", g.addr.String()); err == nil {
				g.listener = l
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	g.fault, g.after = f, after
	for c := range g.conns {
		c.sent.Store(0)
	}
	close(g.change)
	g.change = make(chan struct{})
	g.mu.Unlock()
	if f == Gone {
		g.closeConns()
	}
	if err != nil {
		return fmt.Errorf("faultkit: %s from %s: %w", f, g.addr, err)
	}
	return nil
}

func (g *gate) failing() (Fault, int64, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault, g.after, g.change
}

func (g *gate) note(s Seen) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.seen) < seenKept {
		g.seen = append(g.seen, s)
	}
}

// Accept waits for a connection that the fault lets in.
func (g *gate) Accept() (net.Conn, error) {
	for {
		g.mu.Lock()
		l := g.listener
		g.mu.Unlock()
		c, err := l.Accept()
		if err != nil {
			if !g.mended(l) {
				return nil, err
			}
			continue
		}
		g.accepted.Add(1)
		gc := &gateConn{Conn: c, gate: g, done: make(chan struct{})}
		if f, _, _ := g.failing(); f == Drop || f == Gone || !g.admit(gc) {
			_ = c.Close()
			continue
		}
		return gc, nil
	}
}

// mended waits while the gate is gone, and tells whether another listener is there.
func (g *gate) mended(old net.Listener) bool {
	for {
		g.mu.Lock()
		closed, gone, change, now := g.closed, g.fault == Gone, g.change, g.listener
		g.mu.Unlock()
		if closed || !gone {
			return !closed && now != old
		}
		select {
		case <-change:
		case <-time.After(50 * time.Millisecond): // a close may come meanwhile
		}
	}
}

func (g *gate) admit(c *gateConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.conns[c] = struct{}{}
	}
	return !g.closed
}

// gateConn is a client's connection.
type gateConn struct {
	net.Conn
	gate *gate
	once sync.Once
	done chan struct{}
	sent atomic.Int64 // since the fault came
}

// Close ends the connection once.
func (c *gateConn) Close() (err error) {
	err = net.ErrClosed
	c.once.Do(func() {
		close(c.done)
		c.gate.mu.Lock()
		delete(c.gate.conns, c)
		c.gate.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}

// CloseWrite ends our side.
func (c *gateConn) CloseWrite() error { return closeWrite(c.Conn) }

// Read holds back what came while the proxy hangs.
func (c *gateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for n > 0 {
		f, _, change := c.gate.failing()
		if f != Hang {
			break
		}
		select {
		case <-change:
		case <-c.done:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

var errFault = errors.New("faultkit: ended by fault")

// Write lets the first bytes through, and then does as the fault says.
func (c *gateConn) Write(p []byte) (int, error) {
	f, after, _ := c.gate.failing()
	if f != Reset && f != HalfClose && f != Drip {
		return c.Conn.Write(p)
	}
	n := 0
	if left := after - c.sent.Load(); left > 0 {
		var err error
		n, err = c.Conn.Write(p[:min(int64(len(p)), left)])
		c.sent.Add(int64(n))
		if err != nil || n == len(p) {
			return n, err
		}
	}
	switch f {
	case Drip:
		return c.drip(p, n)
	case HalfClose:
		_ = closeWrite(c.Conn)
		return len(p), nil // it is lost, and the client may still speak
	}
	// Linger zero makes the close a reset; the bytes before it have left.
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
	return n, errFault
}

func (c *gateConn) drip(p []byte, n int) (int, error) {
	for ; n < len(p); n++ {
		timer := time.NewTimer(DripPause)
		select {
		case <-timer.C:
		case <-c.done:
			timer.Stop()
			return n, net.ErrClosed
		}
		if f, _, _ := c.gate.failing(); f != Drip {
			m, err := c.Conn.Write(p[n:])
			return n + m, err
		}
		if _, err := c.Conn.Write(p[n : n+1]); err != nil {
			return n, err
		}
		c.sent.Add(1)
	}
	return n, nil
}

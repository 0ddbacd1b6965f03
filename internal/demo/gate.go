package demo

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Fault is how a proxy fails, for tests.
type Fault string

const (
	NoFault     Fault = ""
	FaultAuth   Fault = "auth"   // every login is refused: 407, or socks5's refusal
	FaultRefuse Fault = "refuse" // no connection to any target: 502, or socks5's "connection refused"
	FaultDrop   Fault = "drop"   // connections are closed as they come
	FaultHang   Fault = "hang"   // what comes in is never answered
	FaultReset  Fault = "reset"  // connections are reset in mid-answer; see Fail
)

// ProxyStats are a proxy's counters since it started.
type ProxyStats struct {
	Connections  int64 // accepted
	Open         int   // of these, open now
	Requests     int64 // passed on in absolute form
	Tunnels      int64 // opened by CONNECT, of either kind
	AuthFailures int64
	Failures     int64 // targets that could not be reached
}

// gate is a proxy's listener. It keeps track of connections, so that Close
// leaves nothing behind, and makes them fail on demand.
type gate struct {
	net.Listener
	mu     sync.Mutex
	conns  map[*gateConn]struct{}
	closed bool
	fault  Fault
	after  int64
	change chan struct{} // closed when the fault changes

	accepted, requests, tunnels, authFailures, failures atomic.Int64
}

func newGate(ctx context.Context) (*gate, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &gate{Listener: l, conns: map[*gateConn]struct{}{}, change: make(chan struct{})}, nil
}

// Fail makes the proxy fail from now on; NoFault mends it. With FaultReset,
// after is how many bytes still reach the client on each connection.
func (g *gate) Fail(f Fault, after int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault, g.after = f, after
	close(g.change)
	g.change = make(chan struct{})
}

func (g *gate) failing() (Fault, int64, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault, g.after, g.change
}

// Stats are the counters.
func (g *gate) Stats() ProxyStats {
	g.mu.Lock()
	open := len(g.conns)
	g.mu.Unlock()
	return ProxyStats{
		Connections: g.accepted.Load(), Open: open, Requests: g.requests.Load(), Tunnels: g.tunnels.Load(),
		AuthFailures: g.authFailures.Load(), Failures: g.failures.Load(),
	}
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.accepted.Add(1)
		gc := &gateConn{Conn: c, gate: g, done: make(chan struct{})}
		if f, _, _ := g.failing(); f == FaultDrop || !g.admit(gc) {
			_ = c.Close()
			continue
		}
		return gc, nil
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

// closeAll closes the listener and every connection.
func (g *gate) closeAll() error {
	g.mu.Lock()
	g.closed = true
	conns := make([]*gateConn, 0, len(g.conns))
	for c := range g.conns {
		conns = append(conns, c)
	}
	g.mu.Unlock()
	err := g.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	for _, c := range conns {
		_ = c.Close()
	}
	return err
}

// gateConn is a client's connection.
type gateConn struct {
	net.Conn
	gate *gate
	once sync.Once
	done chan struct{}
	sent atomic.Int64 // since the fault came
}

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

func (c *gateConn) CloseWrite() error { return closeWrite(c.Conn) }

// Read holds back what came while the proxy hangs.
func (c *gateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for n > 0 {
		f, _, change := c.gate.failing()
		if f != FaultHang {
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

var errFaultReset = errors.New("demo: reset by fault")

func (c *gateConn) Write(p []byte) (int, error) {
	f, after, _ := c.gate.failing()
	if f != FaultReset {
		return c.Conn.Write(p)
	}
	left := after - c.sent.Load()
	if int64(len(p)) <= left {
		n, err := c.Conn.Write(p)
		c.sent.Add(int64(n))
		return n, err
	}
	n := 0
	if left > 0 {
		n, _ = c.Conn.Write(p[:left])
	}
	// Linger zero makes the close a reset; the bytes before it have left.
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
	return n, errFaultReset
}

package faultnet

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Net carries bytes until it is told otherwise. Its methods may be called by
// many goroutines, at any time.
type Net struct {
	dialer net.Dialer
	ends   context.Context // with the test

	mu    sync.Mutex
	wires map[string]net.Listener // by network and server
	links map[*link]struct{}
	work  sync.WaitGroup

	lose    loss
	down    bool
	swallow bool
	delay   time.Duration
	lost    int
	hole    int
}

// loss says which replies are lost: of those to requests that hold word ("" is
// every reply), so many of the next, and every so-many-th.
type loss struct {
	word        string
	next, every int
	seen        int
	partly      bool
}

// New makes a Net, which ends with the test.
func New(t testing.TB) *Net {
	ends, end := context.WithCancel(context.Background())
	n := &Net{ends: ends, wires: map[string]net.Listener{}, links: map[*link]struct{}{}}
	t.Cleanup(func() {
		end()
		n.mu.Lock()
		for _, l := range n.wires {
			_ = l.Close()
		}
		n.mu.Unlock()
		n.Break()
		n.work.Wait()
	})
	return n
}

// Listen lays a wire to a server, and gives the loopback host:port at which
// clients find it. The same server has one wire.
func (n *Net) Listen(network, server string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := network + " " + server
	if l, ok := n.wires[name]; ok {
		return l.Addr().String(), nil
	}
	l, err := (&net.ListenConfig{}).Listen(n.ends, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	n.wires[name] = l
	n.work.Go(func() { n.accept(l, network, server) })
	return l.Addr().String(), nil
}

// Dial connects to a server over its wire. It is the dialer for a client that
// learns of servers by itself, as those of Sentinels and of a Cluster do.
func (n *Net) Dial(ctx context.Context, network, server string) (net.Conn, error) {
	addr, err := n.Listen(network, server)
	if err != nil {
		return nil, err
	}
	return n.dialer.DialContext(ctx, "tcp", addr)
}

// Lose loses the replies to the next so many requests that hold word, whatever
// its case. A request may be one of many that are sent together: the replies to
// all of them are lost then.
func (n *Net) Lose(next int, word string) { n.setLoss(loss{next: next, word: strings.ToLower(word)}) }

// LoseEvery loses the reply to every so-many-th request that holds word; of each second
// of them a part arrives. 0 ends it.
func (n *Net) LoseEvery(every int, word string) {
	n.setLoss(loss{every: every, word: strings.ToLower(word), partly: true})
}

// LosePart is Lose, but half of the reply arrives before the connection breaks.
func (n *Net) LosePart(next int, word string) {
	n.setLoss(loss{next: next, word: strings.ToLower(word), partly: true})
}

func (n *Net) setLoss(l loss) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = l
}

// Lost is how many replies have been lost.
func (n *Net) Lost() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// Down takes every connection and lets none be made, or lets them be made again.
func (n *Net) Down(down bool) {
	n.mu.Lock()
	n.down = down
	n.mu.Unlock()
	if down {
		n.Break()
	}
}

// Break breaks every connection. New ones can be made.
func (n *Net) Break() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		l.close()
	}
}

// Swallow makes a hole of the Net: what is sent in either direction is lost, and
// connections stay open. What was swallowed does not come back when it ends.
func (n *Net) Swallow(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.swallow = on
}

// Swallowed is how many bytes have been swallowed.
func (n *Net) Swallowed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hole
}

// Delay holds each reply back for so long.
func (n *Net) Delay(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

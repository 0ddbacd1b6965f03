package faultnet

import (
	"bytes"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// A link is one connection: the client's half and the server's.
type link struct {
	client, server net.Conn
	asked          atomic.Bool // a request that holds the word is under way
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (n *Net) accept(wire net.Listener, network, server string) {
	for {
		client, err := wire.Accept()
		if err != nil {
			return
		}
		n.work.Go(func() { n.connect(client, network, server) })
	}
}

func (n *Net) connect(client net.Conn, network, server string) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		_ = client.Close()
		return
	}
	conn, err := n.dialer.DialContext(n.ends, network, server)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: conn}
	n.mu.Lock()
	n.links[l] = struct{}{}
	down = n.down || n.ends.Err() != nil
	n.mu.Unlock()
	if down {
		l.close()
	}
	n.work.Go(func() {
		n.requests(l)
		l.close()
	})
	n.replies(l)
	l.close()
	n.mu.Lock()
	delete(n.links, l)
	n.mu.Unlock()
}

func (n *Net) requests(l *link) {
	buf := make([]byte, 1<<16)
	for {
		k, err := l.client.Read(buf)
		if err != nil {
			return
		}
		if !n.carry(l, buf[:k]) {
			continue
		}
		if _, err := l.server.Write(buf[:k]); err != nil {
			return
		}
	}
}

// carry notes what a request is, and says whether it goes on to the server.
func (n *Net) carry(l *link, request []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.swallow {
		n.hole += len(request)
		return false
	}
	if strings.Contains(string(bytes.ToLower(request)), n.lose.word) {
		l.asked.Store(true)
	}
	return true
}

func (n *Net) replies(l *link) {
	buf := make([]byte, 1<<16)
	for {
		k, err := l.server.Read(buf)
		if err != nil {
			return
		}
		arrives, breaks, delay := n.fate(l, k)
		if delay > 0 {
			select {
			case <-time.After(delay):
			case <-n.ends.Done():
				return
			}
		}
		if _, err := l.client.Write(buf[:arrives]); err != nil || breaks {
			return
		}
	}
}

// fate says how many bytes of a reply arrive, after how long, and whether the
// connection breaks then.
func (n *Net) fate(l *link, size int) (arrives int, breaks bool, delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.swallow {
		n.hole += size
		return 0, false, 0
	}
	if !l.asked.Swap(false) {
		return size, false, n.delay
	}
	s := &n.lose
	s.seen++
	switch {
	case s.next > 0:
		s.next--
	case s.every > 0 && s.seen%s.every == 0:
	default:
		return size, false, n.delay
	}
	n.lost++
	if s.partly && (s.every == 0 || s.seen/s.every%2 == 0) {
		arrives = size / 2
	}
	return arrives, true, n.delay
}

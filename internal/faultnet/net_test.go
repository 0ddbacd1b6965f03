package faultnet_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/internal/faultnet"
)

// echo is a server that answers each line with itself, and remembers them all.
type echo struct {
	net.Listener
	mu    sync.Mutex
	lines []string
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go e.serve(conn)
		}
	}()
	return e
}

func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	for in.Scan() {
		e.mu.Lock()
		e.lines = append(e.lines, in.Text())
		e.mu.Unlock()
		_, _ = io.WriteString(conn, in.Text()+"\n")
	}
}

func (e *echo) heard() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, " ")
}

type client struct {
	t *testing.T
	net.Conn
}

func dial(t *testing.T, n *faultnet.Net, e *echo) *client {
	t.Helper()
	conn, err := n.Dial(t.Context(), "tcp", e.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn}
}

func (c *client) hear(patience time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	return bufio.NewReader(c).ReadString('\n')
}

func (c *client) gets(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	if got, err := c.hear(10 * time.Second); err != nil || got != line+"\n" {
		c.t.Fatalf("asked %q, got %q, %v", line, got, err)
	}
}

// breaks asks, and wants the connection to end after so much of the reply.
func (c *client) breaks(line, part string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	got, err := c.hear(10 * time.Second)
	if got != part || err == nil || isTimeout(err) {
		c.t.Fatalf("asked %q, got %q, %v; want %q and a broken connection", line, got, err, part)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestALostReplyWasCarriedOut(t *testing.T) {
	t.Parallel()
	n, e := faultnet.New(t), newEcho(t)
	c := dial(t, n, e)
	c.gets("one")
	n.Lose(1, "SET")
	c.gets("get")
	c.breaks("set 1", "")
	dial(t, n, e).gets("set 2")
	n.LosePart(1, "set")
	dial(t, n, e).breaks("set 345", "set ")
	if got := e.heard(); got != "one get set 1 set 2 set 345" {
		t.Errorf("the server heard %q", got)
	}
	if n.Lost() != 2 {
		t.Errorf("%d replies lost, want 2", n.Lost())
	}
}

func TestEverySoManyth(t *testing.T) {
	t.Parallel()
	n, e := faultnet.New(t), newEcho(t)
	n.LoseEvery(3, "")
	for i := range 3 {
		c := dial(t, n, e)
		c.gets("a")
		c.gets("b")
		if i == 1 {
			c.breaks("wxyz", "wx")
		} else {
			c.breaks("wxyz", "")
		}
	}
	n.LoseEvery(0, "")
	c := dial(t, n, e)
	for range 10 {
		c.gets("a")
	}
}

func TestDownAndUpAgain(t *testing.T) {
	t.Parallel()
	n, e := faultnet.New(t), newEcho(t)
	c := dial(t, n, e)
	c.gets("a")
	n.Down(true)
	if got, err := c.hear(10 * time.Second); err == nil || isTimeout(err) {
		t.Errorf("while it is down: %q, %v", got, err)
	}
	late := dial(t, n, e)
	if got, err := late.hear(10 * time.Second); err == nil || isTimeout(err) {
		t.Errorf("made while it is down: %q, %v", got, err)
	}
	n.Down(false)
	c = dial(t, n, e)
	c.gets("b")
	n.Break()
	if got, err := c.hear(10 * time.Second); err == nil || isTimeout(err) {
		t.Errorf("after the break: %q, %v", got, err)
	}
	dial(t, n, e).gets("c")
	if got := e.heard(); got != "a b c" {
		t.Errorf("the server heard %q", got)
	}
}

func TestAHoleKeepsConnectionsOpen(t *testing.T) {
	t.Parallel()
	n, e := faultnet.New(t), newEcho(t)
	c := dial(t, n, e)
	c.gets("a")
	n.Swallow(true)
	if _, err := io.WriteString(c, "b\n"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); n.Swallowed() < 2; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was swallowed")
		}
		<-time.After(time.Millisecond)
	}
	if got, err := c.hear(20 * time.Millisecond); !isTimeout(err) {
		t.Errorf("in the hole: %q, %v", got, err)
	}
	n.Swallow(false)
	c.gets("c")
	if got := e.heard(); got != "a c" {
		t.Errorf("the server heard %q", got)
	}
}

func TestRepliesAreHeldBack(t *testing.T) {
	t.Parallel()
	n, e := faultnet.New(t), newEcho(t)
	c := dial(t, n, e)
	n.Delay(200 * time.Millisecond)
	began := time.Now()
	c.gets("a")
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("after %s", took)
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	n, e := faultnet.New(t), newEcho(t)
	_ = e.Close()
	if got, err := dial(t, n, e).hear(10 * time.Second); err == nil || isTimeout(err) {
		t.Errorf("%q, %v", got, err)
	}
}

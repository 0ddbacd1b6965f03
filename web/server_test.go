package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if w.server.Addr() != nil {
		t.Error("an address before Start")
	}
	url := w.start()
	if err := w.server.Start(t.Context()); err == nil {
		t.Error("a second Start is no error")
	}
	resp, err := http.Get(url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !strings.Contains(w.logs.String(), w.server.Addr().String()) {
		t.Error("the address is not in the log")
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := w.server.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
		cancel()
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("it still answers")
	}
	if err, open := <-w.server.Died(); open || err != nil {
		t.Errorf("died: %v, %v", err, open)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAnAddressForEverybodyIsWarnedOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen string
		tokens []Token
		warned bool
	}{{"[::]:0", nil, true}, {"0.0.0.0:0", nil, true}, {"[::]:0", threeTokens, false}, {"127.0.0.1:0", nil, false}} {
		w := newWorld(t, func(cfg *Config, _ *Parts, _ *pace) {
			cfg.Listen, cfg.Tokens, cfg.Insecure = c.listen, c.tokens, true
		})
		w.start()
		_, port, err := net.SplitHostPort(w.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if want := " url=http://127.0.0.1:" + port + "/ "; !strings.Contains(w.logs.String(), want) {
			t.Errorf("%s: no %q in the log: %s", c.listen, want, w.logs)
		}
		resp, err := http.Get("http://127.0.0.1:" + port + "/healthz")
		if err != nil {
			t.Errorf("%s: the URL of the log does not open: %v", c.listen, err)
			continue
		}
		resp.Body.Close()
		if n := strings.Count(w.logs.String(), "anybody who reaches this address may read and act"); n != map[bool]int{true: 1}[c.warned] {
			t.Errorf("%s, %d tokens: %d warnings", c.listen, len(c.tokens), n)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAnAddressThatIsTakenIsSaid(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := newWorld(t, func(c *Config, _ *Parts, _ *pace) { c.Listen = l.Addr().String() })
	if err := w.server.Start(t.Context()); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("start: %v", err)
	}
}

func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	c := w.dial()
	fmt.Fprintf(c, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	r := bufio.NewReader(c)
	if text, err := r.ReadString('\n'); err != nil || !strings.Contains(text, "100") {
		t.Fatalf("%q, %v: the handler does not read", text, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.server.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v, want the deadline", err)
	}
	if _, err := io.ReadAll(r); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("read: %v", err)
	}
}

// dial opens a raw connection to a server that has started.
func (w *world) dial() net.Conn {
	w.Helper()
	c, err := net.Dial("tcp", w.server.Addr().String())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for size, want := range map[int]int{15 << 10: 200, 17 << 10: 431} {
		c := w.dial()
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", size))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d bytes: status %d, want %d", size, resp.StatusCode, want)
		}
	}
}

func TestSlowClientsAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, _ *Parts, p *pace) {
		*p = pace{header: 150 * time.Millisecond, body: 150 * time.Millisecond, write: 150 * time.Millisecond, idle: 150 * time.Millisecond, look: time.Minute}
	})
	w.start()
	for name, text := range map[string]string{
		"nothing at all":     "",
		"half a header":      "GET /healthz HTTP/1.1\r\nHost: local",
		"half a body":        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"feed\":",
		"half a line":        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n{\"feed\":",
		"idle after a reply": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		c := w.dial()
		start := time.Now()
		fmt.Fprint(c, text)
		// The server closes the connection; our own deadline would be an error.
		if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: after %s: %v", name, time.Since(start), err)
		}
	}
}

func TestALargeAnswerToAReaderThatDoesNotReadEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, _ *Parts, p *pace) {
		p.header, p.body, p.write = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	})
	head, err := w.store.Head(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Put(t.Context(), head, time.Now(), time.Now(), contentOf("text/plain", strings.Repeat("x", 16<<20)), 1); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until("the request runs", func() bool { // on a busy machine it ends before its first byte: then once more
		c := w.dial()
		fmt.Fprint(c, "GET /v1/feeds/news?as=raw HTTP/1.1\r\nHost: localhost\r\n\r\n")
		r := bufio.NewReader(c)
		_, err := r.Peek(1)
		return err == nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := w.server.Stop(ctx); err != nil {
		t.Errorf("stop: %v: the answer still waits for its reader", err)
	}
}

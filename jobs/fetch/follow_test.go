package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
)

var errNotThere = errors.New("not there")

func TestCallerRefusesARedirect(t *testing.T) {
	var asked []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	var told []string
	_, err := open(t, Config{}).Do(t.Context(), Request{URL: s.URL + "/", Follow: func(_ context.Context, to *url.URL) error {
		if told = append(told, to.Path); len(told) == 2 {
			return errNotThere
		}
		return nil
	}}, Via{})
	if e := wantKind(t, err, KindPolicy); !errors.Is(err, errNotThere) || e.Unsent {
		t.Errorf("%v does not hold the reason, or says that nothing was sent: %v", err, e.Unsent)
	}
	if len(asked) != 2 || len(told) != 2 || told[1] != "/xx" {
		t.Errorf("asked for %q, told of %q", asked, told)
	}
}

func TestTooManyRedirectsAreToldApart(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	_, err := open(t, Config{}).Do(t.Context(), Request{URL: s.URL}, Via{})
	if wantKind(t, err, KindPolicy); !errors.Is(err, ErrRedirects) {
		t.Errorf("%v is not ErrRedirects", err)
	}
	_, err = open(t, Config{}).Do(t.Context(), Request{URL: "ftp://h/"}, Via{})
	if errors.Is(err, ErrRedirects) {
		t.Errorf("%v is ErrRedirects", err)
	}
}

func TestOnlyTheBeginningOfABody(t *testing.T) {
	endless := func(packed bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			piece := bytes.Repeat([]byte("ab"), 4<<10)
			if !packed {
				for {
					if _, err := w.Write(piece); err != nil {
						return
					}
				}
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for {
				if _, err := z.Write(piece); err != nil {
					return
				}
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"endless": endless(false), "endless, packed": endless(true),
		"shorter than asked for": say("abab"),
		"announced as too large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99999999")
			_, _ = w.Write(bytes.Repeat([]byte("ab"), 40<<10))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			resp, err := open(t, Config{MaxBody: 1 << 20}).Do(t.Context(), Request{URL: s.URL, First: 5000}, Via{})
			if err != nil {
				t.Fatal(err)
			}
			want := 5000
			if name == "shorter than asked for" {
				want = 4
			}
			if len(resp.Body) != want {
				t.Errorf("%d bytes", len(resp.Body))
			}
		})
	}
}

func TestOnlyEncodingsThatWereAskedFor(t *testing.T) {
	var asked atomic.Value
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "br")
		_, _ = w.Write([]byte("x"))
	})
	c := open(t, Config{})
	_, err := c.Do(t.Context(), Request{URL: s.URL, Header: http.Header{"Accept-Encoding": {"br, zstd"}}}, Via{})
	wantKind(t, err, KindProtocol)
	if asked.Load() != "gzip" {
		t.Errorf("asked for %q", asked.Load())
	}
	sent, err := c.Header(Request{Header: http.Header{"Accept": {"a/b"}}})
	if err != nil || sent.Get("Accept-Encoding") != "gzip" || sent.Get("User-Agent") == "" || sent.Get("Accept") != "a/b" {
		t.Errorf("%v %v", sent, err)
	}
}

// A server that closes behind its redirect without saying so is asked on, over
// a new connection; the first request of a fetch is never sent again by itself.
func TestARedirectByAServerThatClosesIsFollowed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	asked := make(chan string, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				br := bufio.NewReader(conn)
				for first := true; ; first = false {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					asked <- r.URL.Path
					switch {
					case !first: // too late: it had meant to close
						return
					case r.URL.Path == "/":
						_, _ = io.WriteString(conn, "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")
					default:
						_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnews")
					}
				}
			}()
		}
	}()
	c := open(t, Config{})
	if resp := get(t, c, "http://"+l.Addr().String()+"/", Via{}); string(resp.Body) != "news" || resp.Redirects != 1 {
		t.Errorf("%q after %d redirects", resp.Body, resp.Redirects)
	}
	for _, want := range []string{"/", "/next", "/next"} {
		if got := <-asked; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
	_, err = c.Do(t.Context(), Request{URL: "http://" + l.Addr().String() + "/other"}, Via{}) // over the kept one
	wantKind(t, err, KindReset)
	if got := <-asked; got != "/other" || len(asked) != 0 {
		t.Errorf("asked for %s, and %d times more", got, len(asked))
	}
}

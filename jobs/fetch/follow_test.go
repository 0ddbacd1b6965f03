package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
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

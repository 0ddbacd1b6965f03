package fetch

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDoReadsAnAnswer(t *testing.T) {
	var got http.Header
	var path string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, path = r.Header, r.URL.RequestURI()
		w.Header().Set("ETag", `"v1"`)
		_, _ = w.Write([]byte("hello"))
	})
	c := open(t, Config{UserAgent: "example-feeds/1.0 (+https://example.org/contact)"})
	resp, err := c.Do(t.Context(), Request{
		URL:    s.URL + "/feed?a=1#part",
		Header: http.Header{"if-none-match": {`"v0"`}, "Accept-Encoding": {"br"}, "Proxy-Authorization": {"x"}, "Connection": {"close"}},
		Label:  "mine",
	}, Via{})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != 200 || string(resp.Body) != "hello" || resp.Header.Get("ETag") != `"v1"` || resp.Label != "mine" || resp.Took <= 0 {
		t.Errorf("response %+v", resp)
	}
	if resp.URL.String() != s.URL+"/feed?a=1" || path != "/feed?a=1" {
		t.Errorf("final URL %s, path %s", resp.URL, path)
	}
	for name, want := range map[string]string{
		"User-Agent":          "example-feeds/1.0 (+https://example.org/contact)",
		"If-None-Match":       `"v0"`,
		"Accept-Encoding":     "gzip",
		"Proxy-Authorization": "",
		"Connection":          "",
		"Referer":             "",
		"Transfer-Encoding":   "",
		"Content-Length":      "",
	} {
		if got.Get(name) != want {
			t.Errorf("%s sent as %q, want %q", name, got.Get(name), want)
		}
	}
}

func TestDoReturnsEveryStatus(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	})
	c := open(t, Config{})
	// A 407 of a target that was asked directly is the target's own.
	for _, status := range []int{204, 304, 400, 403, 404, 407, 429, 500, 503} {
		if resp := get(t, c, fmt.Sprintf("%s/%d", s.URL, status), Via{}); resp.Status != status || len(resp.Body) != 0 {
			t.Errorf("status %d, want %d", resp.Status, status)
		}
	}
}

func TestEncodings(t *testing.T) {
	plain := []byte(strings.Repeat("news ", 1000))
	for _, tt := range []struct {
		name     string
		encoding string
		body     []byte
		want     Kind // "" is read
	}{
		{"none", "", plain, ""},
		{"identity", "identity", plain, ""},
		{"gzip", "gzip", zipped(t, plain), ""},
		{"x-gzip", "X-GZIP", zipped(t, plain), ""},
		{"gzip in two members", "gzip", append(zipped(t, plain[:2000]), zipped(t, plain[2000:])...), ""},
		{"gzip and what says nothing", "aws-chunked,gzip, identity", zipped(t, plain), ""},
		{"gzip with a line break behind it", "gzip", append(zipped(t, plain), "\r\n"...), ""},
		{"gzip padded with zeros", "gzip", append(zipped(t, plain), make([]byte, 600)...), ""},
		{"gzip with a page behind it", "gzip", append(zipped(t, plain), strings.Repeat("<!-- cached -->", 1000)...), ""},
		{"gzip whose second member is cut", "gzip", append(zipped(t, plain[:2000]), zipped(t, plain[2000:])[:20]...), KindTruncated},
		{"gzip whose second member lies", "gzip", append(zipped(t, plain[:2000]), "\x1f\x8b no more than its beginning"...), KindProtocol},
		{"a charset for an encoding", "UTF-8", plain, ""},
		{"none by its name", "none", plain, ""},
		{"a coding of nobody", "x-mine", plain, KindProtocol},
		{"br, which nobody asked for", "br", plain, KindProtocol},
		{"deflate", "deflate", plain, KindProtocol},
		{"gzip twice", "gzip, gzip", zipped(t, zipped(t, plain)), KindProtocol},
		{"gzip that is none", "gzip", plain, KindProtocol},
		{"gzip cut short", "gzip", zipped(t, plain)[:40], KindTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.encoding != "" {
					w.Header().Set("Content-Encoding", tt.encoding)
				}
				_, _ = w.Write(tt.body)
			})
			resp, err := open(t, Config{}).Do(t.Context(), Request{URL: s.URL}, Via{})
			if tt.want != "" {
				wantKind(t, err, tt.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(resp.Body, plain) {
				t.Errorf("%d bytes, want %d", len(resp.Body), len(plain))
			}
			if resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Length") != "" {
				t.Errorf("the header still speaks of the encoded body: %v", resp.Header)
			}
		})
	}
}

func TestEmptyBodyThatNamesAnEncoding(t *testing.T) {
	for _, status := range []int{200, 304} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(status)
		})
		if resp := get(t, open(t, Config{}), s.URL, Via{}); resp.Status != status || len(resp.Body) != 0 {
			t.Errorf("status %d with %d bytes", resp.Status, len(resp.Body))
		}
	}
}

func TestBodyCap(t *testing.T) {
	// Members of one MiB each: 64 MiB of zeros in about 64 KB.
	bomb := bytes.Repeat(zipped(t, make([]byte, 1<<20)), 64)
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want Kind
	}{
		{"64 MiB of zeros in 64 KB of gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}, KindTooLarge},
		{"announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000001")
			_, _ = w.Write(make([]byte, 1000001))
		}, KindTooLarge},
		{"not announced", func(w http.ResponseWriter, _ *http.Request) {
			for range 200 {
				if _, err := w.Write(make([]byte, 10_000)); err != nil {
					return
				}
			}
		}, KindTooLarge},
		{"exactly the cap", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 500_000))
			w.(http.Flusher).Flush()
			_, _ = w.Write(make([]byte, 500_000))
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.h)
			resp, err := open(t, Config{MaxBody: 1_000_000}).Do(t.Context(), Request{URL: s.URL}, Via{})
			if tt.want == "" {
				if err != nil || len(resp.Body) != 1_000_000 {
					t.Fatalf("%v", err)
				}
				return
			}
			wantKind(t, err, tt.want)
		})
	}
}

// raw serves bytes as they are, then closes.
func raw(t *testing.T, answer string) *httptest.Server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(b, answer)
		_ = b.Flush()
		_ = c.Close()
	})
}

func TestCutShort(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		want   Kind
	}{
		"length 10, got 3":       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", KindTruncated},
		"a chunk cut":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nabc", KindTruncated},
		"the last chunk missing": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", KindTruncated},
		"within the headers":     {"HTTP/1.1 200 OK\r\nContent-Le", KindProtocol},
		"nothing at all":         {"", KindReset},
		"not HTTP":               {"SSH-2.0-OpenSSH_9.2\r\n", KindProtocol},
		"a bad chunk":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", KindProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			s := raw(t, tt.answer)
			_, err := open(t, Config{}).Do(t.Context(), Request{URL: s.URL}, Via{})
			wantKind(t, err, tt.want)
		})
	}
}

func TestTooSlow(t *testing.T) {
	drip := func(every time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				_, _ = w.Write([]byte("."))
				w.(http.Flusher).Flush()
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
			}
		}
	}
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		c    Config
		want error
	}{
		{"headers that never come", silent, Config{HeaderTimeout: 80 * time.Millisecond}, errHeaders},
		{"headers that never come, total first", silent, Config{Timeout: 80 * time.Millisecond}, errTotal},
		{"a body that falls silent", drip(time.Minute), Config{IdleBody: 80 * time.Millisecond}, errIdle},
		{"a body that drips for ever", drip(5 * time.Millisecond), Config{Timeout: 150 * time.Millisecond}, errTotal},
		{"a body below the least rate", drip(5 * time.Millisecond), Config{IdleBody: 2 * time.Second, MinRate: 1 << 20}, errSlow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.h)
			started := time.Now()
			_, err := open(t, tt.c).Do(t.Context(), Request{URL: s.URL}, Via{})
			e := wantKind(t, err, KindTimeout)
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if !strings.Contains(e.Error(), tt.want.Error()) {
				t.Errorf("%v, want %v", e, tt.want)
			}
		})
	}
}

func TestTooSlowIsAFunctionOfItsInputs(t *testing.T) {
	for _, tt := range []struct {
		bytes   int64
		took    time.Duration
		rate    int64
		tooSlow bool
	}{
		{0, time.Hour, 0, false},
		{100, 9 * time.Second, 100, false}, // within the grace
		{1000, 20 * time.Second, 100, true},
		{2000, 20 * time.Second, 100, false},
	} {
		if got := tooSlow(tt.bytes, tt.took, tt.rate, 10*time.Second); got != tt.tooSlow {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// A target that breaks off has perhaps counted the request: it is not sent
// again behind the caller's back.
func TestSentOnce(t *testing.T) {
	var sent atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1) > 1 {
			c, _, _ := http.NewResponseController(w).Hijack()
			_ = c.Close()
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	c := open(t, Config{})
	get(t, c, s.URL, Via{})
	_, err := c.Do(t.Context(), Request{URL: s.URL}, Via{})
	wantKind(t, err, KindReset)
	if n := sent.Load(); n != 2 {
		t.Errorf("%d requests were sent for two calls", n)
	}
}

// A kept connection that the target has closed meanwhile costs nothing.
func TestKeptConnectionClosedByTarget(t *testing.T) {
	s := serve(t, say("ok"))
	c := open(t, Config{})
	for range 20 {
		get(t, c, s.URL, Via{})
		s.CloseClientConnections()
		until(t, "the client to notice", func() bool { return c.pool.open.Load() == 0 })
	}
}

func TestConnectionsAreKept(t *testing.T) {
	var conns atomic.Int64
	s := httptest.NewUnstartedServer(say("ok"))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := open(t, Config{})
	for range 20 {
		get(t, c, s.URL, Via{})
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for 20 fetches one after another", n)
	}
}

func TestUserInURLBecomesAHeader(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		_, _ = fmt.Fprint(w, user, " ", pass)
	})
	resp := get(t, open(t, Config{}), strings.Replace(s.URL, "http://", "http://ann:p%40ss@", 1), Via{})
	if string(resp.Body) != "ann p@ss" {
		t.Errorf("the target saw %q", resp.Body)
	}
	if resp.URL.User != nil {
		t.Errorf("the final URL still names a user: %s", resp.URL)
	}
}

func TestRefusedHeaders(t *testing.T) {
	for _, h := range []http.Header{{"X-A": {"two\nlines"}}, {"Bad Name": {"x"}}} {
		_, err := open(t, Config{}).Do(t.Context(), Request{URL: "http://127.0.0.1:1/", Header: h}, Via{})
		wantKind(t, err, KindPolicy)
	}
}

func TestClosedClientRefuses(t *testing.T) {
	c := New(Config{AllowPrivate: true})
	c.Close()
	c.Close()
	_, err := c.Do(t.Context(), Request{URL: "http://127.0.0.1/"}, Via{})
	wantKind(t, err, KindPolicy)
}

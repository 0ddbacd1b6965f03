package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

var (
	errTotal    = errors.New("no whole answer within the timeout")
	errHeaders  = errors.New("no headers within the header timeout")
	errIdle     = errors.New("the body fell silent")
	errSlow     = errors.New("the body comes too slowly")
	errTooLarge = errors.New("the body is larger than allowed")
)

// encodingError is an answer in an encoding that we did not ask for.
type encodingError struct{ name string }

func (e *encodingError) Error() string {
	return fmt.Sprintf("the body is encoded as %q; only gzip was asked for", clip(e.name, 40))
}

// limits are what readBody holds a body to.
type limits struct {
	max     int64
	first   int64 // read no more than so many decoded bytes; 0: all
	idle    time.Duration
	minRate int64
}

// readBody reads and decodes a whole body. cancel ends the request and is
// given the reason; it is how silence is noticed, since a read has no
// deadline of its own.
func readBody(ctx context.Context, resp *http.Response, l limits, cancel context.CancelCauseFunc) ([]byte, error) {
	w := &watch{r: resp.Body, idle: l.idle, minRate: l.minRate, started: time.Now(), left: l.max}
	if l.first == 0 && resp.ContentLength > l.max {
		return nil, fmt.Errorf("%w: %d bytes announced, %d allowed", errTooLarge, resp.ContentLength, l.max)
	}
	w.timer = time.AfterFunc(l.idle, func() { cancel(errIdle) })
	defer w.timer.Stop()

	body, err := decode(w, resp, l)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	return body, nil
}

func decode(w *watch, resp *http.Response, l limits) ([]byte, error) {
	coding := codingOf(resp.Header)
	switch coding {
	case "":
		return readAll(w, l, resp.ContentLength)
	case "gzip", "x-gzip":
	default:
		return nil, &encodingError{coding}
	}
	// A 304, and an empty 200, may name an encoding and have no bytes.
	var first [1]byte
	n, err := io.ReadFull(w, first[:])
	if n == 0 {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	z := &members{r: bufio.NewReader(io.MultiReader(bytes.NewReader(first[:]), w))}
	if z.Reader, err = gzip.NewReader(z.r); err != nil {
		return nil, err
	}
	z.Multistream(false)
	return readAll(z, l, -1)
}

// noCoding are words that servers put where a coding stands, and that change
// no byte.
var noCoding = []string{"", "identity", "none", "7bit", "8bit", "binary", "utf-8", "utf8", "aws-chunked"}

// codingOf is what a body is encoded in; "" is nothing.
func codingOf(h http.Header) string {
	var all []string
	for one := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")), ",") {
		if one = strings.TrimSpace(one); !slices.Contains(noCoding, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, ", ")
}

// members reads gzip members to the end of the last. What follows it and begins
// none, such as a line break that a script printed, is no part of the body: a
// member says itself that it is whole.
type members struct {
	*gzip.Reader
	r *bufio.Reader
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.Reader.Read(p)
		switch {
		case !errors.Is(err, io.EOF):
			return n, err
		case n > 0:
			return n, nil
		}
		head, err := m.r.Peek(2)
		if string(head) != "\x1f\x8b" {
			if err == nil {
				_, err = io.Copy(io.Discard, m.r)
			}
			if err == nil {
				err = io.EOF
			}
			return 0, err
		}
		if err := m.Reset(m.r); err != nil {
			return 0, err
		}
		m.Multistream(false)
	}
}

// readAll reads to the end, or fails at the first byte beyond the cap; or it
// reads the first bytes alone.
func readAll(r io.Reader, l limits, announced int64) ([]byte, error) {
	var b bytes.Buffer
	if announced > 0 {
		b.Grow(int(min(announced, 1<<20)) + bytes.MinRead)
	}
	most := l.max + 1
	if l.first > 0 {
		most = min(most, l.first)
	}
	n, err := io.Copy(&b, io.LimitReader(r, most))
	if err != nil {
		return nil, err
	}
	if n > l.max {
		return nil, fmt.Errorf("%w: more than %d bytes when decoded", errTooLarge, l.max)
	}
	return b.Bytes(), nil
}

// watch reads from the wire: it resets the silence timer, and holds the bytes
// before decoding to the cap and to the least rate.
type watch struct {
	r       io.Reader
	timer   *time.Timer
	idle    time.Duration
	minRate int64
	started time.Time
	read    int64
	left    int64
}

func (w *watch) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.timer.Reset(w.idle)
		w.read += int64(n)
		if w.read > w.left {
			return 0, fmt.Errorf("%w: more than %d bytes on the wire", errTooLarge, w.left)
		}
		if err == nil && tooSlow(w.read, time.Since(w.started), w.minRate, w.idle) {
			return 0, errSlow
		}
	}
	return n, err
}

// tooSlow asks for the least rate only after a time of grace.
func tooSlow(bytes int64, took time.Duration, minRate int64, grace time.Duration) bool {
	return minRate > 0 && took > grace && float64(bytes) < float64(minRate)*took.Seconds()
}

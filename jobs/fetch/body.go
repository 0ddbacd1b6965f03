package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	switch coding {
	case "", "identity":
		return readAll(w, l, resp.ContentLength)
	case "gzip", "x-gzip":
	default:
		return nil, &encodingError{coding}
	}
	// A 304, and an empty 200, may name an encoding and have no bytes.
	var first [1]byte
	if n, err := io.ReadFull(w, first[:]); n == 0 {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	z, err := gzip.NewReader(io.MultiReader(bytes.NewReader(first[:]), w))
	if err != nil {
		return nil, err
	}
	body, err := readAll(z, l, -1)
	if err != nil || l.first > 0 {
		return body, err
	}
	return body, z.Close()
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

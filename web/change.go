package web

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// A change that Redis did not answer may have been made all the same, and who asked
// for it is to know. So Redis is asked first whether it answers: where it does not,
// nothing is begun, and that is said. What hangs after that is not waited for longer
// than what is only looked at, and is said to be unknown.
const (
	notBegun = "nothing was done"
	notKnown = "whether it was done is not known: look before you ask for it again"
)

// begin says whether a change may be begun.
func (s *Server) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.pace.look/2)
	defer cancel()
	return s.p.Redis.Ping(ctx).Err()
}

// leaves says in a problem what is left of a change that Redis did not answer. One
// that Redis refuses is as the refusal says.
func (p *Problem) leaves(begun bool, err error) {
	switch {
	case p.Code != "redis-away":
	case !begun:
		p.Detail += "; " + notBegun
	case !redisRefuses(err) && redisAway(err):
		p.Detail += "; " + notKnown
	}
}

// hurry is the context of a request that changes something: it ends within a time
// in which the sender sent nothing of the body, and nothing was answered.
type hurry struct {
	context.Context // the request's own
	within          time.Duration
	done            chan struct{}

	mu    sync.Mutex
	timer *time.Timer
	until time.Time
	err   error
}

// hurried gives a request such a context, which end frees.
func hurried(r *http.Request, within time.Duration) (hurried *http.Request, end func()) {
	own := r.Context()
	h := &hurry{Context: own, within: within, done: make(chan struct{}), until: time.Now().Add(within)}
	h.mu.Lock() // its end, which may come at once, stops the timer
	h.timer = time.AfterFunc(within, func() { h.end(context.DeadlineExceeded) })
	h.mu.Unlock()
	gone := context.AfterFunc(own, func() { h.end(own.Err()) })
	r = r.WithContext(h) //nolint:contextcheck // it is made of the request's own
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &unhurriedBody{r.Body, h}
	}
	return r, func() {
		gone()
		h.end(context.Canceled)
	}
}

// unhurried is a request as it was before it was hurried.
func unhurried(r *http.Request) *http.Request {
	if h, ok := r.Context().(*hurry); ok {
		return r.WithContext(h.Context) //nolint:contextcheck // the request's own
	}
	return r
}

func (h *hurry) Done() <-chan struct{} { return h.done }

func (h *hurry) Deadline() (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.until
	if outer, ok := h.Context.Deadline(); ok && outer.Before(until) {
		until = outer
	}
	return until, true
}

func (h *hurry) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *hurry) end(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = why
		h.timer.Stop()
		close(h.done)
	}
}

// pause stops the time, and resume lets it begin anew.
func (h *hurry) pause() { h.timer.Stop() }

func (h *hurry) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.until = time.Now().Add(h.within)
		h.timer.Reset(h.within)
	}
}

// unhurriedBody is a body whose sender may take the time that the server gives.
type unhurriedBody struct {
	io.ReadCloser
	hurry *hurry
}

func (b *unhurriedBody) Read(p []byte) (int, error) {
	b.hurry.pause()
	defer b.hurry.resume()
	return b.ReadCloser.Read(p)
}

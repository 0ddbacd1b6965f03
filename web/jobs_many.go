package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"feedwarden/internal/lines"
	"feedwarden/jobs"
)

const (
	maxMany    = 64 << 20 // bytes of one request of many jobs
	maxLine    = 64 << 10 // bytes of one job in it
	bulkAtOnce = 4        // such requests at a time; each may hold maxMany in memory
	flushEvery = 250 * time.Millisecond
)

// enqueueSoon is enqueue of one of many: each has the time that one alone has.
func (s *Server) enqueueSoon(r *http.Request, line []byte) (jobs.Job, error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.pace.look)
	defer cancel()
	j, err := s.enqueue(ctx, line)
	if d := deedOf(ctx); d != nil {
		d.away = err != nil && redisAway(err)
	}
	return j, err
}

// errSilent ends many jobs where Redis has not answered for as long as one job is
// waited for: each of the rest would wait as long.
var errSilent = errors.New("redis is silent")

// lineError is the result line of a job that was not enqueued.
type lineError struct {
	Line         int    `json:"line"`
	Error        string `json:"error"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// postMany enqueues a job a line and answers a line for each, in order, while
// it still reads. A bad line does not stop the rest.
func (s *Server) postMany(w http.ResponseWriter, r *http.Request) {
	select {
	case s.bulk <- struct{}{}:
		defer func() { <-s.bulk }()
	default:
		s.fail(w, r, problem(http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d requests of many jobs run already", bulkAtOnce)).after(time.Second))
		return
	}
	if r.ContentLength > maxMany {
		s.fail(w, r, &http.MaxBytesError{Limit: maxMany})
		return
	}
	// The body is read apart from the work, into memory: a client that sends all
	// before it reads any of the answer must not wait for us while we wait for it.
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // HTTP/2 needs none
	in, done := newSpool(), make(chan struct{})
	out := &resultLines{w: w, rc: rc, within: s.pace.write}
	in.idle = out.idle
	body := &paced{r: http.MaxBytesReader(w, r.Body, maxMany), within: s.pace.body, deadline: rc.SetReadDeadline}
	go func() {
		defer close(done)
		in.fill(body)
	}()
	defer context.AfterFunc(s.stopping, body.end)() //nolint:contextcheck // the server's own end, beside the request's
	defer func() {
		select {
		case <-done:
		default:
			body.end()
			<-done
		}
	}()
	w.Header().Set("Content-Type", ndjsonType)
	w.Header().Set("Cache-Control", "no-store")
	heard, away := time.Now(), false
	err := lines.Each(in, maxLine, func(n int, line []byte, tooLong bool) error {
		if s.stopping.Err() != nil {
			return &lines.ReadError{Line: n, Err: errEnded}
		}
		if away && time.Since(heard) >= s.pace.look {
			return &lines.ReadError{Line: n, Err: errSilent}
		}
		if err := r.Context().Err(); err != nil {
			return err
		}
		if tooLong {
			return out.add(lineError{Line: n, Error: fmt.Sprintf("the line has more than %d bytes", maxLine)})
		}
		if !away {
			heard = time.Now()
		}
		j, err := s.enqueueSoon(r, line)
		away = err != nil && redisAway(err)
		if err != nil {
			return out.add(s.lineError(n, err))
		}
		return out.add(j)
	})
	var stopped *lines.ReadError
	if errors.As(err, &stopped) {
		err = out.add(lineError{Line: stopped.Line, Error: cutShort(stopped)})
	}
	if err == nil {
		err = out.flush()
	}
	if err != nil {
		// Cut, so that the client sees that the answer is not whole.
		s.log.Debug("a request of many jobs ended early", "error", err)
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) lineError(n int, err error) lineError {
	p := problemOf(err)
	p.leaves(true, err)
	if p.Code == "internal" || p.Code == "redis-away" {
		s.log.Error("could not enqueue", "line", n, "error", err)
	}
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	return lineError{Line: n, Error: text, RetryAfterMS: p.RetryAfterMS}
}

// resultLines writes a line for each result, and sends them at least every
// flushEvery, and whenever there is nothing else to do.
type resultLines struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	within time.Duration
	sent   time.Time
	begun  bool
}

// begin sends the status with the first line, not before: a client that waits
// for "100 Continue" must get that first.
func (o *resultLines) begin() {
	if !o.begun {
		o.begun = true
		o.w.WriteHeader(http.StatusAccepted)
	}
}

func (o *resultLines) add(v any) error {
	line, err := encode(v)
	if err != nil {
		return err
	}
	o.begin()
	now := time.Now()
	_ = o.rc.SetWriteDeadline(now.Add(o.within))
	if _, err := o.w.Write(line); err != nil {
		return err
	}
	if now.Sub(o.sent) < flushEvery {
		return nil
	}
	return o.flush()
}

// idle sends what is written before the next line is waited for: its sender may
// wait for the answer to the last. An error is met again by what comes next.
func (o *resultLines) idle() {
	if o.begun {
		_ = o.flush()
	}
}

func (o *resultLines) flush() error {
	o.begin()
	o.sent = time.Now()
	return o.rc.Flush()
}

// cutShort says why a body was not read to its end.
func cutShort(err error) string {
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return fmt.Sprintf("the body has more than %d bytes: this line and what follows was not read", tooBig.Limit)
	}
	if errors.Is(err, errSilent) {
		return "Redis does not answer any more: this line and what follows was not enqueued"
	}
	if errors.Is(err, errEnded) {
		return "the server is stopping: this line and what follows was not enqueued"
	}
	return "the body could not be read to its end: this line and what follows was not read"
}

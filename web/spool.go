package web

import (
	"errors"
	"io"
	"sync"
	"time"
)

// spool is a pipe whose writer never waits: what is not read yet is kept. Its
// bound is that of what is written to it.
type spool struct {
	mu     sync.Mutex
	more   *sync.Cond
	chunks [][]byte
	err    error // why nothing more comes

	// idle, where it is set, is called by the reader before it waits.
	idle func()
}

const spoolChunk = 32 << 10

func newSpool() *spool {
	s := &spool{}
	s.more = sync.NewCond(&s.mu)
	return s
}

// fill reads r to its end.
func (s *spool) fill(r io.Reader) {
	buf := make([]byte, spoolChunk)
	for {
		n, err := r.Read(buf)
		s.mu.Lock()
		s.keep(buf[:n])
		s.err = err
		s.more.Signal()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// keep appends to the last chunk where it has room, so that a body which comes
// in drops takes no more than its size.
func (s *spool) keep(b []byte) {
	if last := len(s.chunks) - 1; last >= 0 && cap(s.chunks[last])-len(s.chunks[last]) >= len(b) {
		s.chunks[last] = append(s.chunks[last], b...)
	} else if len(b) > 0 {
		s.chunks = append(s.chunks, append(make([]byte, 0, spoolChunk), b...))
	}
}

// Read waits for what comes next.
func (s *spool) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.chunks) == 0 && s.err == nil && s.idle != nil {
		s.mu.Unlock()
		s.idle()
		s.mu.Lock()
	}
	for len(s.chunks) == 0 && s.err == nil {
		s.more.Wait()
	}
	if len(s.chunks) == 0 {
		return 0, s.err
	}
	n := copy(p, s.chunks[0])
	if s.chunks[0] = s.chunks[0][n:]; len(s.chunks[0]) == 0 {
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
	}
	return n, nil
}

// paced is a body with a deadline that moves with every read, and that can be
// ended from outside.
type paced struct {
	r        io.Reader
	within   time.Duration
	deadline func(time.Time) error

	mu    sync.Mutex
	ended bool
}

var errEnded = errors.New("web: nobody reads this body any more")

func (p *paced) Read(b []byte) (int, error) {
	if err := p.move(time.Now().Add(p.within)); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	if errors.Is(err, io.EOF) {
		// Nothing more is waited for: a deadline that stays would end the request
		// while it is worked on. After an error it must stay, for net/http then
		// reads on to find the end.
		_ = p.move(time.Time{})
	} else if err != nil && p.isEnded() {
		err = errEnded
	}
	return n, err
}

func (p *paced) isEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *paced) move(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errEnded
	}
	_ = p.deadline(t)
	return nil
}

// end makes a read that waits give up.
func (p *paced) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	_ = p.deadline(time.Unix(1, 0))
}

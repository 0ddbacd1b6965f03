package web

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// An address that has failed failuresAllowed times within failuresWithin is told
// to wait for the rest of that time. What is remembered is bounded.
const (
	failuresAllowed = 10
	failuresWithin  = time.Minute
	failuresKept    = 4096
)

type failures struct {
	mu   sync.Mutex
	seen *lru.Cache[netip.Prefix, tally]
}

// tally is what one address has failed since from.
type tally struct {
	from time.Time
	n    int
}

func newFailures() *failures {
	seen, err := lru.New[netip.Prefix, tally](failuresKept)
	if err != nil {
		panic(err) // the size is a constant above 0
	}
	return &failures{seen: seen}
}

// note counts a failure; its error is the 429 of one too many.
func (f *failures) note(r *http.Request, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := sender(r)
	t, _ := f.seen.Get(from)
	if err := t.refusal(now); err != nil {
		return err
	}
	if now.Sub(t.from) >= failuresWithin {
		t = tally{from: now}
	}
	t.n++
	f.seen.Add(from, t)
	return nil
}

func (t tally) refusal(now time.Time) error {
	left := t.from.Add(failuresWithin).Sub(now)
	if t.n < failuresAllowed || left <= 0 {
		return nil
	}
	return problem(http.StatusTooManyRequests, "too-many-failures", "too many wrong tokens came from this address").after(left)
}

// sender is where a request comes from: an IPv4 address, or an IPv6 network of
// the size that one subscriber has.
func sender(r *http.Request) netip.Prefix {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

package web

import (
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"feedwarden/jobs/probe"
)

// The judge's pace: more than a check of thousands of proxies asks for, and no
// more than a small machine gives away.
const (
	judgeRate  = 500 // a second
	judgeBurst = 1000
)

func newJudgePace() *rate.Limiter { return rate.NewLimiter(judgeRate, judgeBurst) }

// judgeIsAsked says that a request is for the judge. It is the one route that is
// not held to our names: proxies reach us by a public name that need not be among
// them, and there is nothing of ours to be had.
func judgeIsAsked(r *http.Request) bool {
	return r.URL.Path == probe.Path && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// judge says to whoever asks what they asked, from where and with which headers;
// see probe.Judge. All of the internet may ask, so there is a pace.
func (s *Server) judge(w http.ResponseWriter, r *http.Request) {
	switch {
	case !s.judgePace.Allow():
		s.fail(w, r, problem(http.StatusTooManyRequests, "busy", "more questions than are answered; ask again").after(time.Second))
	case !probe.GoodNonce(r.URL.Query().Get(probe.NonceParam)):
		s.fail(w, r, problem(http.StatusBadRequest, "nonce", "a word to repeat is wanted: ?nonce= with 1 to 64 letters, digits, - or _"))
	default:
		probe.Judge(w, r)
	}
}

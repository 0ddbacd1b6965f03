package source

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"feedwarden/jobs/fetch"
)

// AnswerKind is what an answer without items means.
type AnswerKind string

const (
	QuotaDay  AnswerKind = "quota-day"  // the day's budget at the target is spent
	QuotaRate AnswerKind = "quota-rate" // too many requests for now
	NotFound  AnswerKind = "not-found"  // it does not exist, or no longer
	Forbidden AnswerKind = "forbidden"  // the target refuses it to us
	Invalid   AnswerKind = "invalid"    // the request or the key is wrong: it will not work by trying again
	Target5xx AnswerKind = "target-5xx" // the target failed
	NotAFeed  AnswerKind = "not-a-feed" // something else came than was asked for
	Ban       AnswerKind = "ban"        // the target has shut out the address that we came from
	Truncated AnswerKind = "truncated"  // the answer stops in the middle
)

// AnswerError is an answer that holds no items.
type AnswerError struct {
	Kind AnswerKind
	// Reason is a word or a line of the target's, or of ours: bounded, on one
	// line, without secrets.
	Reason string
	// RetryAfter is what the target asks for; 0 where it names nothing.
	RetryAfter time.Duration
	Err        error
	// Kept is the beginning of what came, 64 KiB at most, and without the
	// secrets that the request carried; for a person to look at.
	Kept        []byte
	ContentType string
}

// mostKept is how much of a body goes with an error.
const mostKept = 64 << 10

// Keep puts the beginning of what came into the error.
func (e *AnswerError) Keep(body []byte, contentType string) {
	e.Kept, e.ContentType = bytes.Clone(body[:min(len(body), mostKept)]), snippet(contentType)
}

func (e *AnswerError) Error() string {
	s := "source: " + string(e.Kind)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *AnswerError) Unwrap() error { return e.Err }

// byStatus is what a status means where the body adds nothing; nil is an
// answer that is to be read.
func byStatus(resp *fetch.Response, now time.Time) *AnswerError {
	s := resp.Status
	e := &AnswerError{Reason: fmt.Sprintf("status %d", s)}
	named := false
	e.RetryAfter, named = fetch.RetryAfter(resp.Header, now)
	switch {
	case s == http.StatusOK || s == http.StatusNonAuthoritativeInfo:
		return nil
	case challenged(resp):
		e.Kind, e.Reason = Ban, fmt.Sprintf("status %d with a challenge page", s)
	case s == http.StatusPartialContent:
		e.Kind, e.Reason = Truncated, "status 206, a part of the content"
	case s == http.StatusNotModified:
		e.Kind, e.Reason = NotAFeed, "status 304, which only a conditional request may get"
	case s < 400:
		e.Kind = NotAFeed
	case s == http.StatusNotFound || s == http.StatusGone:
		e.Kind = NotFound
	case s == http.StatusTooManyRequests, s == http.StatusForbidden && named: // GitHub's word for a secondary limit
		e.Kind = QuotaRate
	case s == http.StatusUnauthorized || s == http.StatusForbidden || s == http.StatusUnavailableForLegalReasons:
		e.Kind = Forbidden
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly || s >= 500:
		e.Kind = Target5xx
	default:
		e.Kind = Invalid
	}
	return e
}

// challenged recognizes a refusal that asks for a browser. The header is
// documented by Cloudflare for that purpose.
func challenged(resp *fetch.Response) bool {
	return strings.EqualFold(resp.Header.Get("Cf-Mitigated"), "challenge")
}

// snippet is the beginning of a text on one line, for a person to see what
// came instead.
func snippet(s string) string {
	const limit = 120
	var b strings.Builder
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if !unicode.IsPrint(r) {
			r = '·'
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
		if b.Len() >= limit {
			return b.String() + "…"
		}
	}
	return b.String()
}

func notAFeed(what, body string) *AnswerError {
	e := &AnswerError{Kind: NotAFeed, Reason: what}
	if s := snippet(body); s != "" {
		e.Err = errors.New("it begins: " + s)
	}
	return e
}

package robots

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// keepFor is how long an answer holds: RFC 9309, 2.4, asks for a day at most.
	keepFor = 24 * time.Hour
	// askAgain is how soon a host that gave no answer is asked again, at first;
	// each time in a row doubles it, to askSeldom.
	askAgain  = time.Minute
	askSeldom = time.Hour
)

// Kept is what is known of one origin's file.
type Kept struct {
	Schema int    `json:"v"`
	Agent  string `json:"agent"`            // the product token that it was read for
	Status int    `json:"status,omitempty"` // of the answer, 0 without one
	Rules  Rules  `json:"rules"`
	// Why says that nothing may be asked for, and why; "" is that the rules hold.
	Why      string    `json:"why,omitempty"`
	Failures int       `json:"failures,omitempty"` // in a row
	Until    time.Time `json:"until"`
}

// Answer is how asking for a file ended.
type Answer struct {
	Status     int // 0: none came
	Body       []byte
	RetryAfter time.Duration // 0: none
	Why        string        // no answer came, in words
}

// Judge says what an answer means, and for how long. before is what was known,
// a zero Kept where nothing was.
func Judge(a Answer, token string, before Kept, now time.Time) Kept {
	k := Kept{Schema: schema, Agent: token, Status: a.Status, Until: now.Add(keepFor)}
	switch {
	case a.Status >= 200 && a.Status < 300:
		k.Rules = Parse(a.Body, token)
		return k
	case a.Status >= 300 && a.Status < 500 && a.Status != http.StatusTooManyRequests:
		return k
	}
	k.Why, k.Failures = a.Why, before.Failures+1
	if a.Status != 0 {
		k.Why = fmt.Sprintf("it answered %d", a.Status)
	}
	k.Until = now.Add(nextTry(k.Failures, a.RetryAfter))
	return k
}

// nextTry is how long a host that gave no answer is left alone.
func nextTry(failures int, asked time.Duration) time.Duration {
	d := askAgain << min(max(failures, 1)-1, 10)
	return min(max(d, asked), askSeldom)
}

// Check is what follows for a URL of the origin: nil, a *DisallowedError or a
// *UnknownError.
func (k Kept) Check(u *url.URL) error {
	if k.Why != "" {
		return &UnknownError{Origin: Origin(u), Why: k.Why, Until: k.Until}
	}
	v := k.Rules.Check(u)
	if v.Allowed {
		return nil
	}
	return &DisallowedError{Origin: Origin(u), Agent: k.Rules.Agent, Rule: v.Rule}
}

// ErrDisallowed matches every *DisallowedError.
var ErrDisallowed = errors.New("robots: disallowed")

// DisallowedError is a host's rule against a URL. Nothing was asked for.
type DisallowedError struct {
	Origin string // whose file it is
	Agent  string // the user-agent line that the rule stands under
	Rule   Rule
}

func (e *DisallowedError) Error() string {
	return fmt.Sprintf("robots: %s/robots.txt, line %d, for %s: %q forbids this page (fetch.robots: false would not ask)",
		e.Origin, e.Rule.Line, e.Agent, clip(e.Rule.String()))
}

// Is makes every one of them ErrDisallowed.
func (e *DisallowedError) Is(target error) bool { return target == ErrDisallowed }

// UnknownError is that a host's rules are not known for now. Nothing was asked for.
type UnknownError struct {
	Origin string
	Why    string
	Until  time.Time // when the file is asked for again
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("robots: %s/robots.txt could not be read (%s), and until it can nothing is fetched there", e.Origin, e.Why)
}

// clip bounds what a stranger wrote.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// Origin is scheme, host and port, in the one form of them all.
func Origin(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return u.Scheme + "://" + host
}

// FileURL is where the file of a URL's origin is.
func FileURL(u *url.URL) string { return Origin(u) + "/robots.txt" }

package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strings"
)

// Kind is what went wrong, as far as a rule about the next try needs it.
type Kind string

const (
	KindConnect     Kind = "connect"     // no connection to the endpoint, or, without one, to the target
	KindUnreachable Kind = "unreachable" // the endpoint refuses the way to the target, or says that it has none
	KindTLS         Kind = "tls"         // a handshake or certificate failed
	KindProxyAuth   Kind = "proxy-auth"  // the proxy refused our credentials, or wants some
	KindTimeout     Kind = "timeout"     // too slow: in all, to the headers, or within the body
	KindReset       Kind = "reset"       // the connection broke
	KindPolicy      Kind = "policy"      // a rule of ours refused it
	KindTooLarge    Kind = "too-large"   // more decoded bytes than allowed
	KindTruncated   Kind = "truncated"   // the body ended before its end
	KindProtocol    Kind = "protocol"    // the answer is not HTTP, or in an encoding that we did not ask for
	KindCancelled   Kind = "cancelled"   // the caller's context ended; says nothing about the endpoint
)

// Error is why a fetch brought nothing. Neither its text nor that of anything
// it wraps holds a query, a password or a key.
type Error struct {
	Kind Kind
	// URL is the scheme, host and path that was asked for.
	URL string
	// Via is the ID of the endpoint, "direct" without one.
	Via string
	// Unsent says that for certain nothing of the request left: no connection
	// to the target, or through the proxy to it, came about, or its handshake
	// failed.
	Unsent bool
	// Err is the cause, scrubbed; errors.Is and errors.As see through it.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("fetch: %s via %s: %s: %v", e.URL, e.Via, e.Kind, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// scrubbed is an error whose text has lost its secrets. It has no Unwrap:
// walking the chain by hand must not bring them back.
type scrubbed struct {
	text  string
	cause error
}

func (s *scrubbed) Error() string        { return s.text }
func (s *scrubbed) Is(target error) bool { return errors.Is(s.cause, target) }
func (s *scrubbed) As(target any) bool   { return errors.As(s.cause, target) }

// scrub takes out of an error's text every secret that went into the request.
func scrub(err error, secrets []string, shown func(string) string) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	text := err.Error()
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "[redacted]")
	}
	return &scrubbed{text: clip(shown(text), 400), cause: err}
}

// shortSecret is the length below which a value is not searched for in texts:
// replacing "1" everywhere would hide the message and protect nothing.
const shortSecret = 4

// secretsOf lists what must not be seen: query values, user and password of
// the target and of the endpoint, and header values of a keyed request.
func secretsOf(u *url.URL, h http.Header, keyed bool, proxy *url.URL) []string {
	var out []string
	add := func(values ...string) {
		for _, v := range values {
			if len(v) >= shortSecret {
				out = append(out, v)
			}
		}
	}
	if u != nil {
		add(u.RawQuery)
		for _, values := range u.Query() {
			add(values...)
		}
	}
	for _, v := range []*url.URL{u, proxy} {
		if v != nil && v.User != nil {
			p, _ := v.User.Password()
			add(v.User.String(), v.User.Username(), p, url.QueryEscape(p), url.PathEscape(p))
		}
	}
	for name, values := range h {
		if keyed && name != "User-Agent" && !strings.HasPrefix(name, "Accept") || name == "Authorization" || name == "Cookie" {
			add(values...)
		}
	}
	sort.Slice(out, func(i, j int) bool { return len(out[i]) > len(out[j]) })
	return out
}

// Redact is a URL as it may be shown: scheme, host and path. A query is shown
// as "?…", a user not at all.
func Redact(u *url.URL) string {
	if u == nil {
		return ""
	}
	s := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	s = clip(s, 200)
	if u.RawQuery != "" {
		s += "?…"
	}
	return s
}

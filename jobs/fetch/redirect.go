package fetch

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// nextHop is where an answer sends us: nil when it is not a redirect that is
// followed, an error when policy forbids to follow it. It is a function of the
// answer alone; the new target is still to be checked.
func nextHop(from *url.URL, status int, h http.Header, keyed bool) (*url.URL, error) {
	if !isRedirect(status, h) {
		return nil, nil
	}
	ref, err := url.Parse(strings.TrimSpace(h.Get("Location")))
	if err != nil {
		return nil, &policyError{"a redirect to a URL that cannot be parsed"}
	}
	to := from.ResolveReference(ref)
	if to.User == nil && from.User != nil && sameOrigin(from, to) {
		to.User = from.User // an absolute Location names the same place as a relative one
	}
	if keyed && !sameOrigin(from, to) {
		return nil, &policyError{"a redirect to another origin, " + Redact(to) + ", is not followed: the request carries a key"}
	}
	return to, nil
}

func isRedirect(status int, h http.Header) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return strings.TrimSpace(h.Get("Location")) != ""
	}
	return false
}

// sameOrigin says that a key given to a is safe with b: the same host and
// port, and not from https to http. From http to https on the default ports
// is the same origin, only better.
func sameOrigin(a, b *url.URL) bool {
	ha, ea := asciiHost(a.Hostname())
	hb, eb := asciiHost(b.Hostname())
	if ea != nil || eb != nil || ha != hb || b.User != nil && a.User == nil {
		return false
	}
	if a.Scheme == "http" && b.Scheme == "https" {
		return port(a) == "80" && port(b) == "443"
	}
	return a.Scheme == b.Scheme && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	switch u.Scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// carried are the headers that go with a redirect to another origin. A list of
// what is harmless, not of what is secret: a key can have any name.
var carried = []string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "If-None-Match", "If-Modified-Since"}

func headerFor(from, to *url.URL, h http.Header) http.Header {
	if sameOrigin(from, to) {
		return h
	}
	out := http.Header{}
	for name, values := range h {
		if slices.Contains(carried, name) {
			out[name] = values
		}
	}
	return out
}

// connectionHeaders are ours to set, not the caller's.
var connectionHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// requestHeader is what the first hop is sent.
func requestHeader(given http.Header, userAgent string) (http.Header, error) {
	h := http.Header{}
	for name, values := range given {
		name = http.CanonicalHeaderKey(name)
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, &policyError{fmt.Sprintf("header name %q cannot be sent", clip(name, 40))}
		}
		if slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return nil, &policyError{fmt.Sprintf("the value of header %s holds characters that cannot be sent", name)}
		}
		if !slices.Contains(connectionHeaders, name) {
			h[name] = append(h[name], values...)
		}
	}
	if len(h["User-Agent"]) == 0 {
		h.Set("User-Agent", userAgent)
	}
	h.Set("Accept-Encoding", "gzip")
	return h, nil
}

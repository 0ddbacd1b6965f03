package config

import (
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpguts"
)

var (
	goodName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	goodHost = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
)

// properName is the rule for names of feeds, quotas, pools and tokens: they
// stand in keys, paths and metrics.
func properName(s string) (problem, want string) {
	if goodName.MatchString(s) {
		return "", ""
	}
	const rule = "want up to 63 of a-z, 0-9, dot, hyphen and underscore, the first a letter or digit"
	if lower := strings.ToLower(strings.TrimSpace(s)); goodName.MatchString(lower) {
		return "is no proper name", "did you mean " + strconv.Quote(lower) + "?"
	}
	return "is no proper name", rule
}

func hostName(s string) (problem, want string) {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil || len(s) <= 253 && goodHost.MatchString(s) {
		return "", ""
	}
	return "is no host name", "want a name alone, such as feeds.example.org: no scheme, port or path"
}

func noControl(s string) (problem, want string) {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "holds a control character", ""
	}
	return "", ""
}

// headerValue refuses what would end the header's line.
func headerValue(s string) (problem, want string) {
	if strings.ContainsAny(s, "\r\n") {
		return "holds a line break", "want one line"
	}
	if !httpguts.ValidHeaderFieldValue(s) {
		return "holds a control character", "want visible characters"
	}
	return "", ""
}

// ownHeaders are set by the fetch itself: another value would break it.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Host", "If-Modified-Since", "If-None-Match",
	"Proxy-Authorization", "Proxy-Connection", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func headerName(s string) (problem, want string) {
	if !httpguts.ValidHeaderFieldName(s) {
		return "is no header's name", "want a name such as Authorization"
	}
	if slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(s)) {
		return "is a header that the fetch sets itself", "remove it"
	}
	return "", ""
}

const holdsUser = "holds a user or password"

// webURL checks a URL that is fetched. Its texts do not quote it.
func webURL(s string) (problem, want string) {
	const example = "want a URL such as https://example.org/feed.xml"
	if s == "" {
		return "is empty", example
	}
	if strings.ContainsFunc(s, notVisible) {
		return "holds a blank or a control character", "want it percent-encoded, such as %20"
	}
	u, err := url.Parse(s)
	if err != nil {
		return "is no URL", example
	}
	switch u.Scheme {
	case "http", "https":
	case "":
		return "has no scheme", "want it to begin with https:// or http://"
	default:
		return "has a scheme that is not fetched", "want it to begin with https:// or http://"
	}
	if u.User != nil {
		return holdsUser, "want them in headers: {Authorization: \"Basic ${NAME}\"}"
	}
	if u.Hostname() == "" {
		return "has no host", example
	}
	if problem, _ := hostName(u.Hostname()); problem != "" && isASCII(u.Hostname()) {
		return "has a bad host", example
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "has a bad port", "want a port from 1 to 65535"
		}
	}
	return "", ""
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// mayHoldSecret tells of a header's or parameter's name that its value should
// not be shown, though it stands in the file.
var mayHoldSecret = regexp.MustCompile(`(?i)auth|cookie|key|password|passwd|secret|session|signature|token`)

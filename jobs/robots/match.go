package robots

import (
	"net/url"
	"strings"
)

// Verdict is what a file says of one path.
type Verdict struct {
	Allowed bool
	Rule    Rule // that decided; its Line is 0 where none matches
}

// Check says whether the URL may be asked for: the longest pattern that
// matches decides, and where none does it may.
func (r Rules) Check(u *url.URL) Verdict {
	path := normalize(pathOf(u), false)
	if path == "/robots.txt" {
		return Verdict{Allowed: true}
	}
	for _, rule := range r.Rules {
		if match(rule.Pattern, path) {
			return Verdict{Allowed: rule.Allow, Rule: rule}
		}
	}
	return Verdict{Allowed: true}
}

// pathOf is what a pattern is compared with: path and query.
func pathOf(u *url.URL) string {
	p := u.EscapedPath()
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	if u.RawQuery != "" || u.ForceQuery {
		p += "?" + u.RawQuery
	}
	return p
}

// match compares a normalized pattern with a normalized path: * is any octets,
// $ at the end is the end. It takes a time of about the two lengths' sum.
func match(pattern, path string) bool {
	end := strings.HasSuffix(pattern, "$")
	pattern = strings.TrimSuffix(pattern, "$")
	first, rest, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(path, first) {
		return false
	}
	path = path[len(first):]
	if !star {
		return !end || path == ""
	}
	for {
		piece, after, more := strings.Cut(rest, "*")
		if !more {
			if end {
				return strings.HasSuffix(path, piece)
			}
			return strings.Contains(path, piece)
		}
		i := strings.Index(path, piece)
		if i < 0 {
			return false
		}
		path, rest = path[i+len(piece):], after
	}
}

const upperHex = "0123456789ABCDEF"

// normalize gives octets one form (RFC 9309, 2.2.2): those that need no
// percent-encoding have none, those that no URL may hold have (what is not ASCII,
// and " < > \ ^ ` { | } that a request sends encoded), its digits are upper case. In a path * and $ are octets like others and are encoded; in a
// pattern they mean something, a $ at the end alone.
func normalize(s string, pattern bool) string {
	var b strings.Builder
	b.Grow(len(s))
	encode := func(c byte) {
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && i+2 < len(s) && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0:
			v := byte(hex(s[i+1])<<4 | hex(s[i+2])) //nolint:gosec // two digits, none of them negative
			i += 2
			if unreserved(v) {
				b.WriteByte(v)
			} else {
				encode(v)
			}
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			encode(c)
		case c == '*' && !pattern, c == '$' && (!pattern || i != len(s)-1):
			encode(c)
		case c == '*' && strings.HasSuffix(b.String(), "*"): // two say no more than one
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unreserved(c byte) bool {
	return alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

package source

import (
	"net/http"
	"strings"
)

// nextLink is the target of the first link in an answer's Link headers that
// says rel=next of the answer itself (RFC 8288); "" where there is none.
func nextLink(h http.Header) string {
	rest := strings.Join(h.Values("Link"), ",")
	for {
		rest = strings.TrimLeft(rest, " \t,")
		if rest == "" || rest[0] != '<' {
			// What is not a link is passed over up to the next that may be one.
			i := strings.IndexByte(rest, '<')
			if i < 0 {
				return ""
			}
			rest = rest[i:]
		}
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return ""
		}
		target := strings.TrimSpace(rest[1:end])
		var params map[string]string
		params, rest = linkParams(rest[end+1:])
		if _, other := params["anchor"]; other {
			continue // it speaks of another document
		}
		for _, rel := range strings.Fields(params["rel"]) {
			if strings.EqualFold(rel, "next") {
				return target
			}
		}
	}
}

// linkParams reads the parameters of a link up to the comma that ends it. The
// first of one name counts.
func linkParams(s string) (params map[string]string, rest string) {
	params = map[string]string{}
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" || s[0] != ';' {
			return params, s
		}
		s = strings.TrimLeft(s[1:], " \t")
		n := strings.IndexAny(s, "=;, \t")
		if n < 0 {
			n = len(s)
		}
		name := strings.ToLower(s[:n])
		s = strings.TrimLeft(s[n:], " \t")
		value := ""
		if strings.HasPrefix(s, "=") {
			value, s = linkValue(strings.TrimLeft(s[1:], " \t"))
		}
		if _, given := params[name]; !given && name != "" {
			params[name] = value
		}
	}
}

// linkValue reads a token or a quoted text.
func linkValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		n := strings.IndexAny(s, ";, \t")
		if n < 0 {
			n = len(s)
		}
		return s[:n], s[n:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == '"':
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

package probe

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Path is where a web server has its judge.
const Path = "/judge"

// PageParam and PageValue ask a judge for its page instead of its answer.
const (
	NonceParam = "nonce"
	PageParam  = "as"
	PageValue  = "page"
)

// Answer is what a judge says.
type Answer struct {
	Nonce string `json:"nonce"`
	// Peer is the address that the request came from, without a port.
	Peer string `json:"peer"`
	// Headers are those of the request, bounded. Of a header that may hold a
	// secret the value is Hidden.
	Headers map[string][]string `json:"headers"`
}

// Hidden stands for the value of a header that may hold a secret.
const Hidden = "[hidden]"

var nonces = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// GoodNonce says whether a judge repeats a nonce: 1 to 64 letters, digits, - and _.
func GoodNonce(s string) bool { return nonces.MatchString(s) }

// Bounds of the headers that are said back.
const (
	mostHeaders = 40
	mostName    = 64
	mostValue   = 200
	mostValues  = 4
)

// hidden are headers that a browser or a proxy fills with credentials. A page
// of another site could otherwise read a cookie here that it may not see.
var hidden = []string{"Authorization", "Cookie", "Proxy-Authorization"}

// Shown is what a judge says back of a request's headers.
func Shown(h http.Header) map[string][]string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	out := map[string][]string{}
	for _, name := range names[:min(len(names), mostHeaders)] {
		values := []string{Hidden}
		if !slices.Contains(hidden, http.CanonicalHeaderKey(name)) {
			values = nil
			for _, v := range h[name][:min(len(h[name]), mostValues)] {
				values = append(values, clip(v, mostValue))
			}
		}
		out[clip(name, mostName)] = values
	}
	return out
}

// Page is a judge's page for a nonce. Proxies that alter content alter pages
// before all else; each byte of this one is known.
func Page(nonce string) []byte {
	return []byte(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Judge</title><link rel="canonical" href="https://example.org/"></head>
<body>
<h1>Judge</h1>
<p>This page is the same for everybody, but for the word <code>` + nonce + `</code>.</p>
<p><a href="http://example.org/">A link</a>, <img alt="an image" src="http://example.org/image.png">
<script>var judge = "untouched";</script>
</body>
</html>
`)
}

func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

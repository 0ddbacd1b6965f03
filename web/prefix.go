package web

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// prefix is the path under which a proxy in front shows us, such as
// "/feedwarden"; "" is none. Nothing behind this file knows of it: routes, links
// and redirects are written as if we were at the root of a host, and are moved
// here, on the way in and on the way out. So none can be forgotten.
type prefix string

func newPrefix(basePath string) prefix { return prefix(strings.TrimSuffix(basePath, "/")) }

// enter takes the prefix off what comes in. A proxy may have taken it off, and
// who asks directly, such as a probe, need not know it: both are let through.
func (p prefix) enter(next http.Handler) http.Handler {
	if p == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner, ok := p.cut(r.URL.Path)
		raw, rawOK := p.cut(r.URL.RawPath)
		if !ok || r.URL.RawPath != "" && !rawOK {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, at(r, inner, raw))
	})
}

// back is a request as it was before enter, for who knows of the prefix.
func (p prefix) back(r *http.Request) *http.Request {
	if p == "" {
		return r
	}
	raw := r.URL.RawPath
	if raw != "" {
		raw = string(p) + raw
	}
	return at(r, string(p)+r.URL.Path, raw)
}

// at is the same request for another path.
func at(r *http.Request, path, raw string) *http.Request {
	moved := new(http.Request)
	*moved = *r
	moved.URL = new(url.URL)
	*moved.URL = *r.URL
	moved.URL.Path, moved.URL.RawPath = path, raw
	return moved
}

// cut takes the prefix off a path; the prefix alone is the root.
func (p prefix) cut(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, string(p))
	switch {
	case !ok || rest != "" && rest[0] != '/':
		return path, false
	case rest == "":
		return "/", true
	}
	return rest, true
}

// cookiePath is what a cookie of ours is for.
func (p prefix) cookiePath() string {
	if p == "" {
		return "/"
	}
	return string(p)
}

// leave moves the headers of an answer that name a path of ours.
func (p prefix) leave(h http.Header) {
	if p == "" {
		return
	}
	if to := h.Get("Location"); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") {
		h.Set("Location", string(p)+to)
	}
	for i, link := range h["Link"] {
		if strings.HasPrefix(link, "</") && !strings.HasPrefix(link, "<//") {
			h["Link"][i] = "<" + string(p) + link[1:]
		}
	}
}

// linking are the attributes by which a page of ours names a path.
var linking = []string{"href", "src", "action", "formaction", "data-events"}

// links moves the links of a page. Only the markup of a template can hold a
// quotation mark after an equals sign: in what is filled in, html/template
// writes it as a character reference.
func (p prefix) links(page []byte) []byte {
	if p == "" {
		return page
	}
	for _, name := range linking {
		at := []byte(" " + name + `="/`)
		var out []byte
		for {
			i := bytes.Index(page, at)
			if i < 0 {
				break
			}
			end := i + len(at)
			out = append(out, page[:end-1]...)
			if end >= len(page) || page[end] != '/' { // "//host/" is elsewhere
				out = append(out, p...)
			}
			page = page[end-1:]
		}
		page = append(out, page...)
	}
	return page
}

package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// accepts says whether an Accept header takes a media type (RFC 9110, 12.5.1):
// the most exact range that fits decides, and q=0 is a no. No header takes all, and
// so does one that names nothing.
func accepts(h http.Header, mediaType string) bool {
	values := h.Values("Accept")
	if strings.Trim(strings.Join(values, ""), " \t,") == "" {
		return true
	}
	kind, _, _ := strings.Cut(mediaType, "/")
	best, yes := -1, false
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		exact := -1
		switch name {
		case mediaType:
			exact = 2
		case kind + "/*":
			exact = 1
		case "*/*":
			exact = 0
		}
		if exact <= best {
			continue
		}
		best, yes = exact, true
		if q, ok := params["q"]; ok {
			if f, err := strconv.ParseFloat(q, 64); err == nil && f <= 0 {
				yes = false
			}
		}
	}
	return yes
}

// wantsPage says that a browser asks for a page, not a program for JSON: it
// names text/html, which */* does not.
func wantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/v1/") && strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

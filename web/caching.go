package web

import (
	"net/http"
	"strconv"
	"time"

	"feedwarden/jobs/feed"
)

// cacheName is what Cache-Status calls us (RFC 9211).
const cacheName = "Feedwarden"

// describe says how old an answer is, how long it is good, and where it came from.
func (s *Server) describe(h http.Header, ask content, got obtained) {
	h.Set("ETag", entityTag(ask, got.Meta))
	h.Set("Age", strconv.FormatInt(int64(got.Age/time.Second), 10))
	h["Cache-Control"] = s.freshFor(ask)
	h.Set("Cache-Status", cacheStatus(ask, got.State, got.Age, got.missed))
}

// entityTag names the very bytes: the version, when it came (numbers start again
// when the cache was emptied), and the form.
func entityTag(ask content, m feed.Meta) string {
	form := "items"
	if ask.raw {
		form = "raw" + strconv.Itoa(ask.page)
	}
	if !ask.since.IsZero() {
		form = "since" + strconv.FormatInt(ask.since.UnixNano(), 36)
	}
	return `"` + strconv.FormatInt(m.Version, 10) + "-" + m.ContentHash + "-" + strconv.FormatInt(m.FetchedAt.UnixMilli(), 36) + "-" + form + `"`
}

// freshFor is Cache-Control: the life of the newest version is its ttl, from
// which a cache takes Age. A version by number, and a feed without a ttl, is
// asked for each time; the validator makes that cheap. A shared cache would
// give what is private to those without a token.
func (s *Server) freshFor(ask content) []string {
	scope := "public, "
	if !s.access.open() {
		scope = "private, "
	}
	if ask.version > 0 || ask.feed.TTL <= 0 {
		return []string{scope + "no-cache"}
	}
	return []string{scope + "max-age=" + strconv.FormatInt(int64(ask.feed.TTL/time.Second), 10)}
}

// cacheStatus says hit or miss, and how much freshness is left (negative when stale).
func cacheStatus(ask content, state string, age time.Duration, missed bool) string {
	if ask.version > 0 {
		return cacheName + "; hit"
	}
	b := make([]byte, 0, 64)
	b = append(b, cacheName...)
	if missed {
		b = append(b, "; fwd=miss; stored"...)
	} else {
		b = append(b, "; hit"...)
	}
	if ask.feed.TTL > 0 {
		b = append(b, "; ttl="...)
		b = strconv.AppendInt(b, int64((ask.feed.TTL-age).Round(time.Second)/time.Second), 10)
	}
	b = append(b, "; detail="...)
	return string(append(b, state...))
}

package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// cacheName is what Cache-Status calls us (RFC 9211).
const cacheName = "Feedwarden"

// describe says how old an answer is, how long it is good, and where it came from.
func (s *Server) describe(h http.Header, ask content, got obtained) {
	h.Set("ETag", entityTag(ask, got))
	h.Set("Age", strconv.FormatInt(int64(got.Age/time.Second), 10))
	scope := "public"
	if !s.access.open() {
		scope = "private" // a shared cache would give it to those without a token
	}
	h.Set("Cache-Control", scope+", "+freshFor(ask))
	h.Set("Cache-Status", cacheStatus(ask, got))
}

// entityTag names the very bytes: the version, when it came (numbers start again
// when the cache was emptied), and the form.
func entityTag(ask content, got obtained) string {
	form := "items"
	if ask.raw {
		form = "raw" + strconv.Itoa(ask.page)
	}
	return fmt.Sprintf(`"%d-%s-%s-%s"`, got.Version.Version, got.ContentHash, strconv.FormatInt(got.FetchedAt.UnixMilli(), 36), form)
}

// freshFor is the life of the newest version: its ttl, from which a cache takes
// Age. A version by number, and a feed without a ttl, is asked for each time;
// the validator makes that cheap.
func freshFor(ask content) string {
	if ask.version > 0 || ask.feed.TTL <= 0 {
		return "no-cache"
	}
	return "max-age=" + strconv.FormatInt(int64(ask.feed.TTL/time.Second), 10)
}

// cacheStatus says hit or miss, and how much freshness is left (negative when stale).
func cacheStatus(ask content, got obtained) string {
	if ask.version > 0 {
		return cacheName + "; hit"
	}
	text := cacheName + "; hit"
	if got.missed {
		text = cacheName + "; fwd=miss; stored"
	}
	if ask.feed.TTL > 0 {
		text += "; ttl=" + strconv.FormatInt(int64((ask.feed.TTL-got.Age).Round(time.Second)/time.Second), 10)
	}
	return text + "; detail=" + got.State
}

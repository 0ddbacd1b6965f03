package web

import (
	"net/http"
	"strconv"
	"time"

	"feedwarden/jobs/feed"
)

// readNewest answers with the copy that this process holds: a hit costs no call
// to Redis and no encoding.
func (s *Server) readNewest(w http.ResponseWriter, r *http.Request, ask content) {
	c, state, missed, err := s.newest(w, r, ask)
	if err != nil {
		s.failRead(w, r, err)
		return
	}
	if ask.raw {
		s.answerRaw(w, r, ask, c, state, missed)
		return
	}
	if len(r.Header["Accept"]) > 0 && !accepts(r.Header, jsonType) {
		s.fail(w, r, notItems(jsonType))
		return
	}
	l, _ := c.Derive(newLabel).(*label)
	h := w.Header()
	h["Content-Type"] = jsonTypes
	h["Feedwarden-Version"], h["Etag"] = l.version, l.etag
	h["Cache-Control"] = s.freshFor(ask)
	s.age(h, ask, c.Head, state, missed)
	if r.Method != http.MethodGet || conditional(r.Header) {
		s.serve(w, r, c.Meta.FetchedAt, c.Body)
		return
	}
	h["Last-Modified"], h["Content-Length"], h["Accept-Ranges"] = l.modified, l.length, byteRanges
	if _, err := w.Write(c.Body); err != nil {
		s.log.Debug("client went away", "method", r.Method, "route", r.Pattern, "error", err)
	}
}

func (s *Server) answerRaw(w http.ResponseWriter, r *http.Request, ask content, c *feed.Copy, state string, missed bool) {
	body, kind, err := rawForm(c.Meta, c.Page(ask.page))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Feedwarden-Version", strconv.FormatInt(c.Meta.Version, 10))
	h.Set("ETag", entityTag(ask, c.Meta))
	h["Cache-Control"] = s.freshFor(ask)
	s.age(h, ask, c.Head, state, missed)
	linkNext(h, r, ask, len(c.Meta.Pages))
	s.serve(w, r, c.Meta.FetchedAt, body)
}

var (
	jsonTypes  = []string{jsonType}
	byteRanges = []string{"bytes"}
)

// conditional says that an answer depends on more than what is held.
func conditional(h http.Header) bool {
	for _, name := range [...]string{"If-None-Match", "If-Modified-Since", "Range", "If-Match", "If-Unmodified-Since"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// label is what the headers of a copy say, whenever it is given. Nobody changes
// these slices.
type label struct{ version, etag, modified, length []string }

func newLabel(c *feed.Copy) any {
	return &label{
		version:  []string{strconv.FormatInt(c.Meta.Version, 10)},
		etag:     []string{entityTag(content{}, c.Meta)},
		modified: []string{c.Meta.FetchedAt.UTC().Format(http.TimeFormat)},
		length:   []string{strconv.Itoa(len(c.Body))},
	}
}

// age says how old an answer is and where it came from.
func (s *Server) age(h http.Header, ask content, head feed.Head, state string, missed bool) {
	age := head.Age(time.Now())
	both := make([]string, 2) // one allocation for two headers
	both[0] = strconv.FormatInt(int64(age/time.Second), 10)
	both[1] = cacheStatus(ask, state, age, missed)
	h["Age"], h["Cache-Status"] = both[:1:1], both[1:2:2]
}

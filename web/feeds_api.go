package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"feedwarden/jobs"
	"feedwarden/jobs/source"
)

// maxWait bounds how long a reader may wait for a feed that was never fetched.
const maxWait = time.Minute

func (s *Server) listFeeds(w http.ResponseWriter, r *http.Request) {
	if _, err := readQuery(r); err != nil {
		s.fail(w, r, err)
		return
	}
	views, err := s.shots.feeds(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, map[string][]FeedView{"feeds": views})
}

// content asks for one version of a feed, in one form.
type content struct {
	feed    jobs.Feed
	raw     bool
	page    int   // of the raw answer
	version int64 // 0: the newest
	wait    time.Duration
}

func (s *Server) readFeed(w http.ResponseWriter, r *http.Request) {
	ask, err := s.asked(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.obtain(w, r, ask)
	if err != nil {
		if problemOf(err).Code == "feed-empty" {
			w.Header().Set("Cache-Status", cacheName+"; fwd=miss")
		}
		s.fail(w, r, err)
		return
	}
	body, kind, err := form(ask, got)
	if err == nil && !ask.raw && !accepts(r.Header, kind) {
		err = problem(http.StatusNotAcceptable, "not-acceptable", "items are given as "+kind+" alone; ?as=raw gives what the upstream sent")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Feedwarden-Version", strconv.FormatInt(got.Version.Version, 10))
	s.describe(h, ask, got)
	if ask.raw && ask.page < len(got.Pages) {
		v := r.URL.Query()
		v.Set("page", strconv.Itoa(ask.page+1))
		h.Set("Link", `<`+r.URL.EscapedPath()+"?"+v.Encode()+`>; rel="next"`)
	}
	// It knows validators, ranges and HEAD; Last-Modified is when the version came.
	http.ServeContent(w, r, "", got.FetchedAt, bytes.NewReader(body))
}

// form is a version's bytes and their type: one page as the upstream sent it,
// or its items.
func form(ask content, got obtained) (body []byte, kind string, err error) {
	if !ask.raw {
		body, err = itemsJSON(ask.feed.Name, got)
		return body, jsonType, err
	}
	if body = got.Page(ask.page); body == nil {
		return nil, "", problem(http.StatusNotFound, "unknown-page", fmt.Sprintf("version %d has %d pages", got.Version.Version, len(got.Pages)))
	}
	if kind = got.ContentType; kind == "" {
		kind = "application/octet-stream"
	}
	return body, kind, nil
}

func (s *Server) asked(r *http.Request) (content, error) {
	q, err := readQuery(r, "as", "page", "version", "wait")
	if err != nil {
		return content{}, err
	}
	f, err := s.p.Jobs.Feed(r.PathValue("name"))
	if err != nil {
		return content{}, err
	}
	c := content{feed: f}
	switch q["as"] {
	case "", "items":
	case "raw":
		c.raw = true
	default:
		return c, badQuery(fmt.Sprintf("as %q: it is items or raw", q["as"]))
	}
	if _, ok := q["page"]; ok && !c.raw {
		return c, badQuery("page is for as=raw: items are never paged")
	}
	if c.page, err = q.number("page", 1, 1<<20); err != nil {
		return c, err
	}
	n, err := q.number("version", 0, 1<<50)
	if err != nil {
		return c, err
	}
	c.version = int64(n)
	c.wait, err = q.duration("wait", maxWait)
	return c, err
}

// obtained is a version, and how it was come by.
type obtained struct {
	jobs.Read
	missed bool // it was fetched for this reader
}

// obtain reads the newest version, which asks for a refresh where it is stale,
// or an older one as it was kept.
func (s *Server) obtain(w http.ResponseWriter, r *http.Request, ask content) (obtained, error) {
	ctx := r.Context()
	if ask.version > 0 {
		v, err := s.p.Feeds.Get(ctx, ask.feed.Name, ask.version)
		return obtained{Read: jobs.Read{Version: v, Age: max(time.Since(v.FetchedAt), 0)}}, err
	}
	head, err := s.p.Feeds.Head(ctx, ask.feed.Name)
	if err != nil {
		return obtained{}, err
	}
	if head.Empty() && ask.wait > 0 {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(ask.wait + s.pace.body))
		_ = rc.SetWriteDeadline(time.Now().Add(ask.wait + s.pace.write))
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.stopping, cancel)() //nolint:contextcheck // the server's own end, beside the request's
	}
	read, err := s.p.Jobs.Read(ctx, ask.feed.Name, nil, ask.wait)
	if err != nil && s.stopping.Err() != nil {
		err = &jobs.NotReadyError{Feed: ask.feed.Name, RetryAfter: time.Second, Reason: "this server is stopping"}
	}
	return obtained{Read: read, missed: head.Empty()}, err
}

// feedContent is a version's items as JSON. Nothing in it changes while the
// version is the newest, so its ETag is a strong one.
type feedContent struct {
	Feed      string        `json:"feed"`
	Version   int64         `json:"version"`
	FetchedAt time.Time     `json:"fetched_at"`
	Items     []source.Item `json:"items"`
}

func itemsJSON(name string, got obtained) ([]byte, error) {
	c := feedContent{Feed: name, Version: got.Version.Version, FetchedAt: got.FetchedAt.UTC(), Items: got.Items}
	if c.Items == nil {
		c.Items = []source.Item{}
	}
	for i := range c.Items {
		it := &c.Items[i]
		it.FirstSeen = it.FirstSeen.UTC()
		if it.Published != nil {
			it.Published = instant(*it.Published)
		}
		if it.Fields == nil {
			it.Fields = map[string]any{}
		}
	}
	return encode(c)
}

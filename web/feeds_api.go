package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"feedwarden/jobs"
	"feedwarden/jobs/feed"
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
	since   time.Time
	wait    time.Duration
}

// newest says that the newest version is asked for, whole.
func (c content) newest() bool { return c.version == 0 && c.since.IsZero() }

func (s *Server) readFeed(w http.ResponseWriter, r *http.Request) {
	ask, err := s.asked(r)
	if err == nil {
		err = s.noteReader(r, ask.feed.Name) //nolint:contextcheck // what it notes is written later, for many readers
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if ask.newest() {
		s.readNewest(w, r, ask)
		return
	}
	got, err := s.obtain(w, r, ask)
	if err != nil {
		s.failRead(w, r, err)
		return
	}
	body, kind, err := form(ask, got)
	if err == nil && !ask.raw && !accepts(r.Header, kind) {
		err = notItems(kind)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Feedwarden-Version", strconv.FormatInt(got.Version.Version, 10))
	s.describe(h, ask, got)
	linkNext(h, r, ask, len(got.Pages))
	// It knows validators, ranges and HEAD; Last-Modified is when the version came.
	s.serve(w, r, got.FetchedAt, body)
}

// failRead answers an error of a read; one that found nothing is a miss.
func (s *Server) failRead(w http.ResponseWriter, r *http.Request, err error) {
	if problemOf(err).Code == "feed-empty" {
		w.Header().Set("Cache-Status", cacheName+"; fwd=miss")
	}
	s.fail(w, r, err)
}

func notItems(kind string) error {
	return problem(http.StatusNotAcceptable, "not-acceptable", "items are given as "+kind+" alone; ?as=raw gives what the upstream sent")
}

// linkNext points from a page of a raw answer to the next.
func linkNext(h http.Header, r *http.Request, ask content, pages int) {
	if ask.raw && ask.page < pages {
		v := r.URL.Query()
		v.Set("page", strconv.Itoa(ask.page+1))
		h.Set("Link", `<`+r.URL.EscapedPath()+"?"+v.Encode()+`>; rel="next"`)
	}
}

// noteReader remembers who reads what, for warm-up.
func (s *Server) noteReader(r *http.Request, feed string) error {
	values := r.Header["Feedwarden-Client"]
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return problem(http.StatusBadRequest, "invalid-client", "Feedwarden-Client stands more than once")
	}
	if err := jobs.CheckClient(values[0]); err != nil {
		return err
	}
	s.p.Jobs.Note(values[0], feed)
	return nil
}

// form is a version's bytes and their type: one page as the upstream sent it,
// or its items.
func form(ask content, got obtained) (body []byte, kind string, err error) {
	if !ask.raw {
		v := got.Version
		if !ask.since.IsZero() {
			v.Items = feed.NewSince(v.Items, ask.since)
		}
		body, err = itemsJSON(ask.feed.Name, v)
		return body, jsonType, err
	}
	return rawForm(got.Meta, got.Page(ask.page))
}

func rawForm(m feed.Meta, page []byte) ([]byte, string, error) {
	if page == nil {
		return nil, "", problem(http.StatusNotFound, "unknown-page", fmt.Sprintf("version %d has %d pages", m.Version, len(m.Pages)))
	}
	kind := m.ContentType
	if kind == "" {
		kind = "application/octet-stream"
	}
	return page, kind, nil
}

func (s *Server) asked(r *http.Request) (content, error) {
	f, err := s.p.Jobs.Feed(r.PathValue("name"))
	if err != nil {
		return content{}, err
	}
	c := content{feed: f, page: 1}
	if r.URL.RawQuery == "" {
		return c, nil
	}
	q, err := readQuery(r, "as", "page", "version", "since", "wait")
	if err != nil {
		return content{}, err
	}
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
	if text := q["since"]; text != "" {
		if c.since, err = time.Parse(time.RFC3339, text); err != nil {
			return c, badQuery(fmt.Sprintf("since %q: an instant such as 2026-11-30T08:00:00Z is wanted", text))
		}
		if c.raw {
			return c, badQuery("since is for items: a raw answer is given whole")
		}
	}
	c.wait, err = q.duration("wait", maxWait)
	return c, err
}

// obtained is a version, and how it was come by.
type obtained struct {
	jobs.Read
	missed bool // it was fetched for this reader
}

// obtain reads a version by its number, as it was kept, or the whole of the
// newest one.
func (s *Server) obtain(w http.ResponseWriter, r *http.Request, ask content) (obtained, error) {
	ctx := r.Context()
	if ask.version > 0 {
		v, err := s.p.Feeds.Get(ctx, ask.feed.Name, ask.version)
		return obtained{Read: jobs.Read{Version: v, Age: max(time.Since(v.FetchedAt), 0)}}, err
	}
	c, state, missed, err := s.newest(w, r, ask)
	if err != nil {
		return obtained{}, err
	}
	v, err := s.p.Feeds.Get(ctx, ask.feed.Name, c.Head.Version)
	if errors.Is(err, feed.ErrNoVersion) { // a short history: there is a newer one
		v, err = s.p.Feeds.Get(ctx, ask.feed.Name, 0)
	}
	return obtained{Read: jobs.Read{Version: v, Head: c.Head, State: state, Age: c.Head.Age(time.Now())}, missed: missed}, err
}

// newest gives the newest version as this process holds it, waits where there
// is none, and asks for a refresh where it is stale: once, for all who read it.
func (s *Server) newest(w http.ResponseWriter, r *http.Request, ask content) (c *feed.Copy, state string, missed bool, err error) {
	name := ask.feed.Name
	c, err = s.copies.Get(r.Context(), name)
	if errors.Is(err, feed.ErrNoVersion) {
		missed = true
		if err = s.await(w, r, ask); err == nil {
			c, err = s.copies.Get(r.Context(), name)
		}
		if errors.Is(err, feed.ErrNoVersion) {
			err = &jobs.NotReadyError{Feed: name, RetryAfter: time.Second, Reason: "its version was lost as soon as it came"}
		}
	}
	if err != nil {
		return nil, "", missed, err
	}
	state = c.Head.State(time.Now(), ask.feed.TTL)
	if state != "stale" {
		return c, state, missed, nil
	}
	if c.Ask() {
		if state = s.p.Jobs.Freshen(r.Context(), ask.feed, nil, c.Head); state == "updating" {
			c.Asked()
		}
	} else if c.Updating() {
		state = "updating"
	}
	return c, state, missed, nil
}

// await waits for a feed's first version.
func (s *Server) await(w http.ResponseWriter, r *http.Request, ask content) error {
	ctx := r.Context()
	if ask.wait > 0 {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(ask.wait + s.pace.body))
		_ = rc.SetWriteDeadline(time.Now().Add(ask.wait + s.pace.write))
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.stopping, cancel)() //nolint:contextcheck // the server's own end, beside the request's
	}
	err := s.p.Jobs.Await(ctx, ask.feed, ask.wait)
	if err != nil && s.stopping.Err() != nil {
		err = &jobs.NotReadyError{Feed: ask.feed.Name, RetryAfter: time.Second, Reason: "this server is stopping"}
	}
	return err
}

// feedContent is a version's items as JSON. Nothing in it changes while the
// version is the newest, so its ETag is a strong one.
type feedContent struct {
	Feed      string        `json:"feed"`
	Version   int64         `json:"version"`
	FetchedAt time.Time     `json:"fetched_at"`
	Items     []source.Item `json:"items"`
}

func itemsJSON(name string, v feed.Version) ([]byte, error) {
	c := feedContent{Feed: name, Version: v.Version, FetchedAt: v.FetchedAt.UTC(), Items: v.Items}
	if c.Items == nil {
		c.Items = []source.Item{}
	}
	for i := range c.Items {
		tidy(&c.Items[i])
	}
	return encode(c)
}

// tidy makes an item what the interface says: instants in UTC, fields an object.
func tidy(it *source.Item) {
	it.FirstSeen = it.FirstSeen.UTC()
	if it.Published != nil {
		it.Published = instant(*it.Published)
	}
	if it.Fields == nil {
		it.Fields = map[string]any{}
	}
}

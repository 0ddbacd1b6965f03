package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"feedwarden/jobs"
	"feedwarden/jobs/feed"
)

// maxPut bounds the content of a push feed.
const maxPut = 16 << 20

// putTypes are the media types that a push feed takes; none at all is known by
// the content.
var putTypes = []string{
	jsonType, ndjsonType, "application/ndjson", "application/jsonl", "application/feed+json", "application/rss+xml",
	"application/atom+xml", "application/rdf+xml", "application/xml", "text/xml", "application/octet-stream",
}

// putFeed stores content in a push feed: 201 for its first version, else 200.
func (s *Server) putFeed(w http.ResponseWriter, r *http.Request) {
	p, f, err := s.readPut(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.p.Jobs.Push(r.Context(), f.Name, p)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	// A reader of this instance who comes after this sees it.
	s.copies.Doubt(f.Name)
	if v, err := s.p.Feeds.Meta(r.Context(), f.Name, got.Version); err == nil {
		w.Header().Set("ETag", entityTag(content{}, v))
	}
	status := http.StatusOK
	if got.First {
		status = http.StatusCreated
	}
	s.answer(w, r, status, got)
}

func (s *Server) readPut(w http.ResponseWriter, r *http.Request) (jobs.Put, jobs.Feed, error) {
	q, err := readQuery(r, "allow_empty")
	if err != nil {
		return jobs.Put{}, jobs.Feed{}, err
	}
	f, err := s.p.Jobs.Feed(r.PathValue("name"))
	if err != nil {
		return jobs.Put{}, f, err
	}
	if !f.Pushed() {
		return jobs.Put{}, f, &jobs.NotPushedError{Feed: f.Name, Source: f.Source.Kind}
	}
	p := jobs.Put{ContentType: r.Header.Get("Content-Type")}
	switch q["allow_empty"] {
	case "", "false":
	case "true":
		p.AllowEmpty = true
	default:
		return p, f, badQuery(fmt.Sprintf("allow_empty %q: it is true or false", q["allow_empty"]))
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return p, f, problem(http.StatusUnsupportedMediaType, "content-encoding", fmt.Sprintf("Content-Encoding %q: send the body as it is", e))
	}
	if r.Header.Get("Content-Range") != "" {
		return p, f, problem(http.StatusBadRequest, "content-range", "a part of the content was sent: the whole is wanted")
	}
	if p.ContentType != "" {
		name, _, err := mime.ParseMediaType(p.ContentType)
		if err != nil || !slices.Contains(putTypes, name) {
			return p, f, wrongType(w, p.ContentType, putTypes...)
		}
		if name == "application/octet-stream" {
			p.ContentType = ""
		}
	}
	if p.Onto, err = s.onto(r, f); err != nil {
		return p, f, err
	}
	p.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxPut))
	var tooBig *http.MaxBytesError
	if err != nil && !errors.As(err, &tooBig) {
		err = problem(http.StatusBadRequest, "body", "the body could not be read to its end")
	}
	return p, f, err
}

// onto reads If-Match and If-None-Match: * (RFC 9110, 13.1): which version the
// content is to follow; nil where none is asked for.
func (s *Server) onto(r *http.Request, f jobs.Feed) (*int64, error) {
	match, none := strings.Join(r.Header.Values("If-Match"), ","), strings.Join(r.Header.Values("If-None-Match"), ",")
	if match == "" && none == "" {
		return nil, nil //nolint:nilnil // no condition
	}
	if none != "" && strings.TrimSpace(none) != "*" {
		return nil, problem(http.StatusBadRequest, "if-none-match", "If-None-Match of a PUT is *: only where there is no version yet")
	}
	head, err := s.p.Feeds.Head(r.Context(), f.Name)
	if err != nil {
		return nil, err
	}
	if none != "" {
		if !head.Empty() {
			return nil, jobs.ErrMoved
		}
		return &head.Version, nil
	}
	if head.Empty() {
		return nil, jobs.ErrMoved
	}
	if strings.TrimSpace(match) == "*" {
		return &head.Version, nil
	}
	m, err := s.p.Feeds.Meta(r.Context(), f.Name, head.Version)
	if errors.Is(err, feed.ErrNoVersion) {
		return nil, jobs.ErrMoved
	}
	if err != nil {
		return nil, err
	}
	want := strings.TrimSuffix(entityTag(content{}, m), `items"`)
	for tag := range strings.SplitSeq(match, ",") {
		// The tag of any form of the version names it.
		if strings.HasPrefix(strings.TrimSpace(tag), want) {
			return &head.Version, nil
		}
	}
	return nil, jobs.ErrMoved
}

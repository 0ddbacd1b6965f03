package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"feedwarden/jobs"
)

// jobPage is a page of jobs.
type jobPage struct {
	Jobs []jobs.Job `json:"jobs"`
	Page int        `json:"page"`
	// Next is the next page's number; null where this one is not full.
	Next *int `json:"next"`
}

const (
	usualJobs = 100
	mostJobs  = 1000
	mostPages = 10_000
)

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) {
	q, err := readQuery(r, "feed", "state", "limit", "page")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	f := jobs.Filter{Feed: q["feed"], State: jobs.State(q["state"])}
	if f.State != "" && !slices.Contains(jobs.States, f.State) {
		s.fail(w, r, badQuery(fmt.Sprintf("state %q: it is one of %s", f.State, stateNames())))
		return
	}
	if f.Limit, err = q.number("limit", usualJobs, mostJobs); err == nil {
		f.Page, err = q.number("page", 1, mostPages)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.p.Jobs.List(r.Context(), f)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := jobPage{Jobs: list, Page: f.Page}
	if p.Jobs == nil {
		p.Jobs = []jobs.Job{}
	}
	if len(list) == f.Limit && f.Page < mostPages {
		next := f.Page + 1
		p.Next = &next
		v := r.URL.Query()
		v.Set("page", strconv.Itoa(next))
		w.Header().Set("Link", `<`+r.URL.Path+"?"+v.Encode()+`>; rel="next"`)
	}
	s.answer(w, r, http.StatusOK, p)
}

func stateNames() string {
	names := make([]string, len(jobs.States))
	for i, st := range jobs.States {
		names[i] = string(st)
	}
	return strings.Join(names, ", ")
}

func (s *Server) getJob(w http.ResponseWriter, r *http.Request) {
	j, err := s.p.Jobs.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if j.State.Ended() {
		s.copies.Doubt(j.Feed) // whoever polled reads the feed next, and expects what the job brought
	}
	s.answer(w, r, http.StatusOK, j)
}

// cancelJob answers 200 with the job that has ended, or 202 while its run is
// being told to stop.
func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request) {
	j, err := s.p.Jobs.Cancel(r.Context(), r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("job cancelled by hand", "job", j.ID, "feed", j.Feed, "by", whoAsks(r.Context()).Name)
	status := http.StatusOK
	if !j.State.Ended() {
		status = http.StatusAccepted
	}
	s.answer(w, r, status, j)
}

// postJobs takes one job as JSON, or many as NDJSON.
func (s *Server) postJobs(w http.ResponseWriter, r *http.Request) {
	name, err := contentType(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	switch {
	case name == ndjsonType && !accepts(r.Header, ndjsonType) || name == jsonType && !accepts(r.Header, jsonType):
		s.fail(w, r, problem(http.StatusNotAcceptable, "not-acceptable", "the answer is given as "+name+" alone"))
	case name == ndjsonType:
		s.postMany(w, unhurried(r))
	case name == jsonType:
		s.postOne(w, r)
	default:
		s.fail(w, r, wrongType(w, name, jsonType, ndjsonType))
	}
}

func (s *Server) postOne(w http.ResponseWriter, r *http.Request) {
	b, err := readAll(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	j, err := s.enqueue(r.Context(), b)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if d := deedOf(r.Context()); d != nil {
		d.object = j.Feed
	}
	w.Header().Set("Location", "/v1/jobs/"+url.PathEscape(j.ID))
	s.answer(w, r, http.StatusAccepted, j)
}

// enqueue does one JSON object.
func (s *Server) enqueue(ctx context.Context, b []byte) (jobs.Job, error) {
	req, err := jobs.DecodeRequest(b)
	if err != nil {
		return jobs.Job{}, err
	}
	spec, err := req.Spec()
	if err != nil {
		return jobs.Job{}, err
	}
	return s.p.Jobs.Enqueue(ctx, spec)
}

package web

import (
	"net/http"

	"feedwarden/jobs"
)

// warm refreshes what a client usually reads, before it asks.
func (s *Server) warm(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Client string `json:"client"`
	}
	if _, err := readQuery(r); err != nil {
		s.fail(w, r, err)
		return
	}
	if err := readObject(w, r, &ask); err != nil {
		s.fail(w, r, err)
		return
	}
	feeds, err := s.p.Jobs.Warm(r.Context(), ask.Client)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusAccepted, struct {
		Client string        `json:"client"`
		Feeds  []jobs.Warmed `json:"feeds"`
	}{ask.Client, feeds})
}

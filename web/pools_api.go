package web

import (
	"net/http"
)

func (s *Server) listPools(w http.ResponseWriter, r *http.Request) {
	if _, err := readQuery(r); err != nil {
		s.fail(w, r, err)
		return
	}
	views := []Pool{}
	for _, name := range s.p.Pools.Names() {
		st, err := s.p.Pools.State(r.Context(), name)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		views = append(views, PoolView(st))
	}
	s.answer(w, r, http.StatusOK, map[string][]Pool{"pools": views})
}

// poolDetail is a pool with its endpoints.
type poolDetail struct {
	Pool
	Endpoints []Endpoint `json:"endpoints"`
}

func (s *Server) getPool(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	st, err := s.p.Pools.State(r.Context(), name)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.p.Pools.List(r.Context(), name)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	d := poolDetail{Pool: PoolView(st), Endpoints: make([]Endpoint, len(list))}
	for i, e := range list {
		d.Endpoints[i] = EndpointView(e)
	}
	s.answer(w, r, http.StatusOK, d)
}

package web

import (
	"fmt"
	"net/http"
	"strconv"

	"feedwarden/quota"
)

func (s *Server) listQuotas(w http.ResponseWriter, r *http.Request) {
	if _, err := readQuery(r); err != nil {
		s.fail(w, r, err)
		return
	}
	views := []Quota{}
	for _, name := range s.p.Quotas.Names() {
		view, err := s.quota(r.Context(), name)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		views = append(views, view)
	}
	s.answer(w, r, http.StatusOK, map[string][]Quota{"quotas": views})
}

func (s *Server) getQuota(w http.ResponseWriter, r *http.Request) {
	view, err := s.quota(r.Context(), r.PathValue("name"))
	var points []quota.Point
	var shares []quota.Share
	if err == nil {
		points, shares, err = s.p.Quotas.Shares(r.Context(), view.Name)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	view.History, view.HistoryLabels = PointsView(points), SharesView(shares)
	s.answer(w, r, http.StatusOK, view)
}

// charging is the body of a charge.
type charging struct {
	ID       string `json:"id"`
	Cost     *int64 `json:"cost"`
	Priority string `json:"priority"` // scheduled (default) or interactive
	NoLine   bool   `json:"no_line"`
	Label    string `json:"label"` // for whom, as the quota's history tells
}

// charge answers 200 to a grant and 429 to a refusal, with the same body. The
// same ID again is the same charge.
func (s *Server) charge(w http.ResponseWriter, r *http.Request) {
	var body charging
	if err := readObject(w, r, &body); err != nil {
		s.fail(w, r, err)
		return
	}
	if body.Cost == nil {
		s.fail(w, r, problem(http.StatusBadRequest, "invalid-cost", "cost is missing: "+quota.ErrCost.Error()))
		return
	}
	class := quota.Scheduled
	switch body.Priority {
	case "", quota.Scheduled.String():
	case quota.Interactive.String():
		class = quota.Interactive
	default:
		s.fail(w, r, problem(http.StatusBadRequest, "invalid-priority", fmt.Sprintf("priority %q: it is scheduled or interactive", body.Priority)))
		return
	}
	d, err := s.p.Quotas.Charge(r.Context(), quota.Request{
		Quota: r.PathValue("name"), ID: body.ID, Cost: *body.Cost, Priority: class, NoLine: body.NoLine, Label: body.Label,
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	status := http.StatusOK
	if !d.Granted {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.FormatInt(max(ceilSeconds(d.RetryAfter), 1), 10))
	}
	s.answer(w, r, status, ChargeView(d))
}

func (s *Server) refund(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ID string `json:"id"`
	}
	if err := readObject(w, r, &body); err != nil {
		s.fail(w, r, err)
		return
	}
	n, err := s.p.Quotas.Refund(r.Context(), r.PathValue("name"), body.ID)
	if err == nil {
		// Units or a place: either may let the next in line go.
		err = s.p.Jobs.WakeLine(r.Context(), r.PathValue("name"))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, Refund{ID: body.ID, Restored: n})
}

package web

import (
	"net/http"
	"time"
)

type quotasView struct {
	frame
	Quotas  []quotaCard
	PlanErr string
	Pager   pager
}

// quotasPerPage bounds the charts on a page.
const quotasPerPage = 20

func (s *Server) quotasPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "page")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at, err := q.pageNumber()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	shot, ok := s.readableShot(w, r)
	if !ok {
		return
	}
	now := time.Now()
	v := quotasView{frame: s.frame(r, "quotas", "Quotas", now)}
	o := s.outlookOr(r, &v.PlanErr, now)
	v.Quotas, v.Pager = turn(shot.Quotas, at, quotasPerPage, "quotas", nil, func(p part[Quota]) quotaCard {
		c := newQuotaCard(p, now)
		c.forecast(p.View, o, now)
		return c
	})
	s.show(w, r, http.StatusOK, "quotas", v)
}

// outlookOr is the plan that viewers share, or an empty one and what to say.
func (s *Server) outlookOr(r *http.Request, fault *string, now time.Time) *outlook {
	o, err := s.shots.outlook.get(r.Context(), forecastAge)
	if err != nil {
		s.log.Warn("could not be read", "error", err)
		*fault = unreadable
		return &outlook{At: now}
	}
	return o
}

type quotaPageView struct {
	frame
	Quota   quotaCard
	Takers  table
	Use     chart
	HasUse  bool
	PlanErr string
	Starved []starvedRow
	Starve  int // all of them
	Running *Running
	Expiry  moment
	Late    [][2]string
	Snoozes [][2]string
	API     string
}

// starvedRow is a feed that this quota will keep from its ttl.
type starvedRow struct{ Feed, Link, Says string }

const starvedShown = 20

func (s *Server) quotaPage(w http.ResponseWriter, r *http.Request) {
	if _, err := pageQuery(r); err != nil {
		s.fail(w, r, err)
		return
	}
	view, err := s.quota(r.Context(), r.PathValue("name"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	now := time.Now()
	v := quotaPageView{frame: s.frame(r, "quotas", "Quota "+view.Name, now), Running: view.Running, API: "/v1/quotas/" + escape(view.Name)}
	o := s.outlookOr(r, &v.PlanErr, now)
	v.Quota = newQuotaCard(part[Quota]{Name: view.Name, View: view}, now)
	v.Quota.forecast(view, o, now)
	v.Takers = takersTable(view.Name, o)
	v.Use, v.HasUse = useChart(view, o)
	if o.Forecast != nil {
		for _, f := range o.Forecast.Starved {
			if f.Quota != view.Name || f.Because != "quota" {
				continue
			}
			if v.Starve++; v.Starve <= starvedShown {
				v.Starved = append(v.Starved, starvedRow{f.Feed, feedLink(f.Feed), "gets as old as " + span(f.WorstAge.Round(time.Second)) + ", its ttl is " + span(f.TTL)})
			}
		}
	}
	if view.Running != nil {
		v.Expiry = relative(view.Running.NextExpiryAt, now, "none is held")
	}
	v.Late, v.Snoozes = steps(view.Lateness, " s"), steps(view.Snoozes, "")
	s.show(w, r, http.StatusOK, "quota", v)
}

// forecast adds what is to come.
func (c *quotaCard) forecast(q Quota, o *outlook, now time.Time) {
	if c.Fault != "" {
		return
	}
	c.Lasting, c.LastingTone = o.lasting(c.Name, now)
	c.Chart, c.HasChart = quotaChart(q, o)
}

// steps are a histogram's own counts, step by step, without the empty ones.
func steps(h Histogram, unit string) [][2]string {
	var out [][2]string
	var below int64
	for _, b := range h.Buckets {
		n := b.Count - below
		below = b.Count
		if n == 0 {
			continue
		}
		label := "more"
		if b.UpTo != nil {
			label = "up to " + short3(*b.UpTo) + unit
			if often := []string{"never", "once", "twice"}; unit == "" && *b.UpTo < float64(len(often)) {
				label = often[int(*b.UpTo)]
			}
		}
		out = append(out, [2]string{label, grouped(n)})
	}
	return out
}

package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"feedwarden/internal/units"
)

func (s *Server) listSchedules(w http.ResponseWriter, r *http.Request) {
	q, err := readQuery(r, "ahead")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	span, err := q.duration("ahead", mostAheadSpan)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := scheduleList{}
	if list.Schedules, err = s.schedules(r.Context()); err == nil && span > 0 {
		list.plan, err = s.planAhead(r.Context(), list.Schedules, span)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, list)
}

func (s *Server) schedules(ctx context.Context) ([]ScheduleView, error) {
	if s.p.Schedules == nil {
		return []ScheduleView{}, nil
	}
	views, err := s.p.Schedules.List(ctx)
	if views == nil {
		views = []ScheduleView{}
	}
	return views, err
}

// pausing is the body of a pause; without one, a pause lasts until a resume.
type pausing struct {
	For   string `json:"for"`   // a duration
	Until string `json:"until"` // or an instant, RFC 3339
}

func (p pausing) end(now time.Time) (time.Time, error) {
	bad := func(format string, args ...any) (time.Time, error) {
		return time.Time{}, problem(http.StatusBadRequest, "invalid-pause", fmt.Sprintf(format, args...))
	}
	switch {
	case p.For != "" && p.Until != "":
		return bad("both for and until: one of them says when the pause ends")
	case p.For != "":
		d, err := units.ParseDuration(p.For)
		if err != nil || d <= 0 {
			return bad("for %q: a duration such as 30m or 2d is wanted", p.For)
		}
		return now.Add(d), nil
	case p.Until != "":
		t, err := time.Parse(time.RFC3339, p.Until)
		if err != nil || !t.After(now) {
			return bad("until %q: an instant to come is wanted, such as 2026-11-30T08:00:00Z", p.Until)
		}
		return t, nil
	}
	return time.Time{}, nil
}

func (s *Server) pauseSchedule(w http.ResponseWriter, r *http.Request) {
	var body pausing
	if err := readOptional(w, r, &body); err != nil {
		s.fail(w, r, err)
		return
	}
	until, err := body.end(time.Now())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.onSchedule(w, r, "pause", func(ctx context.Context, name, who string) error {
		return s.p.Schedules.Pause(ctx, name, who, until)
	})
}

func (s *Server) resumeSchedule(w http.ResponseWriter, r *http.Request) {
	var none struct{}
	if err := readOptional(w, r, &none); err != nil {
		s.fail(w, r, err)
		return
	}
	s.onSchedule(w, r, "resume", func(ctx context.Context, name, who string) error {
		return s.p.Schedules.Resume(ctx, name, who)
	})
}

// onSchedule does something to a schedule and answers what it is then.
func (s *Server) onSchedule(w http.ResponseWriter, r *http.Request, what string, do func(ctx context.Context, name, who string) error) {
	name := r.PathValue("name")
	if s.p.Schedules == nil {
		s.fail(w, r, ErrUnknownSchedule)
		return
	}
	me := whoAsks(r.Context()).Name
	if err := do(r.Context(), name, me); err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("schedule changed by hand", "schedule", name, "what", what, "by", me)
	views, err := s.schedules(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	for _, v := range views {
		if v.Name == name {
			s.answer(w, r, http.StatusOK, v)
			return
		}
	}
	s.fail(w, r, ErrUnknownSchedule)
}

// triggered is the answer to a trigger. The ID is the request's: there is no job
// to point to before a scheduler has made it.
type triggered struct {
	Schedule string `json:"schedule"`
	ID       string `json:"id"`
}

func (s *Server) triggerSchedule(w http.ResponseWriter, r *http.Request) {
	var none struct{}
	if err := readOptional(w, r, &none); err != nil {
		s.fail(w, r, err)
		return
	}
	name := r.PathValue("name")
	if s.p.Schedules == nil {
		s.fail(w, r, ErrUnknownSchedule)
		return
	}
	me := whoAsks(r.Context()).Name
	id, err := s.p.Schedules.Trigger(r.Context(), name, me)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("schedule changed by hand", "schedule", name, "what", "trigger", "id", id, "by", me)
	s.answer(w, r, http.StatusAccepted, triggered{Schedule: name, ID: id})
}

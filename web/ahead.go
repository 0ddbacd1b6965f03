package web

import (
	"context"
	"time"
)

// Planner is a Schedules that knows what is to come.
type Planner interface {
	// Ahead gives the ticks of the next span, the earliest first, at most so
	// many; more says that there are others. It need not know of pauses.
	Ahead(ctx context.Context, span time.Duration, most int) (ticks []Upcoming, more bool, err error)
}

// Upcoming is one tick to come.
type Upcoming struct {
	Schedule string    `json:"schedule"`
	Feed     string    `json:"feed"`
	At       time.Time `json:"at"`      // nominal instant
	FireAt   time.Time `json:"fire_at"` // At with the schedule's phase and jitter
}

const (
	mostAheadSpan  = 7 * 24 * time.Hour
	mostAheadTicks = 5000
)

// scheduleList is the answer to a list; a plan comes with it where it is asked for.
type scheduleList struct {
	Schedules []ScheduleView `json:"schedules"`
	*plan
}

type plan struct {
	Ahead     []Upcoming `json:"ahead"`
	AheadMore bool       `json:"ahead_more"` // there are more ticks than are given
}

// planAhead is the ticks of the next span that no pause holds back.
func (s *Server) planAhead(ctx context.Context, views []ScheduleView, span time.Duration) (*plan, error) {
	p := &plan{Ahead: []Upcoming{}}
	planner, ok := s.p.Schedules.(Planner)
	if !ok {
		return p, nil
	}
	ticks, more, err := planner.Ahead(ctx, span, mostAheadTicks)
	if err != nil {
		return nil, err
	}
	p.AheadMore = more
	paused := map[string]*time.Time{}
	for _, v := range views {
		if v.State == "paused" {
			paused[v.Name] = v.PausedUntil
		}
	}
	for _, t := range ticks {
		if until, ok := paused[t.Schedule]; !ok || until != nil && !t.At.Before(*until) {
			p.Ahead = append(p.Ahead, t)
		}
	}
	return p, nil
}

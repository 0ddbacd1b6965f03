package web

import (
	"context"
	"testing"
	"time"
)

// plannedSchedules is a fake that plans a tick of every schedule each hour.
type plannedSchedules struct {
	*fakeSchedules
	from time.Time
}

func (f plannedSchedules) Ahead(ctx context.Context, span time.Duration, most int) (ticks []Upcoming, more bool, err error) {
	views, err := f.List(ctx)
	for at := f.from; at.Before(f.from.Add(span)); at = at.Add(time.Hour) {
		for _, v := range views {
			if len(ticks) == most {
				return ticks, true, err
			}
			ticks = append(ticks, Upcoming{Schedule: v.Name, Feed: v.Feed, At: at, FireAt: at})
		}
	}
	return ticks, false, err
}

func TestSchedulesPlanAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type answer struct {
		Schedules []ScheduleView
		Ahead     []Upcoming
		AheadMore bool `json:"ahead_more"`
	}
	if a := decode[map[string]any](w, w.get("/v1/schedules")); len(a) != 1 {
		t.Errorf("not asked for a plan: %v", a)
	}
	if a := decode[answer](w, w.get("/v1/schedules?ahead=24h")); len(a.Schedules) != 2 || a.Ahead == nil || len(a.Ahead) != 0 {
		t.Errorf("a scheduler that cannot plan: %+v", a)
	}
	from := time.Now().Truncate(time.Second).Add(time.Minute)
	w.server.p.Schedules = plannedSchedules{w.schedules, from}
	if a := decode[answer](w, w.get("/v1/schedules?ahead=24h")); len(a.Ahead) != 48 || a.AheadMore || a.Ahead[1].Schedule != "trending-bd" || !a.Ahead[2].At.Equal(from.Add(time.Hour)) {
		t.Errorf("%+v", a)
	}
	// A pause takes its ticks out, until it ends.
	if err := w.schedules.Pause(t.Context(), "news", "me", from.Add(4*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if a := decode[answer](w, w.get("/v1/schedules?ahead=24h")); len(a.Ahead) != 44 || a.Ahead[4].Schedule != "news" {
		t.Errorf("%d: %+v", len(a.Ahead), a.Ahead[:6])
	}
	w.wantProblem(w.get("/v1/schedules?ahead=soon"), 400, "invalid-query")
}

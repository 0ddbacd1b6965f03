package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// lane is the coming day of one schedule: a mark for each five minutes with a tick.
type lane struct {
	Path string // in a box of laneSteps by 10
	Says string
}

const (
	laneStep  = 5 * time.Minute
	laneSpan  = 24 * time.Hour
	laneSteps = int(laneSpan / laneStep)
	// laneTicks bounds the work for all lanes together.
	laneTicks = 300_000
	lanesAge  = time.Minute
)

// lanes are the coming ticks by schedule.
type lanes struct {
	From    time.Time
	Until   time.Time // the end of what was looked at
	Cut     bool
	by      map[string]*laneCount
	Planned bool
}

type laneCount struct {
	ticks       int
	first, last time.Time
	steps       [laneSteps]bool
}

func (n *snapshots) readLanes(ctx context.Context) (*lanes, error) {
	all := &lanes{From: time.Now(), by: map[string]*laneCount{}}
	all.Until = all.From.Add(laneSpan)
	planner, ok := n.server.p.Schedules.(Planner)
	if !ok {
		return all, nil
	}
	all.Planned = true
	ticks, more, err := planner.Ahead(ctx, laneSpan, laneTicks)
	if err != nil {
		return nil, err
	}
	if more && len(ticks) > 0 {
		all.Cut, all.Until = true, ticks[len(ticks)-1].FireAt
	}
	for _, t := range ticks {
		c := all.by[t.Schedule]
		if c == nil {
			c = &laneCount{first: t.FireAt}
			all.by[t.Schedule] = c
		}
		c.ticks, c.last = c.ticks+1, t.FireAt
		if i := int(t.FireAt.Sub(all.From) / laneStep); i >= 0 && i < laneSteps {
			c.steps[i] = true
		}
	}
	return all, nil
}

// lane draws a schedule's ticks, without those that a pause holds back.
func (l *lanes) lane(v ScheduleView) lane {
	c := l.by[v.Name]
	if c == nil {
		return lane{Says: "no tick in the next 24 h"}
	}
	from := 0
	if v.State == "paused" {
		if v.PausedUntil == nil {
			return lane{Says: "none until it is resumed"}
		}
		from = int(v.PausedUntil.Sub(l.From)/laneStep) + 1
	}
	var b strings.Builder
	for i := max(from, 0); i < laneSteps; i++ {
		if !c.steps[i] {
			continue
		}
		start := i
		for i+1 < laneSteps && c.steps[i+1] {
			i++
		}
		fmt.Fprintf(&b, "M%d 0h%dv10h-%dz", start, i-start+1, i-start+1)
	}
	says := counted(c.ticks, "tick")
	if from > 0 {
		says = "paused at first"
	}
	if l.Cut {
		says += " until " + l.Until.UTC().Format("15:04") + " UTC"
	}
	return lane{Path: b.String(), Says: says}
}

const schedulesPerPage = 50

type schedulesView struct {
	frame
	Query     string
	State     string
	States    []choice
	Schedules []scheduleRow
	Total     int
	Found     int
	Err       string
	Cut       string
	Axis      []string
	Pager     pager
}

var scheduleStates = []string{"active", "paused", "due", "late"}

func (s *Server) schedulesPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "q", "state", "page")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at, err := q.pageNumber()
	if err == nil && q["state"] != "" && !slices.Contains(scheduleStates, q["state"]) {
		err = badQuery(fmt.Sprintf("state %q: it is one of %s", q["state"], strings.Join(scheduleStates, ", ")))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	shot, ok := s.readableShot(w, r)
	if !ok {
		return
	}
	now := time.Now()
	v := schedulesView{frame: s.frame(r, "schedules", "Schedules", now), Query: q["q"], State: q["state"], Total: len(shot.Schedules)}
	if shot.SchedulesErr != nil {
		v.Err = unreadable
	}
	v.States = []choice{{Label: "any state", Chosen: q["state"] == ""}}
	for _, st := range scheduleStates {
		v.States = append(v.States, choice{Name: st, Label: st, Chosen: st == q["state"]})
	}
	ahead, err := s.shots.ahead.get(r.Context(), lanesAge)
	if err != nil {
		s.log.Warn("could not be read", "error", err)
		ahead = &lanes{From: now, by: map[string]*laneCount{}}
		v.Cut = "The coming ticks could not be read just now; the server's log says why."
	} else if ahead.Cut {
		v.Cut = "There are more ticks than are drawn: the lanes end at " + ahead.Until.UTC().Format("15:04") + " UTC."
	}
	for _, h := range []int{0, 6, 12, 18, 24} {
		text := "now"
		if h > 0 {
			text = ahead.From.UTC().Add(time.Duration(h) * time.Hour).Format("15:04")
		}
		v.Axis = append(v.Axis, text)
	}
	v.Axis[len(v.Axis)-1] += " UTC"
	found := slices.DeleteFunc(slices.Clone(shot.Schedules), func(f ScheduleView) bool {
		return !strings.Contains(strings.ToLower(f.Name), strings.ToLower(q["q"])) || !inScheduleState(f, q["state"])
	})
	v.Found = len(found)
	v.Schedules, v.Pager = turn(found, at, schedulesPerPage, "schedules", q.keep("q", "state"), func(f ScheduleView) scheduleRow {
		row := newScheduleRow(f, now)
		if ahead.Planned {
			row.Lane = ahead.lane(f)
		}
		return row
	})
	s.show(w, r, http.StatusOK, "schedules", v)
}

func inScheduleState(v ScheduleView, state string) bool {
	switch state {
	case "":
		return true
	case "late":
		return v.LatenessMS >= 1000
	}
	return v.State == state
}

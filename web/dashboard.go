package web

import (
	"net/http"
	"time"
)

// dashboardAge is how old a reading may be that several viewers share.
const dashboardAge = time.Second

// perPage is how many feeds, and how many schedules, a page shows.
const perPage = 100

// dashboardView is the one page that answers: are my feeds fresh, will the quota
// last, what is wrong?
type dashboardView struct {
	frame
	Headline string
	Away     bool
	Troubles []trouble
	Tiles    []tile

	Feeds     []feedRow
	FeedsErr  string
	FeedPager pager

	Quotas []quotaCard
	Pools  []poolCard

	Schedules     []scheduleRow
	SchedulesErr  string
	SchedulePager pager

	Jobs    []jobRow
	JobsErr string
}

// unreadable stands on a page where something could not be read; the log says why.
const unreadable = "This could not be read just now; the server's log says why."

func (s *Server) dashboard(w http.ResponseWriter, r *http.Request) {
	q, err := readQuery(r, "feeds", "schedules")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	feedsAt, err := q.number("feeds", 1, 1_000_000)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	schedulesAt, err := q.number("schedules", 1, 1_000_000)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	shot, err := s.shots.all.get(r.Context(), dashboardAge)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	now := time.Now()
	v := dashboardView{frame: s.frame(r, "Dashboard", now)}
	if shot.RedisErr != nil {
		v.Away, v.Headline = true, "Redis does not answer."
		v.Troubles = []trouble{{"bad", "Nothing can be shown until it does. This page tries again by itself."}}
		s.show(w, r, http.StatusServiceUnavailable, "dashboard", v)
		return
	}
	v.Headline, v.Troubles = headline(shot), troubles(shot)
	v.Tiles = tiles(shot)

	v.Feeds, v.FeedPager = turn(shot.Feeds, feedsAt, "feeds", func(f FeedView) feedRow { return newFeedRow(f, now) })
	if shot.FeedsErr != nil {
		v.FeedsErr = unreadable
	}
	for _, p := range shot.Quotas {
		v.Quotas = append(v.Quotas, newQuotaCard(p, now))
	}
	for _, p := range shot.Pools {
		v.Pools = append(v.Pools, s.newPoolCard(r.Context(), p, now))
	}
	v.Schedules, v.SchedulePager = turn(shot.Schedules, schedulesAt, "schedules", func(f ScheduleView) scheduleRow { return newScheduleRow(f, now) })
	if shot.SchedulesErr != nil {
		v.SchedulesErr = unreadable
	}
	recent, err := s.shots.recent.get(r.Context(), dashboardAge)
	if err != nil {
		s.log.Warn("could not be read", "error", err)
		v.JobsErr = unreadable
	}
	for _, j := range recent {
		v.Jobs = append(v.Jobs, newJobRow(j, now))
	}
	s.show(w, r, http.StatusOK, "dashboard", v)
}

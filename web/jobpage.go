package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"feedwarden/jobs"
)

const jobsPerPage = 50

type jobsView struct {
	frame
	Feed   string
	State  string
	States []choice
	Jobs   []jobRow
	Err    string
	Pager  pager
}

// jobsPage lists jobs; an ID leads to its job.
func (s *Server) jobsPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "feed", "state", "id", "page")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if q["id"] != "" {
		http.Redirect(w, r, jobLink(q["id"]), http.StatusSeeOther) //nolint:gosec // a path of ours, escaped
		return
	}
	at, err := q.number("page", 1, mostPages)
	f := jobs.Filter{Feed: q["feed"], State: jobs.State(q["state"]), Limit: jobsPerPage, Page: at}
	if err == nil && f.State != "" && !slices.Contains(jobs.States, f.State) {
		err = badQuery(fmt.Sprintf("state %q: it is one of %s", f.State, stateNames()))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	now := time.Now()
	v := jobsView{frame: s.frame(r, "jobs", "Jobs", now), Feed: q["feed"], State: q["state"], States: []choice{{Label: "any state", Chosen: q["state"] == ""}}}
	for _, st := range jobs.States {
		v.States = append(v.States, choice{Name: string(st), Label: string(st), Chosen: string(st) == q["state"]})
	}
	found, err := s.p.Jobs.List(r.Context(), f)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	for _, j := range found {
		v.Jobs = append(v.Jobs, newJobRow(j, now))
	}
	keep := q.keep("feed", "state")
	v.Pager = pager{Of: "jobs", Says: "page " + strconv.Itoa(at)}
	if at > 1 {
		v.Pager.Before = pageLink(keep, "page", strconv.Itoa(at-1))
	}
	if len(found) == jobsPerPage && at < mostPages {
		v.Pager.After = pageLink(keep, "page", strconv.Itoa(at+1))
	}
	s.show(w, r, http.StatusOK, "jobs", v)
}

type jobPageView struct {
	frame
	Job     jobRow
	Quota   string // the feed's; "" where it has none, or is no more in the config
	Known   bool   // its feed is in the config
	Next    moment
	Ended   moment
	Tick    moment
	Params  [][2]string
	Result  string
	Living  bool
	Snoozed bool
	API     string
}

func (s *Server) jobPage(w http.ResponseWriter, r *http.Request) {
	if _, err := pageQuery(r); err != nil {
		s.fail(w, r, err)
		return
	}
	j, err := s.p.Jobs.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	now := time.Now()
	v := jobPageView{
		frame: s.frame(r, "jobs", "Job "+j.ID, now), Job: newJobRow(j, now), Living: !j.State.Ended(), Snoozed: j.State == jobs.Snoozed,
		Next: relative(j.NextAt, now, "none"), Ended: relative(j.EndedAt, now, ""), API: "/v1/jobs/" + url.PathEscape(j.ID),
	}
	if f, err := s.p.Jobs.Feed(j.Feed); err == nil {
		v.Quota, v.Known = f.Quota, true
	}
	if j.Tick != nil {
		if t, err := time.Parse(time.RFC3339, *j.Tick); err == nil {
			v.Tick = relative(&t, now, "")
		}
	}
	for _, name := range sortedNames(j.Params) {
		v.Params = append(v.Params, [2]string{name, j.Params[name]})
	}
	if len(j.Result) > 0 {
		var pretty any
		if json.Unmarshal(j.Result, &pretty) == nil {
			v.Result = fieldText(pretty)
		}
	}
	s.show(w, r, http.StatusOK, "job", v)
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

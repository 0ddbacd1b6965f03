package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// feedsPerPage is how many feeds a page shows.
const feedsPerPage = 50

// feedStates are what a list can be narrowed to; failing is beside the others.
var feedStates = []string{"fresh", "stale", "updating", "empty", "failing", "paused", "waiting"}

type feedsView struct {
	frame
	Query  string
	State  string
	States []choice
	Feeds  []feedRow
	Total  int // of the config
	Found  int
	Err    string
	Pager  pager
}

// choice is one of a list, with how many there are of it.
type choice struct {
	Name, Label string
	Chosen      bool
}

func (s *Server) feedsPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "q", "state", "page")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at, err := q.pageNumber()
	if err == nil && q["state"] != "" && !slices.Contains(feedStates, q["state"]) {
		err = badQuery(fmt.Sprintf("state %q: it is one of %s", q["state"], strings.Join(feedStates, ", ")))
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
	v := feedsView{frame: s.frame(r, "feeds", "Feeds", now), Query: q["q"], State: q["state"], Total: len(shot.Feeds)}
	if shot.FeedsErr != nil {
		v.Err = unreadable
	}
	v.States = countChoices(shot.Feeds, q["state"])
	found := slices.DeleteFunc(slices.Clone(shot.Feeds), func(f FeedView) bool {
		return !hasState(f, q["state"]) || !strings.Contains(strings.ToLower(f.Name), strings.ToLower(q["q"]))
	})
	v.Found = len(found)
	v.Feeds, v.Pager = turn(found, at, feedsPerPage, "feeds", q.keep("q", "state"), func(f FeedView) feedRow { return newFeedRow(f, now) })
	s.show(w, r, http.StatusOK, "feeds", v)
}

func countChoices(feeds []FeedView, chosen string) []choice {
	out := []choice{{Label: "any state (" + grouped(int64(len(feeds))) + ")", Chosen: chosen == ""}}
	for _, st := range feedStates {
		n := 0
		for _, f := range feeds {
			if hasState(f, st) {
				n++
			}
		}
		out = append(out, choice{Name: st, Label: fmt.Sprintf("%s (%s)", st, grouped(int64(n))), Chosen: st == chosen})
	}
	return out
}

func hasState(f FeedView, state string) bool {
	switch state {
	case "":
		return true
	case "failing":
		return f.LastError != ""
	case "paused":
		return f.Paused != nil
	case "waiting":
		return f.WaitingFor != ""
	}
	return f.State == state
}

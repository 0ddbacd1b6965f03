package web

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"feedwarden/jobs/feed"
)

// diffView is what changed between two versions of a feed.
type diffView struct {
	From, To int64
	Counts   []poolCount
	Changes  []changeRow
	More     int // changes that are not shown
	Choices  []versionRow
}

type changeRow struct {
	What  string // came, went, rose, fell
	Says  string
	Title string
	URL   string
}

// changesShown bounds the changes on a page; the API gives them all.
const changesShown = 60

// readDiff compares two versions; by default the one that is shown with the one
// before it.
func (s *Server) readDiff(ctx context.Context, v feedPageView, from, to int64) (*diffView, error) {
	if to == 0 && v.Shown != nil {
		to = v.Shown.Version
	}
	a, b, err := s.p.Feeds.Pair(ctx, v.Feed.Name, from, to)
	if errors.Is(err, feed.ErrNoVersion) && from == 0 {
		return nil, nil // the oldest that is kept has none before it
	}
	if err != nil {
		return nil, err
	}
	d := &diffView{From: a.Version, To: b.Version, Choices: v.Versions}
	n := map[string]int{}
	for _, c := range feed.Diff(a.Items, b.Items) {
		if n[c.What]++; len(d.Changes) == changesShown {
			d.More++
			continue
		}
		item := newItemRow(c.Item, time.Now())
		d.Changes = append(d.Changes, changeRow{What: c.What, Says: changeWords(c), Title: item.Title, URL: item.URL})
	}
	for _, what := range []string{"came", "went", "rose", "fell"} {
		d.Counts = append(d.Counts, poolCount{Name: what, N: n[what]})
	}
	return d, nil
}

func changeWords(c feed.Change) string {
	switch {
	case c.From == 0:
		return "to place " + strconv.Itoa(c.To)
	case c.To == 0:
		return "from place " + strconv.Itoa(c.From)
	}
	return fmt.Sprintf("%d → %d", c.From, c.To)
}

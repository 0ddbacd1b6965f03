package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// feedPageView is one feed, and the items of one of its versions.
type feedPageView struct {
	frame
	Feed    feedRow
	API     string
	Plight  []trouble
	Nothing string // how it comes to its first version

	Shown    *shownVersion // nil while the feed is empty
	Items    []itemRow
	First    int
	Pager    pager
	Versions []versionRow
	Diff     *diffView
	Aside    []asideRow
}

type shownVersion struct {
	Version int64
	Says    string
	Lossy   bool
}

type versionRow struct {
	feed.Meta
	Link string
	Here bool
	Came moment
}

const itemsPerPage = 100

// feedPage shows a feed. Looking costs nothing: it asks for no refresh.
func (s *Server) feedPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "version", "page", "from", "to")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	version, err := q.number("version", 0, 1<<50)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at, err := q.pageNumber()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	from, err := q.number("from", 0, 1<<50)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	to, err := q.number("to", 0, 1<<50)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := s.readFeedPage(r, int64(version), at)
	if err == nil && len(v.Versions) > 1 {
		v.Diff, err = s.readDiff(r.Context(), v, int64(from), int64(to))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.show(w, r, http.StatusOK, "feed", v)
}

func (s *Server) readFeedPage(r *http.Request, version int64, at int) (feedPageView, error) {
	ctx, now := r.Context(), time.Now()
	f, err := s.p.Jobs.Feed(r.PathValue("name"))
	if err != nil {
		return feedPageView{}, err
	}
	head, err := s.p.Feeds.Head(ctx, f.Name)
	if err != nil {
		return feedPageView{}, err
	}
	s.copies.Saw(head)
	views := []FeedView{feedView(f, head, now)}
	withJobs(ctx, s.p.Jobs, []feed.Head{head}, views)
	if err := withSinks(ctx, s.p.Jobs, views); err != nil {
		return feedPageView{}, err
	}
	if shot, err := s.shots.all.get(ctx, sharedAge); err == nil {
		WithTicks(views, shot.Schedules)
	}
	view := views[0]
	v := feedPageView{frame: s.frame(r, "feeds", f.Name, now), Feed: newFeedRow(view, now), API: "/v1/feeds/" + escape(f.Name), Plight: plight(view, now), Nothing: nothingYet(view)}
	aside, err := s.p.Feeds.Asides(ctx, f.Name)
	if err != nil {
		return v, err
	}
	for i, a := range aside {
		v.Aside = append(v.Aside, newAsideRow(i, a, now))
	}
	if head.Empty() && version == 0 {
		return v, nil
	}
	got, err := s.p.Feeds.Get(ctx, f.Name, version)
	if errors.Is(err, feed.ErrNoVersion) && version == 0 {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Shown = &shownVersion{Version: got.Version, Lossy: got.Lossy,
		Says: fmt.Sprintf("%s, came %s", counted(len(got.Items), "item"), relative(instant(got.FetchedAt), now, "").Text)}
	keep := url.Values{}
	if version > 0 {
		keep.Set("version", strconv.FormatInt(version, 10))
	}
	v.Items, v.Pager = turn(got.Items, at, itemsPerPage, "items", keep, func(it source.Item) itemRow { return newItemRow(it, now) })
	v.First = 1
	versions, err := s.p.Feeds.Versions(ctx, f.Name)
	if err != nil {
		return v, err
	}
	for _, m := range versions {
		v.Versions = append(v.Versions, versionRow{Meta: m, Link: "?version=" + strconv.FormatInt(m.Version, 10), Here: m.Version == got.Version, Came: relative(instant(m.FetchedAt), now, "")})
	}
	return v, nil
}

// titleShown bounds what a page shows of a title, in bytes: it is a stranger's.
const titleShown = 400

// itemRow is an item on a page.
type itemRow struct {
	Rank       int
	Title      string
	URL        string // http or https, or ""
	Host       string
	Published  moment
	FirstSeen  moment
	Fields     []fieldRow
	FieldCount string
}

type fieldRow struct{ Name, Value string }

func newItemRow(it source.Item, now time.Time) itemRow {
	row := itemRow{Rank: it.Rank, Title: cutText(strings.TrimSpace(it.Title), titleShown), Published: relative(it.Published, now, ""), FirstSeen: relative(&it.FirstSeen, now, "unknown")}
	if row.Title == "" {
		row.Title = it.ID
	}
	// Sources keep only web links; a page trusts no one.
	if u, err := url.Parse(it.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		row.URL, row.Host = u.String(), u.Hostname()
	}
	for name, value := range it.Fields {
		if text := fieldText(value); text != "" {
			row.Fields = append(row.Fields, fieldRow{name, text})
		}
	}
	slices.SortFunc(row.Fields, func(a, b fieldRow) int { return strings.Compare(a.Name, b.Name) })
	row.FieldCount = counted(len(row.Fields), "field")
	return row
}

// fieldText is a field's value for a person, cut where it is long.
func fieldText(v any) string {
	const most = 600
	text := ""
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		text = v
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		text = string(b)
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}

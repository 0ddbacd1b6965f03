package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"feedwarden/jobs/feed"
)

// FeedVersion is one version that is kept, as programs see it.
type FeedVersion struct {
	Version   int64     `json:"version"`
	FetchedAt time.Time `json:"fetched_at"` // when it first came
	Hash      string    `json:"hash"`       // of its items: the same content has the same
	Items     int       `json:"items"`
	Pages     int       `json:"pages"` // of the raw answer
	Job       string    `json:"job"`   // "": it was put
	Lossy     bool      `json:"lossy"` // some bytes could not be read and were replaced
}

// VersionView is a version's meta as programs see it.
func VersionView(m feed.Meta) FeedVersion {
	return FeedVersion{Version: m.Version, FetchedAt: m.FetchedAt.UTC(), Hash: m.ContentHash, Items: m.Items, Pages: len(m.Pages), Job: m.Job, Lossy: m.Lossy}
}

// FeedDiff is what changed from one version to another.
type FeedDiff struct {
	Feed    string        `json:"feed"`
	From    FeedVersion   `json:"from"`
	To      FeedVersion   `json:"to"`
	Changes []feed.Change `json:"changes"`
}

func (s *Server) listVersions(w http.ResponseWriter, r *http.Request) {
	name, _, err := s.feedQuery(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	all, err := s.p.Feeds.Versions(r.Context(), name)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if len(all) > 0 {
		s.copies.Saw(feed.Head{Key: name, Version: all[0].Version})
	}
	out := make([]FeedVersion, 0, len(all))
	for _, m := range all {
		out = append(out, VersionView(m))
	}
	s.answer(w, r, http.StatusOK, map[string]any{"feed": name, "versions": out})
}

// diffFeed compares two versions: by default the newest with the one before.
func (s *Server) diffFeed(w http.ResponseWriter, r *http.Request) {
	name, q, err := s.feedQuery(r, "from", "to")
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
	a, b, err := s.p.Feeds.Pair(r.Context(), name, int64(from), int64(to))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	changes := feed.Diff(a.Items, b.Items)
	for i := range changes {
		tidy(&changes[i].Item)
	}
	s.answer(w, r, http.StatusOK, FeedDiff{Feed: name, From: VersionView(a.Meta), To: VersionView(b.Meta), Changes: changes})
}

// listAside gives the answers that were kept aside. Their bodies are strangers'
// bytes: here they stand in base64.
func (s *Server) listAside(w http.ResponseWriter, r *http.Request) {
	name, _, err := s.feedQuery(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	all, err := s.p.Feeds.Asides(r.Context(), name)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.answer(w, r, http.StatusOK, map[string]any{"feed": name, "aside": all})
}

// feedQuery reads a request about one feed.
func (s *Server) feedQuery(r *http.Request, known ...string) (string, query, error) {
	q, err := readQuery(r, known...)
	if err != nil {
		return "", nil, err
	}
	f, err := s.p.Jobs.Feed(r.PathValue("name"))
	return f.Name, q, err
}

// asideRow is an answer kept aside, on a page.
type asideRow struct {
	ID      int
	Kind    string
	Reason  string
	Type    string
	Job     string
	Came    moment
	Size    string
	Excerpt string
}

func newAsideRow(i int, a feed.Aside, now time.Time) asideRow {
	const most = 4 << 10
	text := []rune(string(a.Body[:min(len(a.Body), most)]))
	return asideRow{ID: i + 1, Kind: a.Kind, Reason: a.Reason, Type: a.Type, Job: a.Job, Came: relative(instant(a.At), now, ""),
		Size: fmt.Sprintf("%s bytes kept", strconv.Itoa(len(a.Body))), Excerpt: string(text)}
}

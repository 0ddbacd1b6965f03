package web

import (
	"net/http"
	"net/url"
	"time"
)

// frame is what the layout shows around every page.
type frame struct {
	Title    string
	Nav      string // the section that is shown
	Parts    string // what of the world is on the page, see parts
	Version  string
	AssetTag string
	Who      who
	Can      bool // may act
	Now      time.Time
	Refresh  int        // seconds; 0: the page stands still
	Still    bool       // it stands still though there is no script: somebody reads it, or fills in a form
	Turn     string     // to this page, standing still or not
	Here     string     // path and query, for forms that lead back
	Done     *auditLook // what the form has done that led here
}

// refreshWithout is how often a page comes anew where there is no script.
const refreshWithout = 15

// doneParam names the line of the audit that a page shows after a form.
const doneParam = "done"

// stillParam asks for a page that does not come anew.
const stillParam = "still"

// doneShown is how long after a deed its line is news.
const doneShown = 10 * time.Minute

func (s *Server) frame(r *http.Request, nav, title string, now time.Time) frame {
	me := whoAsks(r.Context())
	f := frame{
		Title: title, Nav: nav, Parts: nav, Version: s.cfg.Version, AssetTag: s.pages.tag, Who: me,
		Can: me.Role.rank() >= Write.rank(), Now: now, Refresh: refreshWithout,
	}
	q := r.URL.Query()
	id := q.Get(doneParam)
	q.Del(doneParam)
	f.Here = (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String()
	if f.Still = q.Has(stillParam); f.Still {
		q.Del(stillParam)
	} else {
		q.Set(stillParam, "yes")
	}
	f.Turn = (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String()
	if auditID(id) {
		if l, err := s.audit.line(r.Context(), id); err == nil && now.Sub(l.At) < doneShown {
			look := newAuditLook(l, now)
			f.Done = &look
		}
	}
	return f
}

// pageQuery reads a page's query: what the page knows, what a form left, and whether
// it is to stand still.
func pageQuery(r *http.Request, known ...string) (query, error) {
	return readQuery(r, append(known, doneParam, stillParam)...)
}

// pageNumber reads which page of a list is asked for.
func (q query) pageNumber() (int, error) { return q.number("page", 1, 1_000_000) }

// keep are the parameters that links within a page carry on.
func (q query) keep(names ...string) url.Values {
	v := url.Values{}
	for _, name := range names {
		if q[name] != "" {
			v.Set(name, q[name])
		}
	}
	return v
}

// button is a form that does something.
type button struct {
	Act, Label, Back string
	Fields           [][2]string
}

// newButton is for a template: an act's path, its label, where to go back to,
// and pairs of fields.
func newButton(act, label, back string, fields ...string) button {
	f := button{Act: act, Label: label, Back: back}
	for i := 0; i+1 < len(fields); i += 2 {
		f.Fields = append(f.Fields, [2]string{fields[i], fields[i+1]})
	}
	return f
}

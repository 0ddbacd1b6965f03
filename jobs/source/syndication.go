package source

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"feedwarden/jobs/fetch"
)

// syndication reads RSS, Atom and JSON Feed.
type syndication struct {
	c   Config
	url *url.URL
}

const syndicationAccept = "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.1"

// newSyndication reads URL, Params, Headers.
func newSyndication(c Config) (Source, error) {
	errs := unused(c, "url", "params", "headers", "ban")
	u, err := parseURL("url", c.URL)
	if err != nil {
		errs = append(errs, err)
	}
	if c.Pages < 0 || c.Pages > 1 {
		errs = append(errs, errOnePage)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &syndication{c, u}, nil
}

func (s *syndication) Host() string { return hostOf(s.url) }

// Request gives the GET for the one page.
func (s *syndication) Request(p Page) (fetch.Request, error) {
	if p.Cursor != "" {
		return fetch.Request{}, fmt.Errorf("source: syndication: %w", errOnePage)
	}
	h, secret := headers(s.c, syndicationAccept)
	u := withParams(s.url, overridden(s.c.Params, p.Params))
	return fetch.Request{URL: u.String(), Header: h, Keyed: secret}, nil
}

// Read reads the answer.
func (s *syndication) Read(resp *fetch.Response) (Answer, error) {
	now := s.c.Now()
	if e := byStatus(resp, now); e != nil {
		return Answer{}, e
	}
	text, lossy := decodeText(resp.Body, resp.Header.Get("Content-Type"))
	text = strings.TrimSpace(text)
	base := resp.URL
	if base == nil {
		base = s.url
	}
	var (
		entries []entry
		capped  bool
		failure *AnswerError
	)
	switch {
	case text == "":
		failure = notAFeed("an empty answer", "")
	case text[0] == '<':
		entries, capped, failure = readXMLFeed(text, base, s.c.MaxItems)
	case text[0] == '{':
		entries, capped, failure = readJSONFeed(text, base, s.c.MaxItems)
	default:
		failure = notAFeed("neither XML nor JSON", text)
	}
	if failure != nil {
		return Answer{}, failure
	}
	a := answerOf(entries, now.UTC())
	a.Lossy, a.Capped = lossy, capped
	return a, nil
}

// answerOf gives entries the common shape, each once.
func answerOf(entries []entry, now time.Time) Answer {
	var a Answer
	ids := identify(entries)
	seen := make(map[string]bool, len(ids))
	for i, e := range entries {
		if ids[i] == "" || seen[ids[i]] {
			a.Dropped++
			continue
		}
		seen[ids[i]] = true
		a.Items = append(a.Items, e.item(ids[i], len(a.Items)+1, now))
	}
	return a
}

// entry is one item of any of the formats.
type entry struct {
	guid, link, title  string
	published, updated *time.Time
	summary, content   string
	authors            []string
	categories         []string
	enclosures         []any
	image              string
}

func (e entry) item(id string, rank int, now time.Time) Item {
	f := map[string]any{
		"guid":    orNil(e.guid),
		"summary": orNil(e.summary),
		"image":   orNil(e.image),
		"updated": nil,
	}
	if e.updated != nil {
		f["updated"] = e.updated.Format(time.RFC3339)
	}
	if e.content != "" {
		f["content"] = e.content
	}
	for name, list := range map[string][]string{"authors": e.authors, "categories": e.categories} {
		if list == nil {
			list = []string{}
		}
		f[name] = list
	}
	if len(e.enclosures) > 0 {
		f["enclosures"] = e.enclosures
	}
	return Item{ID: id, URL: e.link, Title: e.title, Published: e.published, FirstSeen: now, Rank: rank, Fields: f}
}

// enclosure is an attached file; a length that is no number is null.
func enclosure(link, mediaType string, length count) map[string]any {
	return map[string]any{"url": link, "type": orNil(mediaType), "length": length.value()}
}

// sane keeps an instant that JSON can hold and a person can have meant.
func sane(t *time.Time) *time.Time {
	if t == nil || t.Year() < 1900 || t.Year() > 2999 {
		return nil
	}
	u := t.UTC()
	return &u
}

// oneLine is a title: its white space collapsed.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

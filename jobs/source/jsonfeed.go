package source

import (
	"encoding/json"
	"net/url"
	"strings"
)

// jsonItem is an item of JSON Feed 1.1, as far as it is read. A field of the
// wrong type reads as missing; an ID may be a number, which the standard wants
// read as a string (jsonfeed.org, "id"). The feed library fails on both, and
// takes any JSON object for a feed.
type jsonItem struct {
	ID            loose          `json:"id"`
	URL           text           `json:"url"`
	ExternalURL   text           `json:"external_url"`
	Title         text           `json:"title"`
	ContentHTML   text           `json:"content_html"`
	ContentText   text           `json:"content_text"`
	Summary       text           `json:"summary"`
	Image         text           `json:"image"`
	BannerImage   text           `json:"banner_image"`
	DatePublished text           `json:"date_published"`
	DateModified  text           `json:"date_modified"`
	Authors       list[author]   `json:"authors"`
	Author        author         `json:"author"`
	Tags          list[text]     `json:"tags"`
	Attachments   list[attached] `json:"attachments"`
}

type author struct {
	Name text `json:"name"`
}

type attached struct {
	URL  text  `json:"url"`
	Type text  `json:"mime_type"`
	Size count `json:"size_in_bytes"`
}

func (a *author) UnmarshalJSON(b []byte) error {
	type plain author
	_ = json.Unmarshal(b, (*plain)(a))
	return nil
}

// loose is a string, or a number as it is written.
type loose string

func (l *loose) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*l = loose(s)
		return nil
	}
	var n json.Number
	if json.Unmarshal(b, &n) == nil {
		*l = loose(n)
	}
	return nil
}

// list is an array; what is not reads as empty, an element that does not fit
// is left out.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(b []byte) error {
	var raw []json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil //nolint:nilerr // reads as empty, as said above
	}
	for _, r := range raw {
		var v T
		if json.Unmarshal(r, &v) == nil {
			*l = append(*l, v)
		}
	}
	return nil
}

// readJSONFeed reads JSON Feed.
func readJSONFeed(doc string, base *url.URL, limit int) ([]entry, bool, *AnswerError) {
	var raw struct {
		Version text             `json:"version"`
		Items   *json.RawMessage `json:"items"`
	}
	err := json.Unmarshal([]byte(doc), &raw)
	if err != nil {
		if _, failure := decodeJSON(doc); failure != nil {
			return nil, false, failure
		}
	}
	if err != nil || !strings.Contains(string(raw.Version), "jsonfeed.org/version/") {
		return nil, false, notAFeed("JSON, but no JSON Feed", doc)
	}
	if raw.Items == nil {
		return nil, false, notAFeed("a JSON Feed without items", doc)
	}
	var items []json.RawMessage
	if json.Unmarshal(*raw.Items, &items) != nil {
		return nil, false, notAFeed("a JSON Feed whose items are no list", doc)
	}
	capped := len(items) > limit
	if capped {
		items = items[:limit]
	}
	entries := make([]entry, 0, len(items))
	for _, r := range items {
		var it jsonItem
		if json.Unmarshal(r, &it) != nil {
			it = jsonItem{} // an entry without anything is dropped, and counted
		}
		entries = append(entries, it.entry(base))
	}
	return entries, capped, nil
}

func (it jsonItem) entry(base *url.URL) entry {
	e := entry{
		guid:      strings.TrimSpace(string(it.ID)),
		link:      firstOf(webLink(base, string(it.URL)), webLink(base, string(it.ExternalURL))),
		title:     oneLine(string(it.Title)),
		published: looseInstant(string(it.DatePublished)),
		updated:   looseInstant(string(it.DateModified)),
		summary:   string(it.Summary),
		content:   firstOf(string(it.ContentHTML), string(it.ContentText)),
		image:     firstOf(webLink(base, string(it.Image)), webLink(base, string(it.BannerImage))),
	}
	for _, a := range append(it.Authors, it.Author) {
		if n := oneLine(string(a.Name)); n != "" {
			e.authors = append(e.authors, n)
		}
	}
	for _, t := range it.Tags {
		if t != "" {
			e.categories = append(e.categories, string(t))
		}
	}
	for _, at := range it.Attachments {
		if link := webLink(base, string(at.URL)); link != "" {
			e.enclosures = append(e.enclosures, enclosure(link, string(at.Type), at.Size))
		}
	}
	return e
}

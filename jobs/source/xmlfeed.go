package source

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/mmcdole/gofeed/rss"
)

// readXMLFeed reads RSS or Atom. Relative links resolve against xml:base and
// base, the URL that the feed came from.
func readXMLFeed(text string, base *url.URL, limit int) ([]entry, bool, *AnswerError) {
	o, failure := scan(text, base, limit)
	if failure != nil {
		return nil, false, failure
	}
	feed, err := parseXML(o.doc)
	if err != nil {
		return nil, false, notAFeed("broken feed: "+snippet(err.Error()), text)
	}
	permalinks := permalinksOf(feed)
	entries := make([]entry, 0, len(feed.Items))
	for i, it := range feed.Items {
		at := o.root
		if len(o.bases) == len(feed.Items) {
			at = o.bases[i]
		}
		e := fromGofeed(it, at)
		if e.link == "" && permalinks[i] {
			e.link = webLink(at, it.GUID)
		}
		entries = append(entries, e)
	}
	return entries, o.capped, nil
}

// parseXML asks the feed library; a panic of it costs this answer alone.
func parseXML(doc string) (feed *gofeed.Feed, err error) {
	defer func() {
		if p := recover(); p != nil {
			feed, err = nil, fmt.Errorf("the parser gave up: %v", p)
		}
	}()
	p := gofeed.NewParser()
	p.KeepOriginalFeed = true
	p.RSSTranslator = &gofeed.DefaultRSSTranslator{DisableContentImageScan: true}
	return p.Parse(strings.NewReader(doc))
}

// permalinksOf says which items' guids are links: in RSS all that do not say
// otherwise (RSS 2.0, guid).
func permalinksOf(feed *gofeed.Feed) map[int]bool {
	out := map[int]bool{}
	if original, ok := feed.OriginalFeed().(*rss.Feed); ok {
		for i, it := range original.Items {
			out[i] = it.GUID != nil && !strings.EqualFold(it.GUID.IsPermalink, "false") && strings.Contains(it.GUID.Value, "://")
		}
	}
	return out
}

// feedInstant is what a feed's text says of an instant; what the library makes
// of it where it is written in no usual way.
func feedInstant(written string, parsed *time.Time) *time.Time {
	if t, ok := civil(written); ok {
		return sane(&t)
	}
	return sane(parsed)
}

func fromGofeed(it *gofeed.Item, base *url.URL) entry {
	e := entry{
		guid:       strings.TrimSpace(it.GUID),
		link:       webLink(base, it.Link),
		title:      oneLine(it.Title),
		published:  feedInstant(it.Published, it.PublishedParsed),
		updated:    feedInstant(it.Updated, it.UpdatedParsed),
		summary:    it.Description,
		content:    it.Content,
		categories: it.Categories,
	}
	for _, l := range it.Links {
		if e.link == "" {
			e.link = webLink(base, l)
		}
	}
	for _, a := range it.Authors {
		if a != nil {
			if name := firstOf(oneLine(a.Name), oneLine(a.Email)); name != "" {
				e.authors = append(e.authors, name)
			}
		}
	}
	for _, c := range it.Enclosures {
		if link := webLink(base, c.URL); link != "" {
			var n count
			_ = n.UnmarshalJSON([]byte(strings.TrimSpace(c.Length)))
			e.enclosures = append(e.enclosures, enclosure(link, c.Type, n))
		}
	}
	if it.Image != nil {
		e.image = webLink(base, it.Image.URL)
	}
	e.fromExtensions(it.Extensions, base)
	return e
}

// fromExtensions fills what the feed's own elements leave open from those of
// podcasts and of Media RSS, which YouTube's feeds put into a group.
func (e *entry) fromExtensions(x ext.Extensions, base *url.URL) {
	media := []map[string][]ext.Extension{x["media"]}
	for _, g := range x["media"]["group"] {
		media = append(media, g.Children)
	}
	for _, m := range media {
		for _, t := range m["thumbnail"] {
			e.image = firstOf(e.image, webLink(base, t.Attrs["url"]))
		}
		for _, d := range m["description"] {
			e.summary = firstOf(e.summary, d.Value)
		}
		for _, t := range m["title"] {
			e.title = firstOf(e.title, oneLine(t.Value))
		}
	}
	for _, t := range x["itunes"]["title"] {
		e.title = firstOf(e.title, oneLine(t.Value))
	}
}

package source

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"feedwarden/jobs/fetch"
)

// NextPage is the link that a html source follows: a selector with an
// attribute, href where it names none. Max is how many pages are read in all.
type NextPage struct {
	CSS string
	Max int
}

// htmlPage reads the items of a web page.
type htmlPage struct {
	c     Config
	url   *url.URL
	items *css
	// The fields of an item that have a place of their own; nil where the map
	// is silent: then a page's usual form is tried.
	id, link, title, published *picker
	fields                     []*picker
	next                       *picker
	most                       int           // pages
	patience                   time.Duration // for all selectors over one page
}

// newHTML reads URL, Params, Headers, Items, Map, Next and Pages.
func newHTML(c Config) (Source, error) {
	errs := unused(c, "url", "params", "headers", "items", "map", "next", "ban")
	u, err := parseURL("url", c.URL)
	if err != nil {
		errs = append(errs, err)
	}
	p := &htmlPage{c: c, url: u, most: 1, patience: pageTime}
	if c.Items == "" {
		errs = append(errs, errors.New("items is missing; it is a CSS selector that matches each item, as in article.item"))
	} else if p.items, err = selector("items", c.Items); err != nil {
		errs = append(errs, err)
	}
	build := func(name, expr, attr string) *picker {
		one, err := newPicker(name, expr, attr)
		if err != nil {
			errs = append(errs, err)
		}
		return one
	}
	own := map[string]**picker{"id": &p.id, "url": &p.link, "title": &p.title, "published": &p.published}
	for name, expr := range c.Map {
		one := build("map."+name, expr, "")
		if to, is := own[name]; is {
			*to = one
		} else {
			one.field = name
			p.fields = append(p.fields, one)
		}
	}
	if c.Next != nil {
		if c.Next.CSS == "" || c.Next.Max < 1 {
			errs = append(errs, errors.New("next should have css and max, as in {css: a.next, max: 3}"))
		} else {
			p.next, p.most = build("next.css", c.Next.CSS, "href"), c.Next.Max
		}
	}
	switch {
	case c.Pages < 0 || c.Pages > 1 && c.Next == nil:
		errs = append(errs, errors.New("without next this source has one page; pages must be 0 or 1"))
	case c.Pages > 0:
		p.most = min(p.most, c.Pages)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *htmlPage) Host() string { return hostOf(p.url) }

// Request gives the GET for a page.
func (p *htmlPage) Request(page Page) (fetch.Request, error) {
	h, secret := headers(p.c, "text/html, application/xhtml+xml;q=0.9, */*;q=0.1")
	at, err := parseTrail(page.Cursor)
	if err != nil {
		return fetch.Request{}, fmt.Errorf("source: html: %w", err)
	}
	u := withParams(p.url, overridden(p.c.Params, page.Params))
	if at.pages > 0 {
		next, failure := nextURL(p.url, at.at)
		switch {
		case failure != nil:
			return fetch.Request{}, fmt.Errorf("source: html: %w", failure)
		case secret && !sameSite(p.url, next):
			return fetch.Request{}, fmt.Errorf("source: html: %w", elsewhere(next, "headers with secrets never leave "+p.Host()))
		}
		u = withUser(next, p.url)
	}
	return fetch.Request{URL: u.String(), Header: h, Keyed: secret, Label: at.marked(placeOf(u)).String()}, nil
}

// Read reads a page.
func (p *htmlPage) Read(resp *fetch.Response) (Answer, error) {
	now := p.c.Now()
	if e := byStatus(resp, now); e != nil {
		return Answer{}, e
	}
	at, err := parseTrail(resp.Label)
	if err != nil {
		return Answer{}, &AnswerError{Kind: Invalid, Reason: err.Error()}
	}
	text, lossy := decodeHTML(resp.Body, resp.Header.Get("Content-Type"))
	if strings.TrimSpace(text) == "" {
		return Answer{}, notAFeed("an empty answer", "")
	}
	doc, failure := parseHTML(text)
	if failure != nil {
		return Answer{}, failure
	}
	came := resp.URL
	if came == nil {
		came = p.url
	}
	r := &htmlReading{htmlPage: p, doc: doc, page: newMatching(doc.Get(0), p.patience), base: baseOf(doc, came), now: now.UTC(), found: map[*picker]int{}}
	a, failure := r.read(at)
	if failure != nil {
		if t := mediaType(resp.Header.Get("Content-Type")); t != "" && !strings.Contains(t, "html") {
			failure.Reason += "; it came as " + clip(t)
		}
		return Answer{}, failure
	}
	a.Lossy = lossy
	if a.Next, failure = r.next(at, came, len(a.Items)); failure != nil {
		return Answer{}, failure
	}
	return a, nil
}

// parseHTML parses a page; a panic of the parser costs this answer alone.
func parseHTML(text string) (doc *goquery.Document, failure *AnswerError) {
	if failure := weigh(text); failure != nil {
		return nil, failure
	}
	defer func() {
		if p := recover(); p != nil {
			doc, failure = nil, notAFeed("HTML that is not read: "+snippet(fmt.Sprint(p)), text)
		}
	}()
	// Nothing runs scripts here, so what a page has for readers without them counts.
	root, err := html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(false))
	if err != nil {
		return nil, notAFeed("HTML that is not read: "+snippet(err.Error()), text)
	}
	doc = goquery.NewDocumentFromNode(root)
	doc.Find("template").Remove() // it is on no page before a script puts it there
	return doc, nil
}

// baseOf is what a page's links resolve against: its first base element with a
// href, which resolves against where the page came from (HTML, "the base element").
func baseOf(doc *goquery.Document, came *url.URL) *url.URL {
	href, ok := doc.Find("base[href]").First().Attr("href")
	if !ok {
		return came
	}
	if u, err := url.Parse(webLink(came, href)); err == nil && u.Host != "" {
		return u
	}
	return came
}

// next is the cursor of the page after this one; "" is the end.
func (r *htmlReading) next(at trail, came *url.URL, items int) (string, *AnswerError) {
	p := r.htmlPage
	if p.next == nil || at.pages+1 >= p.most {
		return "", nil
	}
	link, ok := r.raw(p.next, r.page.root)
	if r.page.late {
		return "", &AnswerError{Kind: NotAFeed, Reason: errPageTime.Error()}
	}
	if !ok || strings.TrimSpace(link) == "" {
		return "", nil
	}
	u, failure := nextURL(r.base, link)
	if failure != nil {
		return "", failure
	}
	_, secret := headers(p.c, "")
	switch {
	case secret && !sameSite(p.url, u):
		return "", elsewhere(u, "headers with secrets never leave "+p.Host())
	case !sameSite(came, u) && !sameSite(p.url, u):
		return "", elsewhere(u, "another site than "+hostOf(came))
	}
	at = at.marked(placeOf(came))
	// The last page of many sites leads to itself, or back to the first.
	if at.has(placeOf(u)) {
		return "", nil
	}
	if at.pages+1 >= mostPages {
		return "", endless()
	}
	return at.after(items, u.String()).String(), nil
}

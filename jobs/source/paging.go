package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"feedwarden/jobs/fetch"
)

// Paging is how a json source finds its next page; one way is set.
type Paging struct {
	Page       *PageNumbers
	Next       string // jq that gives the next page's URL
	Cursor     string // jq that gives the cursor
	Param      string // the query parameter that carries it
	LinkHeader bool   // the Link header's rel=next (RFC 8288)
}

// PageNumbers counts {page} in URL and Params: Max pages, the first is From.
// A page without items, one with those of a page before, and a 404 or 400 after
// the first are the end.
type PageNumbers struct{ From, Max int }

// pager is a Paging that can be followed.
type pager struct {
	Paging
	next, cursor *program
	most         int // pages; 0 is to the end
}

const pagePlace = "{page}"

// newPager compiles a config's paging; nil is one page.
func newPager(c Config) (*pager, []error) {
	if c.Paging == nil {
		if c.Pages < 0 || c.Pages > 1 {
			return nil, []error{errors.New("without paging this source has one page; pages must be 0 or 1")}
		}
		return nil, nil
	}
	var errs []error
	p := &pager{Paging: *c.Paging, most: c.Pages}
	if c.Pages < 0 {
		errs = append(errs, errors.New("pages should be 1 or more, or 0 for all"))
	}
	ways := 0
	for _, set := range []bool{p.Page != nil, p.Next != "", p.Cursor != "", p.LinkHeader} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		errs = append(errs, fmt.Errorf("paging names %d ways; it should be one of page, next, cursor and link_header", ways))
	}
	if (p.Cursor != "") != (p.Param != "") {
		errs = append(errs, errors.New("paging should have both cursor and param, as in {cursor: .next, param: after}"))
	}
	compileInto := func(name, expr string, to **program) {
		if expr == "" {
			return
		}
		prog, err := compile(name, expr)
		if err != nil {
			errs = append(errs, err)
		}
		*to = prog
	}
	compileInto("paging.next", p.Paging.Next, &p.next)
	compileInto("paging.cursor", p.Paging.Cursor, &p.cursor)
	if n := p.Page; n != nil {
		if n.Max < 1 || n.From < 0 {
			errs = append(errs, errors.New("paging.page should have a max of 1 or more and a from of 0 or more"))
		}
		if p.most == 0 || n.Max < p.most {
			p.most = n.Max
		}
		held := strings.Contains(c.URL, pagePlace)
		for _, v := range c.Params {
			held = held || strings.Contains(v, pagePlace)
		}
		if !held {
			errs = append(errs, errors.New("paging.page counts {page}, and neither url nor params hold it"))
		}
	}
	return p, errs
}

// request is where a page is: the URL as configured for the first, with its
// parameters; then where the trail leads.
func (j *jsonAPI) request(at trail, over map[string]string, secret bool) (*url.URL, trail, error) {
	params, raw := overridden(j.c.Params, over), j.c.URL
	if j.paging == nil {
		if at.pages > 0 {
			return nil, at, errOnePage
		}
		return withParams(j.url, params), at, nil
	}
	if n := j.paging.Page; n != nil {
		number := strconv.Itoa(n.From + at.pages)
		for k, v := range params {
			params[k] = strings.ReplaceAll(v, pagePlace, number)
		}
		u, err := parseURL("url", strings.ReplaceAll(raw, pagePlace, number))
		if err != nil {
			return nil, at, err
		}
		return withParams(u, params), at, nil
	}
	if j.paging.cursor != nil {
		if at.pages > 0 {
			params[j.paging.Param] = at.at
		}
		return withParams(j.url, params), at.marked(at.at), nil
	}
	if at.pages == 0 {
		u := withParams(j.url, params)
		return u, at.marked(placeOf(u)), nil
	}
	u, failure := j.follow(j.url, at.at, secret)
	if failure != nil {
		return nil, at, failure
	}
	return withUser(u, j.url), at.marked(placeOf(u)), nil
}

// follow reads a next page's link. With secrets in the headers it does not
// lead to another origin, but from http to https it may.
func (j *jsonAPI) follow(base *url.URL, link string, secret bool) (*url.URL, *AnswerError) {
	u, failure := nextURL(base, link)
	if failure != nil {
		return nil, failure
	}
	if secret && !sameSite(j.url, u) {
		return nil, elsewhere(u, "headers with secrets never leave "+hostOf(j.url))
	}
	return u, nil
}

// nextURL is a link of an answer, made whole.
func nextURL(base *url.URL, link string) (*url.URL, *AnswerError) {
	u, err := url.Parse(webLink(base, link))
	if err != nil || u.Host == "" {
		return nil, &AnswerError{Kind: NotAFeed, Reason: "the next page's link is no web address", Err: errors.New("it is: " + snippet(clip(link)))}
	}
	if len(u.String()) > longestPlace {
		return nil, &AnswerError{Kind: NotAFeed, Reason: fmt.Sprintf("the next page's link is longer than %d bytes", longestPlace)}
	}
	return u, nil
}

// withUser is a link with the user and password of the configured URL, where it
// stays on that site: they are no part of a link, nor of a cursor.
func withUser(u, configured *url.URL) *url.URL {
	if configured.User == nil || !sameSite(configured, u) {
		return u
	}
	v := *u
	v.User = configured.User
	return &v
}

// next is the cursor of the page after one that was read; "" is the end.
func (j *jsonAPI) next(ctx context.Context, at trail, doc any, resp *fetch.Response, items []Item) (string, error) {
	p := j.paging
	if p == nil || p.most > 0 && at.pages+1 >= p.most {
		return "", nil
	}
	var place, to string // how a place is compared, and what the cursor holds
	switch {
	case p.Page != nil:
		if len(items) == 0 {
			return "", nil
		}
		var ids strings.Builder
		for _, it := range items {
			fmt.Fprintf(&ids, "%d:%s", len(it.ID), it.ID)
		}
		// Many APIs give the last page again for all numbers beyond it.
		if at.has(ids.String()) {
			return "", nil
		}
		if at.pages+1 >= mostPages {
			return "", endless()
		}
		return at.marked(ids.String()).after(len(items), "").String(), nil
	case p.cursor != nil:
		v, err := p.cursor.first(ctx, doc)
		if err != nil {
			return "", &AnswerError{Kind: NotAFeed, Reason: "the answer does not fit the expressions", Err: err}
		}
		if to, err = nextScalar(v); err != nil {
			return "", &AnswerError{Kind: NotAFeed, Reason: "paging.cursor", Err: err}
		}
		if len(to) > longestPlace {
			return "", &AnswerError{Kind: NotAFeed, Reason: fmt.Sprintf("the cursor is longer than %d bytes", longestPlace)}
		}
		place = to
	default:
		link := nextLink(resp.Header)
		if p.next != nil {
			v, err := p.next.first(ctx, doc)
			if err != nil {
				return "", &AnswerError{Kind: NotAFeed, Reason: "the answer does not fit the expressions", Err: err}
			}
			if link, err = nextScalar(v); err != nil {
				return "", &AnswerError{Kind: NotAFeed, Reason: "paging.next", Err: err}
			}
		}
		if link == "" {
			return "", nil
		}
		_, secret := headers(j.c, "")
		base := resp.URL
		if base == nil {
			base = j.url
		}
		u, failure := j.follow(base, link, secret)
		if failure != nil {
			return "", failure
		}
		to, place = u.String(), placeOf(u)
		at = at.marked(placeOf(base))
	}
	switch {
	case to == "":
		return "", nil
	case at.has(place) && len(items) == 0:
		return "", nil
	case at.has(place):
		return "", roundAndRound()
	case at.pages+1 >= mostPages:
		return "", endless()
	}
	return at.after(len(items), to).String(), nil
}

// beyondTheLast says that a status answers a number that the list no longer
// has: page after page came before, and the request differs by the number alone.
func (j *jsonAPI) beyondTheLast(at trail, status int) bool {
	return j.paging != nil && j.paging.Page != nil && at.pages > 0 && (status == http.StatusNotFound || status == http.StatusBadRequest)
}

// nextScalar is a link or a cursor as an API gives it: null, false and empty
// are the end. An object or a list is neither, and no end: the list would be cut.
func nextScalar(v any) (string, error) {
	switch x := v.(type) {
	case bool:
		if x {
			return "", errors.New("it gives true, which leads nowhere; it should give a text, or null at the end")
		}
		return "", nil
	case map[string]any:
		for _, inner := range []string{"href", "url"} {
			if _, has := x[inner]; has {
				return "", fmt.Errorf("it gives an object; its .%s may be what is meant", inner)
			}
		}
		return "", errors.New("it gives an object; it should give a text, or null at the end")
	case []any:
		return "", errors.New("it gives a list; it should give a text, or null at the end")
	}
	return scalar(v), nil
}

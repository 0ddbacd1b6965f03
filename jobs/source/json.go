package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"feedwarden/jobs/fetch"
)

// jsonAPI reads any JSON API.
type jsonAPI struct {
	c      Config
	url    *url.URL // with the first page's number in place of {page}
	items  *program
	paging *pager // nil is one page
	// The fields of an item that have a place of their own, and the rest.
	id, link, title, published *program
	fields                     map[string]*program
	patience                   time.Duration // for all expressions over one answer
	most                       int64         // that they may give for it, unless four times the answer is more
}

// newJSON reads URL, Params, Headers, Items, Map, Paging and Pages. Without
// Map, an item is an object, and all of it becomes its Fields.
func newJSON(c Config) (Source, error) {
	errs := unused(c, "url", "params", "headers", "items", "map", "paging", "ban")
	first := c.URL
	if c.Paging != nil && c.Paging.Page != nil {
		first = strings.ReplaceAll(first, pagePlace, strconv.Itoa(c.Paging.Page.From))
	}
	u, err := parseURL("url", first)
	if err != nil {
		errs = append(errs, err)
	}
	paging, faults := newPager(c)
	errs = append(errs, faults...)
	j := &jsonAPI{c: c, url: u, paging: paging, fields: map[string]*program{}, patience: jqTime, most: jqWeight}
	build := func(name, expr string) *program {
		p, err := compile(name, expr)
		if err != nil {
			errs = append(errs, err)
		}
		return p
	}
	if c.Items == "" {
		errs = append(errs, errors.New("items is missing; it is a jq expression that yields the items, as in .data[]"))
	} else {
		j.items = build("items", c.Items)
	}
	for _, own := range []struct {
		name string
		p    **program
	}{{"id", &j.id}, {"url", &j.link}, {"title", &j.title}, {"published", &j.published}} {
		expr, mapped := c.Map[own.name]
		if !mapped {
			expr = ".[" + strconv.Quote(own.name) + "]?"
		}
		*own.p = build("map."+own.name, expr)
	}
	for name, expr := range c.Map {
		if !slices.Contains([]string{"id", "url", "title", "published"}, name) {
			j.fields[name] = build("map."+name, expr)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return j, nil
}

func (j *jsonAPI) Host() string { return hostOf(j.url) }

// Request gives the GET for a page.
func (j *jsonAPI) Request(p Page) (fetch.Request, error) {
	h, secret := headers(j.c, "application/json")
	at, err := parseTrail(p.Cursor)
	if err != nil {
		return fetch.Request{}, fmt.Errorf("source: json: %w", err)
	}
	u, at, err := j.request(at, p.Params, secret)
	if err != nil {
		return fetch.Request{}, fmt.Errorf("source: json: %w", err)
	}
	return fetch.Request{URL: u.String(), Header: h, Keyed: secret, Label: at.String()}, nil
}

// Read reads the answer.
func (j *jsonAPI) Read(resp *fetch.Response) (Answer, error) {
	now := j.c.Now()
	at, err := parseTrail(resp.Label)
	if err != nil {
		return Answer{}, &AnswerError{Kind: Invalid, Reason: err.Error()}
	}
	if e := byStatus(resp, now); e != nil {
		if j.beyondTheLast(at, resp.Status) && e.Kind != Ban {
			return Answer{}, nil
		}
		return Answer{}, e
	}
	text, lossy := decodeText(resp.Body, resp.Header.Get("Content-Type"))
	doc, failure := decodeJSON(text)
	if failure != nil {
		return Answer{}, failure
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.patience)
	defer cancel()

	a := Answer{Lossy: lossy}
	most := max(j.most, 4*int64(len(resp.Body)))
	r := &jsonReading{jsonAPI: j, base: resp.URL, now: now.UTC(), failed: map[string]int{}, left: most}
	seen := map[string]bool{}
	err = j.items.each(ctx, doc, func(v any) bool {
		if len(a.Items) >= j.c.MaxItems {
			a.Capped = true
			return false
		}
		r.read++
		it, ok := r.item(ctx, v)
		if r.left < 0 {
			return false
		}
		if !ok || seen[it.ID] {
			a.Dropped++
			return ctx.Err() == nil
		}
		seen[it.ID] = true
		it.Rank = at.items + len(a.Items) + 1
		a.Items = append(a.Items, it)
		return ctx.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return Answer{}, &AnswerError{Kind: NotAFeed, Reason: errJQTime.Error()}
	case r.left < 0:
		return Answer{}, &AnswerError{Kind: NotAFeed, Reason: fmt.Sprintf("the jq expressions give more than %d MiB", most>>20)}
	case err != nil:
		return Answer{}, &AnswerError{Kind: NotAFeed, Reason: "the answer does not fit the expressions", Err: err}
	case r.read > 0 && len(r.failed) > 0:
		for name, n := range r.failed {
			if n == r.read {
				return Answer{}, &AnswerError{Kind: NotAFeed, Reason: "no item fits " + name, Err: r.why}
			}
		}
	}
	// jq gives null for a key that is not there: items that lost their IDs would all be new ones.
	if r.read > 0 && r.nameless == r.read {
		return Answer{}, &AnswerError{Kind: NotAFeed, Reason: fmt.Sprintf("no item has an id: map.id, %s, gives null on all %d", j.c.Map["id"], r.read)}
	}
	if a.Next, err = j.next(ctx, at, doc, resp, a.Items); err != nil {
		return Answer{}, err
	}
	return a, nil
}

// jsonReading is one answer being read.
type jsonReading struct {
	*jsonAPI
	base   *url.URL
	now    time.Time
	read   int
	failed map[string]int // items on which an expression failed, by its name
	why    error
	left   int64 // of what the expressions may give; less than 0: they gave more
	// nameless counts items in which map.id found nothing.
	nameless int
}

// get runs a field's expression; one that fails on an item leaves it null.
func (r *jsonReading) get(ctx context.Context, p *program, item any) any {
	v, err := p.first(ctx, item)
	if err != nil {
		r.failed[p.name]++
		r.why = err
		return nil
	}
	if !r.weighs(v) {
		return nil
	}
	return v
}

// weighs takes a value into account; false: it is too much.
func (r *jsonReading) weighs(v any) bool {
	if r.left >= 0 {
		r.left -= heft(v, r.left)
	}
	return r.left >= 0
}

func (r *jsonReading) item(ctx context.Context, v any) (Item, bool) {
	it := Item{FirstSeen: r.now, Fields: map[string]any{}}
	if it.ID = scalar(r.get(ctx, r.id, v)); it.ID == "" && r.c.Map["id"] != "" {
		r.nameless++
	}
	it.Title = scalar(r.get(ctx, r.title, v))
	it.URL = webLink(r.base, scalar(r.get(ctx, r.link, v)))
	it.Published = looseInstant(r.get(ctx, r.published, v))
	if len(r.c.Map) == 0 {
		if o, ok := v.(map[string]any); ok && r.weighs(o) {
			storable(o)
			it.Fields = o
		}
	}
	for name, p := range r.fields {
		it.Fields[name] = storable(r.get(ctx, p, v))
	}
	if it.ID == "" {
		it.ID = it.URL
	}
	if it.ID == "" {
		if !r.weighs(v) {
			return it, false
		}
		b, err := gojq.Marshal(v)
		if err != nil || v == nil {
			return it, false
		}
		it.ID = contentID(string(b))
	}
	it.ID = boundedID(it.ID)
	return it, true
}

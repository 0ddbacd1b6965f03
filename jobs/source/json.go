package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/itchyny/gojq"

	"feedwarden/jobs/fetch"
)

// jsonAPI reads any JSON API, one page of it.
type jsonAPI struct {
	c     Config
	url   *url.URL
	items *program
	// The fields of an item that have a place of their own, and the rest.
	id, link, title, published *program
	fields                     map[string]*program
	patience                   time.Duration // for all expressions over one answer
}

// newJSON reads URL, Params, Headers, Items and Map. Without Map, an item is
// an object, and all of it becomes its Fields.
func newJSON(c Config) (Source, error) {
	errs := unused(map[string]bool{"base_url": c.BaseURL != "", "method": c.Method != "", "key": c.Key != ""})
	u, err := parseURL("url", c.URL)
	if err != nil {
		errs = append(errs, err)
	}
	if c.Pages < 0 || c.Pages > 1 {
		errs = append(errs, errOnePage)
	}
	j := &jsonAPI{c: c, url: u, fields: map[string]*program{}, patience: jqTime}
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

// Request gives the GET for the one page.
func (j *jsonAPI) Request(p Page) (fetch.Request, error) {
	if p.Cursor != "" {
		return fetch.Request{}, fmt.Errorf("source: json: %w", errOnePage)
	}
	h, secret := headers(j.c, "application/json")
	u := withParams(j.url, overridden(j.c.Params, p.Params))
	return fetch.Request{URL: u.String(), Header: h, Keyed: secret}, nil
}

// Read reads the answer.
func (j *jsonAPI) Read(resp *fetch.Response) (Answer, error) {
	now := j.c.Now()
	if e := byStatus(resp, now); e != nil {
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
	r := &jsonReading{jsonAPI: j, base: resp.URL, now: now.UTC(), failed: map[string]int{}}
	seen := map[string]bool{}
	err := j.items.each(ctx, doc, func(v any) bool {
		if len(a.Items) >= j.c.MaxItems {
			a.Capped = true
			return false
		}
		r.read++
		it, ok := r.item(ctx, v)
		if !ok || seen[it.ID] {
			a.Dropped++
			return ctx.Err() == nil
		}
		seen[it.ID] = true
		it.Rank = len(a.Items) + 1
		a.Items = append(a.Items, it)
		return ctx.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return Answer{}, &AnswerError{Kind: NotAFeed, Reason: errJQTime.Error()}
	case err != nil:
		return Answer{}, &AnswerError{Kind: NotAFeed, Reason: "the answer does not fit the expressions", Err: err}
	case r.read > 0 && len(r.failed) > 0:
		for name, n := range r.failed {
			if n == r.read {
				return Answer{}, &AnswerError{Kind: NotAFeed, Reason: "no item fits " + name, Err: r.why}
			}
		}
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
}

// get runs a field's expression; one that fails on an item leaves it null.
func (r *jsonReading) get(ctx context.Context, p *program, item any) any {
	v, err := p.first(ctx, item)
	if err != nil {
		r.failed[p.name]++
		r.why = err
		return nil
	}
	return v
}

func (r *jsonReading) item(ctx context.Context, v any) (Item, bool) {
	it := Item{FirstSeen: r.now, Fields: map[string]any{}}
	it.ID = scalar(r.get(ctx, r.id, v))
	it.Title = scalar(r.get(ctx, r.title, v))
	it.URL = webLink(r.base, scalar(r.get(ctx, r.link, v)))
	it.Published = looseInstant(r.get(ctx, r.published, v))
	if len(r.c.Map) == 0 {
		if o, ok := v.(map[string]any); ok {
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
		b, err := gojq.Marshal(v)
		if err != nil || v == nil {
			return it, false
		}
		it.ID = contentID(string(b))
	}
	it.ID = boundedID(it.ID)
	return it, true
}

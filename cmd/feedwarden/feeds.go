package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
	"feedwarden/web"
)

type feedsCmd struct {
	List feedsListCmd `cmd:"" help:"Every feed: state, age, version, next tick."`
	Get  feedsGetCmd  `cmd:"" help:"Print a feed's content."`
}

type feedsListCmd struct{}

func (feedsListCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		feeds, err := web.FeedViews(s.ctx, s.jobs, s.feeds)
		if err != nil {
			return err
		}
		ticks, err := s.schedules.List(s.ctx)
		if err != nil {
			return err
		}
		feeds = web.WithTicks(feeds, ticks)
		t := e.table("the config has no feeds", "FEED", "STATE", "AGE", "TTL", "VERSION", "ITEMS", "NEXT", "TROUBLE")
		for _, f := range feeds {
			age, version := "—", "—"
			if f.Version != nil {
				age, version = span(time.Duration(f.AgeMS)*time.Millisecond), strconv.FormatInt(*f.Version, 10)
			}
			trouble := f.LastError
			if f.WaitingFor != "" {
				trouble = f.WaitingFor
			}
			err := t.add(f, f.Name, f.State, age, span(time.Duration(f.TTLMS)*time.Millisecond), version, strconv.Itoa(f.Items),
				instant(f.NextAt, time.Now()), orDash(trouble))
			if err != nil {
				return err
			}
		}
		return t.flush()
	})
}

type feedsGetCmd struct {
	Name    string `arg:"" help:"The feed; name?k=v is what a job with that parameter left."`
	Version int64  `help:"An older version; the newest by default."`
	Format  string `help:"json, ndjson, csv, or raw: the upstream's own bytes." enum:"json,ndjson,csv,raw" default:"json"`
	Page    int    `help:"Which page of a raw answer." default:"1"`
}

func (c *feedsGetCmd) Run(e *env) error {
	name, query, _ := strings.Cut(c.Name, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return usageError("%s: after ? comes k=v&k=v", c.Name)
	}
	params := map[string]string{}
	for k := range q {
		params[k] = q.Get(k)
	}
	return e.with(func(s *session) error {
		if _, err := s.jobs.Feed(name); err != nil {
			return err
		}
		v, err := s.feeds.Get(s.ctx, feed.Key(name, params), c.Version)
		if errors.Is(err, feed.ErrNoVersion) && c.Version == 0 {
			return fmt.Errorf("feed %s has no version yet; fetch it: feedwarden enqueue %s --wait", c.Name, name)
		}
		if err != nil {
			return err
		}
		return c.print(e, v)
	})
}

func (c *feedsGetCmd) print(e *env, v feed.Version) error {
	switch c.Format {
	case "raw":
		page := v.Page(c.Page)
		if page == nil {
			return usageError("version %d has %s", v.Version, count(len(v.Pages), "page"))
		}
		_, err := e.out.Write(page)
		return err
	case "ndjson":
		for _, it := range v.Items {
			if err := e.line(it); err != nil {
				return err
			}
		}
		return nil
	case "csv":
		return writeCSV(e, v.Items)
	}
	return e.line(map[string]any{"feed": c.Name, "version": v.Version, "fetched_at": v.FetchedAt, "items": v.Items})
}

// writeCSV has a column for every field that any item has, those of all items first.
func writeCSV(e *env, items []source.Item) error {
	fixed := []string{"id", "url", "title", "published", "first_seen", "rank"}
	extra := map[string]bool{}
	for _, it := range items {
		for k := range it.Fields {
			extra[k] = true
		}
	}
	var names []string
	for k := range extra {
		names = append(names, k)
	}
	slices.Sort(names)
	w := csv.NewWriter(e.out)
	if err := w.Write(append(fixed, names...)); err != nil {
		return err
	}
	for _, it := range items {
		published := ""
		if it.Published != nil {
			published = it.Published.UTC().Format(time.RFC3339)
		}
		row := []string{it.ID, it.URL, it.Title, published, it.FirstSeen.UTC().Format(time.RFC3339), strconv.Itoa(it.Rank)}
		for _, k := range names {
			row = append(row, cell(it.Fields[k]))
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// cell writes one field into a table of texts: plain values as they are, the
// rest as JSON.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

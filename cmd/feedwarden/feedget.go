package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/sink"
)

type feedsGetCmd struct {
	Name    string `arg:"" help:"The feed; name?k=v is what a job with that parameter left."`
	Version int64  `help:"An older version; the newest by default." placeholder:"V"`
	Format  string `help:"json, ndjson, csv, or raw: the upstream's own bytes. Default: json, and a table on a terminal." enum:",json,ndjson,csv,raw" default:"" placeholder:"FORMAT"`
	Page    int    `help:"Which page of a raw answer." default:"1"`
	Since   string `help:"Only items first seen after this instant, RFC 3339." placeholder:"INSTANT"`
	Aside   bool   `help:"The last answers that were not taken (a wrong type, a ban page, cut short, empty): three, for a week. With --format raw the newest one's bytes, or --page's."`
}

func (c *feedsGetCmd) Run(e *env) error {
	var since time.Time
	if c.Since != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, c.Since); err != nil {
			return usageError("--since %s: an instant such as 2026-11-30T08:00:00Z is wanted", c.Since)
		}
	}
	return e.withFeed(c.Name, func(s *session, key string) error {
		if c.Aside {
			return c.aside(s, key)
		}
		v, err := s.feeds.Get(s.ctx, key, c.Version)
		if errors.Is(err, feed.ErrNoVersion) && c.Version == 0 {
			name := feed.Name(key)
			if f, ferr := s.jobs.Feed(name); ferr == nil && f.Pushed() {
				return fmt.Errorf("feed %s has no version yet; put content into it: feedwarden feeds put %s FILE", c.Name, name)
			}
			return fmt.Errorf("feed %s has no version yet; fetch it: feedwarden enqueue %s --wait", c.Name, name)
		}
		if err != nil {
			return err
		}
		if !since.IsZero() {
			v.Items = feed.NewSince(v.Items, since)
		}
		return c.print(e, v)
	})
}

// aside prints what was kept for a person to look at.
func (c *feedsGetCmd) aside(s *session, key string) error {
	all, err := s.feeds.Asides(s.ctx, key)
	if err != nil {
		return err
	}
	if c.Format == "raw" {
		if c.Page < 1 || c.Page > len(all) {
			return usageError("%s kept aside", count(len(all), "answer"))
		}
		_, err := s.out.Write(all[c.Page-1].Body)
		return err
	}
	t := s.table("nothing is kept aside of "+c.Name, "CAME", "KIND", "TYPE", "BYTES", "REASON", "JOB", "BEGINS")
	for _, a := range all {
		begins := strings.Join(strings.Fields(string(a.Body[:min(len(a.Body), 200)])), " ")
		err := t.add(a, instant(&a.At, time.Now()), a.Kind, orDash(a.Type), strconv.Itoa(len(a.Body)), orDash(a.Reason), a.Job, clip(begins, 60))
		if err != nil {
			return err
		}
	}
	return t.flush()
}

// table shows a person what a version holds; the formats have all of it.
func (c *feedsGetCmd) table(e *env, v feed.Version) error {
	now := time.Now()
	fmt.Fprintf(e.errOut, "%s: version %d of %s, %s; whole with --format json, ndjson, csv, raw\n", c.Name, v.Version, instant(&v.FetchedAt, now), count(len(v.Items), "item"))
	t := e.table("it has no items", "RANK", "RISEN", "PUBLISHED", "TITLE")
	for _, it := range v.Items {
		risen := "—"
		if it.RankChange != nil && *it.RankChange != 0 {
			risen = fmt.Sprintf("%+d", *it.RankChange)
		}
		if err := t.add(it, strconv.Itoa(it.Rank), risen, instant(it.Published, now), cmp.Or(it.Title, it.URL, it.ID)); err != nil {
			return err
		}
	}
	return t.flush()
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
		return sink.WriteNDJSON(e.out, v.Items)
	case "csv":
		return sink.WriteCSV(e.out, v.Items)
	}
	if c.Format == "" && !e.json {
		return c.table(e, v)
	}
	return e.line(map[string]any{"feed": c.Name, "version": v.Version, "fetched_at": v.FetchedAt, "items": v.Items})
}

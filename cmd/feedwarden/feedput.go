package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"feedwarden/jobs"
)

// maxPut bounds what is put into a feed.
const maxPut = 16 << 20

type feedsPutCmd struct {
	Name       string `arg:"" help:"A feed of source push."`
	File       string `arg:"" optional:"" help:"The content; - or nothing is standard input." default:"-"`
	Type       string `help:"Its media type, such as application/x-ndjson; known by the content by default." placeholder:"TYPE"`
	AllowEmpty bool   `help:"Take a list without items for a feed that has some."`
	Onto       *int64 `help:"Only where this version is the newest; 0: only where there is none." placeholder:"V"`
}

func (feedsPutCmd) Help() string {
	return `The content: a JSON list of items, {"items": […]}, an item a line, or an RSS, Atom or JSON Feed document.
An item: {"id":"…","url":"…","title":"…","published":"2026-11-30T08:00:00Z","fields":{…}}; rank is its place.
It becomes a version as any other: first_seen is kept, the same content again only renews its age, and it is fresh for the feed's ttl.`
}

func (c *feedsPutCmd) Run(e *env) error {
	body, err := c.read(e)
	if err != nil {
		return err
	}
	return e.with(func(s *session) error {
		p := jobs.Put{ContentType: c.Type, Body: body, AllowEmpty: c.AllowEmpty, Onto: c.Onto}
		got, err := s.jobs.Push(s.ctx, c.Name, p)
		var empty *jobs.EmptyPutError
		var fetched *jobs.NotPushedError
		switch {
		case errors.As(err, &empty):
			return fmt.Errorf("%w: --allow-empty", err)
		case errors.As(err, &fetched):
			return usageError("%v", err)
		case errors.Is(err, jobs.ErrMoved):
			return fmt.Errorf("feed %s: version %d is not the newest: read it, and put again", c.Name, *c.Onto)
		case err != nil:
			return err
		}
		what := "unchanged, and fresh again"
		if got.New {
			what = "new version"
		}
		t := e.table("", "FEED", "VERSION", "ITEMS", "WHAT")
		if err := t.add(got, got.Feed, fmt.Sprint(got.Version), fmt.Sprint(got.Items), what); err != nil {
			return err
		}
		return t.flush()
	})
}

func (c *feedsPutCmd) read(e *env) ([]byte, error) {
	in := e.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, usageError("%v", err)
		}
		defer f.Close()
		in = f
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(in, maxPut+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.File, err)
	}
	if n > maxPut {
		return nil, usageError("%s has more than %d MiB", c.File, maxPut>>20)
	}
	return b.Bytes(), nil
}

type feedsWarmCmd struct {
	Client string `arg:"" help:"The name that it gives in the header Feedwarden-Client."`
}

func (feedsWarmCmd) Help() string {
	return `Refreshes the feeds that this client has read (the last hundred, within 30 days) and that are empty, stale, or have less than a quarter
of their ttl left: as interactive jobs, without waiting for them. A client that was never seen has none.`
}

func (c *feedsWarmCmd) Run(e *env) error {
	if err := jobs.CheckClient(c.Client); err != nil {
		return usageError("%v", err)
	}
	return e.with(func(s *session) error {
		all, err := s.jobs.Warm(s.ctx, c.Client)
		if err != nil {
			return err
		}
		refused := false
		t := e.table("nothing is known of what "+c.Client+" reads", "FEED", "ACTION", "AGE", "TTL", "JOB")
		for _, w := range all {
			refused = refused || w.Action == jobs.WarmFull
			err := t.add(w, w.Feed, w.Action, span(time.Duration(w.AgeMS)*time.Millisecond), span(time.Duration(w.TTLMS)*time.Millisecond), orDash(w.Job))
			if err != nil {
				return err
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
		if refused {
			return &exitError{exitRefused, errors.New("the queue interactive is full; not all could be refreshed")}
		}
		return nil
	})
}

package main

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/web"
)

type feedsCmd struct {
	List     feedsListCmd     `cmd:"" help:"Every feed: state, age, version, next tick."`
	Get      feedsGetCmd      `cmd:"" help:"Print a feed's content, or what was kept aside."`
	Put      feedsPutCmd      `cmd:"" help:"Put content into a feed of source push."`
	Versions feedsVersionsCmd `cmd:"" help:"The versions that are kept: when each came, and its hash."`
	Diff     feedsDiffCmd     `cmd:"" help:"What came, rose, fell and went from one version to another."`
	Warm     feedsWarmCmd     `cmd:"" help:"Refresh what a client usually reads, before it asks."`
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
			for _, s := range f.Sinks {
				if trouble == "" && s.LastError != "" {
					trouble = s.LastError
				}
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

// withFeed opens a session for one feed, named as name or name?k=v.
func (e *env) withFeed(text string, f func(s *session, key string) error) error {
	name, query, _ := strings.Cut(text, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return usageError("%s: after ? comes k=v&k=v", text)
	}
	params := map[string]string{}
	for k := range q {
		params[k] = q.Get(k)
	}
	return e.with(func(s *session) error {
		if _, err := s.jobs.Feed(name); err != nil {
			return err
		}
		return f(s, feed.Key(name, params))
	})
}

// versions prints what is kept of a feed, newest first.
func (e *env) versions(all []feed.Meta) error {
	t := e.table("no version yet", "VERSION", "CAME", "ITEMS", "HASH", "JOB")
	for _, m := range all {
		at := m.FetchedAt
		err := t.add(web.VersionView(m), strconv.FormatInt(m.Version, 10), instant(&at, time.Now()), strconv.Itoa(m.Items), m.ContentHash, orDash(m.Job))
		if err != nil {
			return err
		}
	}
	return t.flush()
}

package main

import (
	"errors"
	"fmt"
	"strconv"

	"feedwarden/jobs/feed"
)

type feedsDiffCmd struct {
	Name string `arg:"" help:"The feed; name?k=v is what a job with that parameter left."`
	From int64  `arg:"" optional:"" name:"v1" help:"The version before; the one before V2 by default."`
	To   int64  `arg:"" optional:"" name:"v2" help:"The version after; the newest by default."`
}

func (feedsDiffCmd) Help() string {
	return `What came, rose, fell and went from one version to another, by the items' ids. A line of JSON for each:
{"what":"rose","from":7,"to":2,"moved":5,"item":{…}}; from is 0 for what came, to is 0 for what went. Nothing changed: no line.
Which versions are kept: feedwarden feeds versions NAME.`
}

func (c *feedsDiffCmd) Run(e *env) error {
	return e.withFeed(c.Name, func(s *session, key string) error {
		if c.From < 0 || c.To < 0 {
			return usageError("a version is a number from 1")
		}
		a, b, err := s.feeds.Pair(s.ctx, key, c.From, c.To)
		if errors.Is(err, feed.ErrNoVersion) {
			return fmt.Errorf("feed %s: %w; what is kept: feedwarden feeds versions %s", c.Name, err, c.Name)
		}
		if err != nil {
			return err
		}
		changes := feed.Diff(a.Items, b.Items)
		t := e.table(fmt.Sprintf("no item came, went or changed its rank from version %d to %d", a.Version, b.Version), "WHAT", "RANK", "MOVED", "TITLE", "ID")
		for _, ch := range changes {
			if err := t.add(ch, ch.What, ranks(ch), moved(ch), clip(ch.Item.Title, 60), ch.Item.ID); err != nil {
				return err
			}
		}
		if !e.json && len(changes) > 0 {
			fmt.Fprintf(e.errOut, "from version %d of %s to version %d of %s\n", a.Version, a.FetchedAt.Local().Format("2 Jan 15:04:05"), b.Version, b.FetchedAt.Local().Format("2 Jan 15:04:05"))
		}
		return t.flush()
	})
}

func ranks(c feed.Change) string {
	switch c.What {
	case feed.Came:
		return strconv.Itoa(c.To)
	case feed.Went:
		return strconv.Itoa(c.From)
	}
	return fmt.Sprintf("%d → %d", c.From, c.To)
}

func moved(c feed.Change) string {
	if c.Moved == 0 {
		return "—"
	}
	return fmt.Sprintf("%+d", c.Moved)
}

type feedsVersionsCmd struct {
	Name string `arg:"" help:"The feed; name?k=v is what a job with that parameter left."`
}

func (c *feedsVersionsCmd) Run(e *env) error {
	return e.withFeed(c.Name, func(s *session, key string) error {
		all, err := s.feeds.Versions(s.ctx, key)
		if err != nil {
			return err
		}
		return e.versions(all)
	})
}

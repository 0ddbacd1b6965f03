package jobs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"feedwarden/internal/spelling"
	"feedwarden/jobs/source"
)

// Catalog finds feeds by name. Its feeds can be replaced while clients and
// handlers use it: whoever has looked one up goes on with what it found.
type Catalog struct{ shelf atomic.Pointer[shelf] }

// shelf is all feeds of one config; it never changes.
type shelf struct {
	feeds   map[string]Feed
	sources map[string]source.Source
	names   []string
}

// NewCatalog makes a catalog of feeds. The error joins every fault.
func NewCatalog(feeds []Feed) (*Catalog, error) {
	c := &Catalog{}
	if err := c.Reload(feeds); err != nil {
		return nil, err
	}
	return c, nil
}

// Reload replaces all feeds at once. On an error, which joins every fault,
// the old ones stay.
func (c *Catalog) Reload(feeds []Feed) error {
	s := &shelf{feeds: make(map[string]Feed, len(feeds)), sources: make(map[string]source.Source, len(feeds))}
	var faults []error
	for _, f := range feeds {
		if _, ok := s.feeds[f.Name]; ok {
			faults = append(faults, fmt.Errorf("jobs: feed %q stands twice", f.Name))
			continue
		}
		src, err := source.New(f.Source)
		if err != nil {
			faults = append(faults, fmt.Errorf("jobs: feed %q: %w", f.Name, err))
		}
		if err := checkSinks(f.Sinks); err != nil {
			faults = append(faults, fmt.Errorf("jobs: feed %q: %w", f.Name, err))
		}
		if f.Pool == "" {
			f.Pool = Direct
		}
		f.Attempts = max(f.Attempts, 1)
		f.History = max(f.History, 1)
		f.Cost = max(f.Cost, 1)
		f.asked = f.Source.Fingerprint()
		s.feeds[f.Name], s.sources[f.Name] = f, src
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	s.names = slices.Sorted(maps.Keys(s.feeds))
	c.shelf.Store(s)
	return nil
}

// Feeds are all feeds, sorted by name.
func (c *Catalog) Feeds() []Feed {
	s := c.shelf.Load()
	out := make([]Feed, 0, len(s.names))
	for _, n := range s.names {
		out = append(out, s.feeds[n])
	}
	return out
}

// quotas are the quotas that some feed is charged to, sorted.
func (c *Catalog) quotas() []string {
	named := map[string]bool{}
	for _, f := range c.shelf.Load().feeds {
		if f.Quota != "" {
			named[f.Quota] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// UnknownFeedError names a feed that the config does not have.
type UnknownFeedError struct {
	Feed string
	Near string // a feed of nearly that name, or ""
}

func (e *UnknownFeedError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("no feed %q; did you mean %q?", e.Feed, e.Near)
	}
	return fmt.Sprintf("no feed %q in the config", e.Feed)
}

func (c *Catalog) find(name string) (Feed, source.Source, error) {
	s := c.shelf.Load()
	f, ok := s.feeds[name]
	if !ok {
		return Feed{}, nil, &UnknownFeedError{Feed: name, Near: s.near(name)}
	}
	return f, s.sources[name], nil
}

// near is a feed that starts alike: the usual slip is an entry's name where a
// feed of its expansion is meant.
func (s *shelf) near(name string) string {
	for _, n := range s.names {
		if name != "" && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n)) {
			return n
		}
	}
	return spelling.Near(name, s.names[:min(len(s.names), mostCompared)])
}

// mostCompared bounds what an unknown name costs: strangers may ask too.
const mostCompared = 500

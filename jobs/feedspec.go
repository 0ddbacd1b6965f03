package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"feedwarden/jobs/source"
)

// Direct is the pool without proxies; it is built in.
const Direct = "direct"

// Feed is one feed as its jobs need it.
type Feed struct {
	Name      string
	Entry     string // the entry of the config that it was expanded from
	Source    source.Config
	Quota     string // "" charges none
	Cost      int64  // units a request takes
	Pool      string // Direct, or a pool's name
	Attempts  int    // real failures until the job has failed
	MaxSnooze time.Duration
	Expires   time.Duration // 0: never
	History   int           // versions kept
	TTL       time.Duration // 0: fresh for ever
	Schedule  string        // for pages; "" is fetched by hand or by a reader
	Timezone  string
}

// Queues that jobs live in.
const (
	QueueInteractive = "interactive"
	QueueScheduled   = "scheduled"
)

var queues = []string{QueueInteractive, QueueScheduled}

// Config is what the package needs to know.
type Config struct {
	Feeds            []Feed
	QueueLimits      map[string]int64 // beyond it a queue refuses; 0: no limit
	Concurrency      int
	InteractiveSlots int
	Shutdown         time.Duration
	FetchTimeout     time.Duration // what a fetch may take at most; leases and claims are longer
}

// catalog finds feeds by name.
type catalog struct {
	feeds   map[string]Feed
	sources map[string]source.Source
	names   []string
}

func newCatalog(feeds []Feed) (*catalog, error) {
	c := &catalog{feeds: map[string]Feed{}, sources: map[string]source.Source{}}
	for _, f := range feeds {
		if _, ok := c.feeds[f.Name]; ok {
			return nil, fmt.Errorf("jobs: feed %q stands twice", f.Name)
		}
		src, err := source.New(f.Source)
		if err != nil {
			return nil, fmt.Errorf("jobs: feed %q: %w", f.Name, err)
		}
		if f.Pool == "" {
			f.Pool = Direct
		}
		f.Attempts = max(f.Attempts, 1)
		f.History = max(f.History, 1)
		f.Cost = max(f.Cost, 1)
		c.feeds[f.Name], c.sources[f.Name] = f, src
	}
	c.names = slices.Sorted(maps.Keys(c.feeds))
	return c, nil
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

func (c *catalog) find(name string) (Feed, source.Source, error) {
	f, ok := c.feeds[name]
	if !ok {
		return Feed{}, nil, &UnknownFeedError{Feed: name, Near: c.near(name)}
	}
	return f, c.sources[name], nil
}

// near is a feed that starts alike: the usual slip is an entry's name where a
// feed of its expansion is meant.
func (c *catalog) near(name string) string {
	for _, n := range c.names {
		if name != "" && (strings.HasPrefix(n, name) || strings.HasPrefix(name, n)) {
			return n
		}
	}
	return ""
}

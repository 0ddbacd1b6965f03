package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"feedwarden/jobs/source"
)

// Meta is what is known of one version beside its items.
type Meta struct {
	Schema      int       `json:"v"`
	Version     int64     `json:"version"`
	FetchedAt   time.Time `json:"fetched_at"`
	ContentHash string    `json:"hash"`
	ContentType string    `json:"type"`
	Items       int       `json:"items"`
	Pages       []int     `json:"pages"` // length in bytes of each page within the raw answer
	Lossy       bool      `json:"lossy,omitempty"`
	Job         string    `json:"job,omitempty"`
}

// Version is one stored version, whole.
type Version struct {
	Meta
	Items []source.Item
	Raw   []byte
}

// Content is what a fetch hands over to be stored.
type Content struct {
	Items        []source.Item
	Raw          [][]byte // one a page
	ContentType  string
	Lossy        bool
	ETag         string
	LastModified string
	Asked        string // what was asked and how it was read, as its source tells it; the validators hold for that alone
	Job          string
}

// Head is a feed's newest state without its content.
type Head struct {
	Key          string
	Version      int64     // 0 while empty
	Items        int       // how many it has
	StoredAt     time.Time // when the newest version came
	FetchedAt    time.Time // when it was last fetched or confirmed
	Hash         string
	ETag         string
	LastModified string
	Asked        string // the Content's
	LastError    string
	LastErrorAt  time.Time
	Refreshing   string // the job that refreshes it for readers, or ""
	LastTickJob  string
}

// Empty says that no version was ever stored.
func (h Head) Empty() bool { return h.Version == 0 }

// Age is the time since the newest version was fetched or confirmed.
func (h Head) Age(now time.Time) time.Duration {
	if h.Empty() {
		return 0
	}
	return max(now.Sub(h.FetchedAt), 0)
}

// State is what a page says of a feed: fresh, stale, updating or empty. A feed
// without a ttl stays fresh for ever.
func (h Head) State(now time.Time, ttl time.Duration) string {
	switch {
	case h.Empty():
		return "empty"
	case ttl <= 0 || h.Age(now) < ttl:
		return "fresh"
	case h.Refreshing != "":
		return "updating"
	}
	return "stale"
}

// contentHash is the identity of an answer: what its items say, without what
// we added ourselves.
func contentHash(items []source.Item) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, it := range items {
		it.FirstSeen, it.RankChange = time.Time{}, nil
		if err := enc.Encode(it); err != nil {
			return "", fmt.Errorf("feed: item %q: %w", it.ID, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}

// carryOver gives every item what the version before knew of it: the instant
// at which its ID was first seen, else now; and how many places it has risen
// since, where it was there.
func carryOver(items, before []source.Item, now time.Time) {
	known := make(map[string]source.Item, len(before))
	for _, it := range before {
		known[it.ID] = it
	}
	for i := range items {
		it := &items[i]
		old, ok := known[it.ID]
		if !ok {
			it.FirstSeen, it.RankChange = now, nil
			continue
		}
		risen := old.Rank - it.Rank
		it.FirstSeen, it.RankChange = old.FirstSeen, &risen
	}
}

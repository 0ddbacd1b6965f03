package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Aside is an answer that was not taken for the feed's content, kept for a
// person to look at.
type Aside struct {
	Schema int       `json:"v"`
	At     time.Time `json:"at"`
	Job    string    `json:"job"`
	Kind   string    `json:"kind"`   // not-a-feed, ban, truncated, …
	Reason string    `json:"reason"` // a line for a person
	Type   string    `json:"type"`   // the Content-Type that it said
	Body   []byte    `json:"body"`   // its beginning, without the secrets that were sent; base64 in JSON
}

const (
	asideKept = 3
	asideBody = 64 << 10
	asideLife = 7 * 24 * time.Hour
)

// SetAside keeps an answer: the last three of a feed, 64 KiB of each, for a
// week after the last.
func (s *Store) SetAside(ctx context.Context, key string, a Aside) error {
	a.Schema = 1
	a.Body = a.Body[:min(len(a.Body), asideBody)]
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("feed: set aside for %q: %w", key, err)
	}
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LPush(ctx, asideKey(key), text)
		p.LTrim(ctx, asideKey(key), 0, asideKept-1)
		p.PExpire(ctx, asideKey(key), asideLife)
		return nil
	})
	if err != nil {
		return fmt.Errorf("feed: set aside for %q: %w", key, err)
	}
	return nil
}

// Asides gives what is kept aside, newest first.
func (s *Store) Asides(ctx context.Context, key string) ([]Aside, error) {
	texts, err := s.rdb.LRange(ctx, asideKey(key), 0, asideKept-1).Result()
	if err != nil {
		return nil, fmt.Errorf("feed: what is kept aside of %q: %w", key, err)
	}
	out := make([]Aside, 0, len(texts))
	for _, text := range texts {
		var a Aside
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return nil, fmt.Errorf("feed: what is kept aside of %q: %w", key, err)
		}
		out = append(out, a)
	}
	return out, nil
}

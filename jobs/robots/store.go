package robots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
)

// schema is the form of a Kept; one of another form is asked for anew.
const schema = 1

// remembered is how long failures in a row are counted after the last.
const remembered = time.Hour

// Store keeps what hosts said, for all workers.
type Store struct{ rdb redis.UniversalClient }

// NewStore does no I/O.
func NewStore(rdb redis.UniversalClient) *Store { return &Store{rdb: rdb} }

// Get is what is known of a URL's origin for a token. fresh is whether it holds
// at the instant now; where it does not, it only tells of earlier failures.
func (s *Store) Get(ctx context.Context, u *url.URL, token string, now time.Time) (k Kept, fresh bool, err error) {
	data, err := s.rdb.Get(ctx, fileKey(Origin(u))).Bytes()
	if errors.Is(err, redis.Nil) {
		return Kept{}, false, nil
	}
	if err != nil {
		return Kept{}, false, fmt.Errorf("robots: read what is kept of %s: %w", Origin(u), err)
	}
	if err := json.Unmarshal(data, &k); err != nil || k.Schema != schema || k.Agent != token {
		return Kept{}, false, nil //nolint:nilerr // another binary's, or another name's: asked for anew
	}
	return k, now.Before(k.Until), nil
}

// Put keeps what an origin said, and lets others ask again.
func (s *Store) Put(ctx context.Context, u *url.URL, k Kept, now time.Time) error {
	data, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("robots: write what %s said: %w", Origin(u), err)
	}
	life := k.Until.Sub(now)
	if k.Why != "" {
		life += remembered
	}
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, fileKey(Origin(u)), data, max(life, time.Second))
		p.Del(ctx, claimKey(Origin(u)))
		return nil
	})
	if err != nil {
		return fmt.Errorf("robots: keep what %s said: %w", Origin(u), err)
	}
	return nil
}

// Claim says that the caller is the one who asks for an origin's file, for so
// long at most. Two that claim at once cost a request more, and nothing else.
func (s *Store) Claim(ctx context.Context, u *url.URL, life time.Duration) (bool, error) {
	mine, err := s.rdb.SetNX(ctx, claimKey(Origin(u)), "1", life).Result()
	if err != nil {
		return false, fmt.Errorf("robots: claim the file of %s: %w", Origin(u), err)
	}
	return mine, nil
}

// Unclaim lets another ask.
func (s *Store) Unclaim(ctx context.Context, u *url.URL) error {
	if err := s.rdb.Del(ctx, claimKey(Origin(u))).Err(); err != nil {
		return fmt.Errorf("robots: give back the file of %s: %w", Origin(u), err)
	}
	return nil
}

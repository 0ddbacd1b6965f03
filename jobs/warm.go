package jobs

import (
	"context"
	"errors"
	"time"

	"feedwarden/jobs/feed"
)

// Warmed is what becomes of one feed that a client usually reads.
type Warmed struct {
	Feed string `json:"feed"`
	// Action is fresh (nothing to do), refreshing (Job does it), failing (its last
	// fetch failed a moment ago), full (the queue takes no more jobs) or pushed
	// (only scripts can make it fresh).
	Action       string `json:"action"`
	Job          string `json:"job,omitempty"`
	AgeMS        int64  `json:"age_ms"`
	TTLMS        int64  `json:"ttl_ms"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// What becomes of a feed that is warmed.
const (
	WarmFresh      = "fresh"
	WarmRefreshing = "refreshing"
	WarmFailing    = "failing"
	WarmFull       = "full"
	WarmPushed     = "pushed"
)

// dueToWarm says that a feed is to be refreshed before it is asked for: it has
// no version, or less than a quarter of its ttl is left.
func dueToWarm(h feed.Head, ttl time.Duration, now time.Time) bool {
	return h.Empty() || ttl > 0 && h.Age(now) > ttl-ttl/4
}

// Warm refreshes what a client usually reads and what is stale or about to be,
// as interactive jobs, and waits for none. Of each feed one refresh is in
// flight, whoever asked for it. Feeds that the config has no longer are left
// out. *ClientError for a name that no client can have.
func (c *Client) Warm(ctx context.Context, client string) ([]Warmed, error) {
	names, err := c.Reads(ctx, client)
	if err != nil {
		return nil, err
	}
	var feeds []Feed
	var keys []string
	for _, name := range names {
		if f, err := c.Feed(name); err == nil {
			feeds, keys = append(feeds, f), append(keys, feed.Key(name, nil))
		}
	}
	out := make([]Warmed, 0, len(feeds))
	if len(feeds) == 0 {
		return out, nil
	}
	heads, err := c.store.Heads(ctx, keys)
	if err != nil {
		return nil, err
	}
	now := c.now(ctx)
	for i, f := range feeds {
		w, err := c.warm(ctx, f, heads[i], now)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

func (c *Client) warm(ctx context.Context, f Feed, h feed.Head, now time.Time) (Warmed, error) {
	w := Warmed{Feed: f.Name, Action: WarmFresh, AgeMS: h.Age(now).Milliseconds(), TTLMS: f.TTL.Milliseconds()}
	pause := pauseOf(h, now)
	switch {
	case !dueToWarm(h, f.TTL, now):
		return w, nil
	case f.Pushed():
		w.Action = WarmPushed
		return w, nil
	case pause > 0:
		w.Action, w.RetryAfterMS = WarmFailing, pause.Milliseconds()
		return w, nil
	}
	job, err := c.Refresh(ctx, f, nil, h)
	var full *FullError
	switch {
	case errors.As(err, &full):
		w.Action, w.RetryAfterMS = WarmFull, full.RetryAfter.Milliseconds()
	case err != nil:
		return w, err
	case job == "": // somebody was quicker
	default:
		w.Action, w.Job = WarmRefreshing, job
	}
	return w, nil
}

package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"feedwarden/jobs/feed"
)

// NotReadyError says that a feed has no version to give yet.
type NotReadyError struct {
	Feed       string
	RetryAfter time.Duration
	Reason     string
}

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("feed %s has no version yet: %s", e.Feed, e.Reason)
}

// Read is what a reader gets.
type Read struct {
	feed.Version
	Head  feed.Head
	State string // fresh, stale, updating
	Age   time.Duration
}

const (
	// claimLife is how long a refresh holds its feed while nothing is heard of its job.
	claimLife = 90 * time.Second
	// refreshPause keeps readers of a failing feed from asking for a fetch each time.
	refreshPause = 30 * time.Second
)

// Read gives a reader the newest version at once, and asks for a refresh where
// it is stale. Only a feed that was never fetched makes a reader wait, up to
// wait; *NotReadyError where nothing came, with the job's own instant where
// its quota refused. *UnknownFeedError where there is no such feed.
func (c *Client) Read(ctx context.Context, name string, params map[string]string, wait time.Duration) (Read, error) {
	f, err := c.Feed(name)
	if err != nil {
		return Read{}, err
	}
	key := feed.Key(name, params)
	h, err := c.store.Head(ctx, key)
	if err != nil {
		return Read{}, err
	}
	if h.Empty() {
		if err := c.await(ctx, f, key, params, wait); err != nil {
			return Read{}, err
		}
		if h, err = c.store.Head(ctx, key); err != nil {
			return Read{}, err
		}
	}
	state := c.Freshen(ctx, f, params, h)
	v, err := c.store.Get(ctx, key, 0)
	if err != nil {
		return Read{}, err
	}
	return Read{Version: v, Head: h, State: state, Age: h.Age(time.Now())}, nil
}

// Freshen gives the state of a feed whose head was read, and asks for a refresh
// where it is stale by Redis's clock too. A reader is never made to wait, nor
// refused, for what comes of that.
func (c *Client) Freshen(ctx context.Context, f Feed, params map[string]string, h feed.Head) string {
	now := time.Now()
	state := h.State(now, f.TTL)
	if state != "stale" || f.Pushed() || pauseOf(h, now) > 0 {
		return state
	}
	// A process whose clock is ahead would find stale what has just come, and ask for ever.
	if now = c.now(ctx); h.State(now, f.TTL) != "stale" || pauseOf(h, now) > 0 {
		return h.State(now, f.TTL)
	}
	if _, err := c.Refresh(ctx, f, params, h); err != nil {
		c.log.Warn("could not ask for a refresh", "feed", f.Name, "error", err)
		return state
	}
	return "updating"
}

// Await asks for the first version of a feed and waits for it, up to wait;
// *NotReadyError where nothing came.
func (c *Client) Await(ctx context.Context, f Feed, wait time.Duration) error {
	return c.await(ctx, f, feed.Key(f.Name, nil), nil, wait)
}

// await asks for the first version and waits for it.
func (c *Client) await(ctx context.Context, f Feed, key string, params map[string]string, wait time.Duration) error {
	notReady := notReadyFor(f.Name)
	if h, err := c.store.Head(ctx, key); err != nil {
		return err
	} else if !h.Empty() {
		return nil // it has come meanwhile
	} else if pause := pauseOf(h, c.now(ctx)); pause > 0 {
		// Readers of a feed that fails do not make it fail faster, nor spend its quota.
		return notReady(pause, "its last fetch failed: "+h.LastError)
	}
	if wait > 0 {
		if bare := notReady; f.Pushed() {
			notReady = func(after time.Duration, reason string) error { return bare(after, reason+": "+nothingPushed) }
		}
		return c.vigils.wait(ctx, key, wait, notReady, func(ctx context.Context) error { return c.watch(ctx, f, key, params) })
	}
	if f.Pushed() {
		return notReady(refreshPause, nothingPushed)
	}
	job, err := c.Refresh(ctx, f, params, feed.Head{Key: key})
	if err != nil || job == "" {
		return whenFull(err, notReady)
	}
	if j, err := c.Get(ctx, job); err == nil && j.State == Snoozed && j.NextAt != nil {
		return notReady(j.NextAt.Sub(c.now(ctx)), j.LastError)
	}
	return notReady(2*time.Second, "its first fetch is under way")
}

// pauseOf is how long readers ask for no fetch of a feed that has just failed. A
// failure that lies ahead is of a clock that has been set right since.
func pauseOf(h feed.Head, now time.Time) time.Duration {
	if ago := now.Sub(h.LastErrorAt); ago > -clockLimit {
		return max(refreshPause-max(ago, 0), 0)
	}
	return 0
}

const nothingPushed = "it is filled by scripts (feedwarden feeds put, or PUT), and none has put anything into it yet"

// notReadyFor makes the error of one feed's readers.
func notReadyFor(name string) func(time.Duration, string) error {
	return func(after time.Duration, reason string) error {
		return &NotReadyError{Feed: name, RetryAfter: max(after, time.Second), Reason: reason}
	}
}

// errLanded says that the version is there that was to be asked for.
var errLanded = errors.New("jobs: the version has landed")

// watch asks for a fetch once the feed's events are heard, and waits until
// they say what came of it.
func (c *Client) watch(ctx context.Context, f Feed, key string, params map[string]string) error {
	notReady := notReadyFor(f.Name)
	var job string
	var bad error
	err := c.store.Watch(ctx, key, func() error {
		if f.Pushed() {
			return nil
		}
		var err error
		if job, err = c.Refresh(ctx, f, params, feed.Head{Key: key}); err != nil {
			return err
		}
		if job == "" {
			return errLanded
		}
		// A refusal that came before the channel was open is in the job's record.
		if j, err := c.Get(ctx, job); err == nil && j.State == Snoozed && j.NextAt != nil {
			bad = notReady(j.NextAt.Sub(c.now(ctx)), j.LastError)
			return bad
		}
		return nil
	}, func(e feed.Event) bool {
		switch {
		case e.Version == 0 && e.Job != job:
			return false // another job of this feed
		case !e.SnoozedUntil.IsZero():
			bad = notReady(e.SnoozedUntil.Sub(c.now(ctx)), "its job waits for its quota until "+e.SnoozedUntil.UTC().Format(time.RFC3339))
			return true
		case e.Failed:
			bad = notReady(refreshPause, "its first fetch failed; the job's record says why")
			return true
		}
		return e.Version > 0
	})
	switch {
	case bad != nil:
		return bad
	case errors.Is(err, errLanded):
		return nil
	}
	return whenFull(err, notReady)
}

// whenFull makes what a full queue says an answer to readers.
func whenFull(err error, notReady func(time.Duration, string) error) error {
	var full *FullError
	if errors.As(err, &full) {
		return notReady(full.RetryAfter, full.Error())
	}
	return err
}

// Refresh asks for one fetch of a feed on behalf of readers, unless one that a
// reader asked for is in flight. It answers the job that does it; "" where the
// feed was fetched since seen was read.
func (c *Client) Refresh(ctx context.Context, f Feed, params map[string]string, seen feed.Head) (string, error) {
	id, ended := NewID(), ""
	for range 3 {
		holder, err := c.store.Claim(ctx, seen, id, ended, claimLife)
		if err != nil || holder == "" {
			return "", err
		}
		if holder == id {
			break
		}
		j, err := c.Get(ctx, holder)
		if err == nil && !j.State.Ended() {
			return holder, nil
		}
		if err != nil && !errors.Is(err, ErrNoJob) {
			return "", err
		}
		if errors.Is(err, ErrNoJob) {
			// Claimed a moment ago and not yet enqueued: its claim ends by itself.
			return holder, nil
		}
		ended = holder
	}
	if _, err := c.Enqueue(ctx, Spec{Feed: f.Name, Params: params, Priority: Interactive, ID: id}); err != nil {
		if herr := c.store.Hold(ctx, seen.Key, id, 0); herr != nil {
			c.log.Warn("could not give up a refresh claim", "feed", f.Name, "error", herr)
		}
		return "", err
	}
	return id, nil
}

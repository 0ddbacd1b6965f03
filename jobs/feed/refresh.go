package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
)

// Claim asks for the one refresh that readers may have in flight. It answers
// the job that holds it: job itself when the claim is ours. A claim ends after
// life, so a job that died does not hold the feed; ended names a holder that
// the caller knows to have ended, which is replaced at once. seen is the head
// for which a refresh is wanted: "" where the feed was fetched since.
func (s *Store) Claim(ctx context.Context, seen Head, job, ended string, life time.Duration) (string, error) {
	fetched := ""
	if !seen.FetchedAt.IsZero() {
		fetched = strconv.FormatInt(seen.FetchedAt.UnixMilli(), 10)
	}
	holder, err := s.desk.Run(ctx, claimScript, []string{refreshKey(seen.Key), headKey(seen.Key)}, job, life.Milliseconds(), ended, fetched).Text()
	if err != nil {
		return "", fmt.Errorf("feed: claim refresh of %q: %w", seen.Key, err)
	}
	return holder, nil
}

// Hold keeps job's claim for another life; 0 ends it. Another job's claim is left alone.
func (s *Store) Hold(ctx context.Context, key, job string, life time.Duration) error {
	if err := s.desk.Run(ctx, releaseScript, []string{refreshKey(key)}, job, life.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("feed: hold refresh of %q: %w", key, err)
	}
	return nil
}

// HoldInto adds Hold to a batch that somebody else sends.
func (s *Store) HoldInto(b *luarun.Batch, key, job string, life time.Duration) {
	b.Script(releaseScript, []string{refreshKey(key)}, job, life.Milliseconds())
}

// SetTickJob remembers the last tick's job, for the overlap rule.
func (s *Store) SetTickJob(ctx context.Context, key, job string) error {
	if err := s.rdb.Set(ctx, tickKey(key), job, 30*24*time.Hour).Err(); err != nil {
		return fmt.Errorf("feed: last tick of %q: %w", key, err)
	}
	return nil
}

// Announce tells those who wait for a feed that its job sleeps until then.
func (s *Store) Announce(ctx context.Context, key, job string, until time.Time) error {
	text := "snoozed " + strconv.FormatInt(until.UnixMilli(), 10) + " " + job
	if err := s.rdb.Publish(ctx, eventChannel(key), text).Err(); err != nil {
		return fmt.Errorf("feed: announce %q: %w", key, err)
	}
	return nil
}

// Event is what a waiting reader hears.
type Event struct {
	Version      int64     // a version is there
	Job          string    // whom the rest is about
	SnoozedUntil time.Time // it sleeps until then
	Failed       bool      // its fetch failed
}

// Watch calls f for every event of a feed until f answers true or ctx ends.
// The poll behind the channel finds a version whose message was lost. ready
// is called once the channel is open: what is asked for after that is heard.
func (s *Store) Watch(ctx context.Context, key string, ready func() error, f func(Event) bool) error {
	sub := s.rdb.Subscribe(ctx, eventChannel(key))
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return fmt.Errorf("feed: watch %q: %w", key, err)
	}
	if err := ready(); err != nil {
		return err
	}
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	messages := sub.Channel()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m, ok := <-messages:
			if !ok {
				return errors.New("feed: watch ended: connection closed")
			}
			if e, ok := parseEvent(m.Payload); ok && f(e) {
				return nil
			}
		case <-poll.C:
			h, err := s.Head(ctx, key)
			if err != nil {
				return err
			}
			if !h.Empty() && f(Event{Version: h.Version}) {
				return nil
			}
		}
	}
}

func parseEvent(text string) (Event, bool) {
	what, rest, _ := strings.Cut(text, " ")
	switch what {
	case "version":
		n, err := strconv.ParseInt(rest, 10, 64)
		return Event{Version: n}, err == nil
	case "snoozed":
		ms, job, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(ms, 10, 64)
		return Event{SnoozedUntil: time.UnixMilli(n), Job: job}, err == nil
	case "failed":
		return Event{Failed: true, Job: rest}, true
	}
	return Event{}, false
}

// SavePartial keeps what a job has read before it stopped, for life.
func (s *Store) SavePartial(ctx context.Context, key, job string, data []byte, life time.Duration) error {
	if err := s.rdb.Set(ctx, partialKey(key, job), data, life).Err(); err != nil {
		return fmt.Errorf("feed: keep pages of %q: %w", key, err)
	}
	return nil
}

// Partial gives what SavePartial kept; nil where there is nothing.
func (s *Store) Partial(ctx context.Context, key, job string) ([]byte, error) {
	data, err := s.rdb.Get(ctx, partialKey(key, job)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("feed: pages of %q: %w", key, err)
	}
	return data, nil
}

// DropPartial forgets it.
func (s *Store) DropPartial(ctx context.Context, key, job string) error {
	if err := s.rdb.Del(ctx, partialKey(key, job)).Err(); err != nil {
		return fmt.Errorf("feed: pages of %q: %w", key, err)
	}
	return nil
}

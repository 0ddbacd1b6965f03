package jobs

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
)

// Priority names the queue of a job.
type Priority string

// The priorities of a job; each is a queue.
const (
	Interactive Priority = QueueInteractive
	Background  Priority = QueueScheduled
)

// Spec is one job to enqueue.
type Spec struct {
	Feed     string
	Params   map[string]string // override the feed's own, for this job
	Priority Priority          // "" is Interactive: somebody asked by hand
	At       time.Time         // not before; zero: now
	In       time.Duration     // not before so long from now, by Redis's clock; with it At is none
	Expires  time.Duration     // 0: as the feed says
	ID       string            // "" makes one
	Tick     time.Time         // the nominal instant, for ticks
}

// FullError says that a queue takes no more jobs for now.
type FullError struct {
	Queue      string
	Limit      int64
	RetryAfter time.Duration
}

func (e *FullError) Error() string {
	return fmt.Sprintf("queue %s is full: it holds its limit of %d jobs; try again in %s", e.Queue, e.Limit, e.RetryAfter)
}

// SpecError says what is wrong with a job that was asked for.
type SpecError struct{ Problem string }

func (e *SpecError) Error() string { return e.Problem }

// IDTakenError says that the ID asked for belongs to a job of another feed.
type IDTakenError struct{ ID, Feed string }

func (e *IDTakenError) Error() string {
	return fmt.Sprintf("id %q is taken by a job of feed %q: choose another", e.ID, e.Feed)
}

// Client enqueues jobs and tells where they are.
type Client struct {
	rdb       redis.UniversalClient
	cfg       Config
	catalog   *Catalog
	store     *feed.Store
	limiter   Limiter
	leases    *quota.Leases
	pacer     *pacer
	desk      *luarun.Desk
	asynq     *asynq.Client
	inspector *asynq.Inspector
	log       *slog.Logger
	vigils    vigils
	reads     reads
}

// NewClient makes a client with a catalog of its own; it does no I/O.
func NewClient(cfg Config, rdb redis.UniversalClient, store *feed.Store, limiter Limiter, log *slog.Logger) (*Client, error) {
	c, err := NewCatalog(cfg.Feeds)
	if err != nil {
		return nil, err
	}
	return newClient(cfg, c, rdb, store, limiter, quota.NewLeases(rdb), log), nil
}

func newClient(cfg Config, c *Catalog, rdb redis.UniversalClient, store *feed.Store, limiter Limiter, leases *quota.Leases, log *slog.Logger) *Client {
	return &Client{rdb: rdb, cfg: cfg, catalog: c, store: store, limiter: limiter, leases: leases, pacer: newPacer(rdb, cfg.PerHost.Delay), log: log,
		desk: luarun.NewDesk(rdb), asynq: asynq.NewClientFromRedisClient(rdb), inspector: asynq.NewInspectorFromRedisClient(rdb)}
}

// Feeds are the feeds of the config, sorted by name.
func (c *Client) Feeds() []Feed { return c.catalog.Feeds() }

// Feed finds one feed; *UnknownFeedError where there is none.
func (c *Client) Feed(name string) (Feed, error) {
	f, _, err := c.catalog.find(name)
	return f, err
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@~+=-]{0,127}$`)

// NewID makes an ID for an ad-hoc job.
func NewID() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b)
	return "job-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// Enqueue puts one job into its queue and answers its state. An ID that a job
// of the same feed has already answers that job: asking twice is asking once.
// Errors: *UnknownFeedError, *SpecError, *IDTakenError, *FullError.
func (c *Client) Enqueue(ctx context.Context, s Spec) (Job, error) {
	f, err := c.check(&s)
	if err != nil {
		return Job{}, err
	}
	tick := !s.Tick.IsZero()
	switch {
	case s.ID == "":
		s.ID = NewID()
	case !tick: // a tick's ID can only be in its own queue, and there asynq finds it
		if j, ok, err := c.same(ctx, s); ok || err != nil {
			return j, err
		}
	}
	queue := string(s.Priority)
	begun, start, err := c.room(ctx, queue, s.ID)
	if tick && (begun || err != nil) {
		if j, ok, serr := c.same(ctx, s); ok || serr != nil {
			return j, serr
		}
	}
	if err != nil {
		return Job{}, err
	}
	p := payload{Feed: s.Feed, Params: s.Params}
	j := Job{ID: s.ID, Feed: s.Feed, Queue: queue, State: Pending, Params: s.Params}
	if !s.Tick.IsZero() {
		t := s.Tick.UTC()
		p.Tick = &t
		text := t.Format(time.RFC3339)
		j.Tick = &text
	}
	opts := []asynq.Option{asynq.TaskID(s.ID), asynq.Queue(queue), asynq.MaxRetry(maxRetry), asynq.Retention(retention), asynq.Timeout(taskTimeout)}
	if s.In > 0 {
		s.At = start.Add(s.In)
	}
	if s.At.After(start) {
		// asynq's scheduled set has whole seconds, rounded down; the waker has
		// the exact instant and comes first.
		opts = append(opts, asynq.ProcessAt(s.At.Add(fallback)))
		at := s.At.UTC()
		j.State, j.NextAt = Scheduled, &at
		start = s.At
	}
	expires := s.Expires
	if expires == 0 {
		expires = f.Expires
	}
	if expires > 0 {
		p.ExpiresAt = start.Add(expires).UnixMilli()
	}
	body, err := p.encode()
	if err != nil {
		c.leavePlace(ctx, queue, s.ID, s.Feed)
		return Job{}, &SpecError{err.Error()}
	}
	// Its place is held for longer than this; the next who asks sees that the task has come.
	soon, cancel := context.WithTimeout(ctx, enqueueWithin)
	defer cancel()
	_, err = c.asynq.EnqueueContext(soon, asynq.NewTask(TaskType, body), opts...)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		if j, ok, serr := c.same(ctx, s); ok || serr != nil {
			return j, serr
		}
		return Job{}, fmt.Errorf("jobs: id %q is taken by a task that cannot be read", s.ID)
	}
	if err != nil {
		return Job{}, fmt.Errorf("jobs: enqueue %q: %w", s.ID, err)
	}
	if j.State == Scheduled {
		if err := c.rdb.ZAdd(ctx, wakeKey(queue), redis.Z{Score: wakeScore(s.At), Member: s.ID}).Err(); err != nil {
			c.log.Warn("could not note a job's exact instant; it comes some seconds later", "job", s.ID, "feed", s.Feed, "error", err)
		}
	}
	return j, nil
}

// latestYear is the last that RFC 3339 can write; in it no job is due, so that
// what is added to an instant stays within.
const latestYear = 9999

// check makes a spec whole and finds its feed.
func (c *Client) check(s *Spec) (Feed, error) {
	f, _, err := c.catalog.find(s.Feed)
	if err != nil {
		return f, err
	}
	if f.Pushed() {
		return f, &SpecError{fmt.Sprintf("feed %s is filled by scripts, and never fetched: put content into it (feedwarden feeds put %s)", f.Name, f.Name)}
	}
	switch s.Priority {
	case "":
		s.Priority = Interactive
	case Interactive, Background:
	default:
		return f, &SpecError{fmt.Sprintf("priority %q: it is interactive or scheduled", s.Priority)}
	}
	if s.ID != "" && !idPattern.MatchString(s.ID) {
		return f, &SpecError{fmt.Sprintf("id %q: 1 to 128 of letters, digits and . _ : @ ~ + = -, beginning with a letter or digit", s.ID)}
	}
	if s.At.UTC().Year() >= latestYear {
		return f, &SpecError{fmt.Sprintf("at %s: the year %d at the latest", s.At.Format(time.RFC3339), latestYear-1)}
	}
	if s.Expires < 0 {
		return f, &SpecError{fmt.Sprintf("expires %s: it cannot be negative", s.Expires)}
	}
	for k := range s.Params {
		if k == "" {
			return f, &SpecError{"a parameter has no name: k=v is wanted"}
		}
	}
	return f, nil
}

// same finds the job that has the ID already.
func (c *Client) same(ctx context.Context, s Spec) (Job, bool, error) {
	j, err := c.Get(ctx, s.ID)
	switch {
	case errors.Is(err, ErrNoJob):
		return Job{}, false, nil
	case err != nil:
		return Job{}, false, err
	case j.Feed != s.Feed:
		return Job{}, false, &IDTakenError{s.ID, j.Feed}
	}
	return j, true, nil
}

package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// CopiesConfig says what Copies hold; zero values are the defaults.
type CopiesConfig struct {
	Bytes int64 // what all copies may weigh: 64 MiB. A copy of more than a quarter of it is not held
	// Safety is the longest that a copy is given without a look at Redis: 2 s.
	// Messages drop a copy sooner; this is for those that were lost.
	Safety time.Duration
	// Encode makes the body that Copy.Body holds; nil makes none.
	Encode func(key string, v Version) ([]byte, error)
	Log    *slog.Logger
}

// Copies are versions held in this process in front of Redis. A hit costs no
// call and no encoding.
//
// A copy is dropped by the message of a new or renewed version, which one
// subscription to all feeds hears. While that subscription is known to be
// down, every read looks at the feed's head; a loss that is not known yet is
// bounded by Safety.
//
// No reader is given an older version after a newer one: a load that brings
// less than was given before is made again, at growing distances, and only
// when Redis says the same each time is it believed: then Redis has lost its
// data (a restart without persistence, a failover that lost writes), and what
// it has is the truth again.
//
// Safe for concurrent use. It begins to listen with the first Get; Close ends it.
type Copies struct {
	store *Store
	cfg   CopiesConfig

	entries sync.Map     // key → *entry
	terms   atomic.Int64 // subscriptions that were begun
	live    atomic.Int64 // term of the subscription that hears; 0 while none does
	clock   atomic.Int64 // ticks with every use, for what is evicted first
	loads   atomic.Int64

	mu     sync.Mutex
	bytes  int64
	cancel context.CancelFunc
	done   chan struct{}
	closed bool
}

// entry is a feed's place. It stays when its copy is evicted: what was given
// once is not forgotten. There is one for every feed of the config that was
// ever asked for.
type entry struct {
	now  atomic.Pointer[held]
	used atomic.Int64
	news atomic.Int64 // ticks with every message about the feed

	mu     sync.Mutex
	flight *flight
	given  int64 // the newest version that anybody was given; of the flight under way
}

// held is a copy and how long it is good.
type held struct {
	*Copy
	term  int64 // of the subscription
	news  int64 // entry.news when its load began
	until time.Time
}

// flight is one look at Redis, for all who wait for it.
type flight struct {
	done chan struct{}
	copy *Copy
	err  error
}

// NewCopies makes copies of a store's versions; it does no I/O.
func NewCopies(store *Store, cfg CopiesConfig) *Copies {
	if cfg.Bytes <= 0 {
		cfg.Bytes = 64 << 20
	}
	if cfg.Safety <= 0 {
		cfg.Safety = 2 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Copies{store: store, cfg: cfg}
}

// Get gives the newest version. ErrNoVersion where there is none yet.
func (c *Copies) Get(ctx context.Context, key string) (*Copy, error) {
	e := c.entry(key)
	e.used.Store(c.clock.Add(1))
	if h := e.now.Load(); c.good(e, h) {
		return h.Copy, nil
	}
	if err := c.listen(); err != nil { //nolint:contextcheck // it hears for all who come after
		return nil, err
	}
	// A look that began before this reader came may have missed what it is to
	// see: the one after that has not, and is shared by all who waited.
	for waited := false; ; waited = true {
		e.mu.Lock()
		f := e.flight
		if f == nil {
			if h := e.now.Load(); c.good(e, h) { // a look ended between this reader's and its turn
				e.mu.Unlock()
				return h.Copy, nil
			}
			f = &flight{done: make(chan struct{})}
			e.flight = f
			e.mu.Unlock()
			c.fly(ctx, key, e, f)
			return f.copy, f.err
		}
		e.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if h := e.now.Load(); c.good(e, h) {
			return h.Copy, nil
		}
		if waited || f.err != nil && !errors.Is(f.err, ErrNoVersion) {
			return f.copy, f.err
		}
	}
}

// flyTime bounds a look at Redis.
const flyTime = 5 * time.Second

func (c *Copies) fly(ctx context.Context, key string, e *entry, f *flight) {
	// It is for all who wait, so the first one's leaving does not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flyTime)
	defer cancel()
	f.copy, f.err = c.load(ctx, key, e)
	e.mu.Lock()
	e.flight = nil
	e.mu.Unlock()
	close(f.done)
}

// Saw says that a reader of this process was shown a head that was read from
// Redis: no older version is given after it.
func (c *Copies) Saw(h Head) {
	e := c.entry(h.Key)
	if now := e.now.Load(); now != nil && now.Head.Version < h.Version {
		e.news.Add(1)
	}
}

// Doubt makes the next Get look at Redis: whoever asks next may know of a
// version whose message has not been heard yet.
func (c *Copies) Doubt(key string) { c.entry(key).news.Add(1) }

// Loads is how often Redis was asked.
func (c *Copies) Loads() int64 { return c.loads.Load() }

func (c *Copies) entry(key string) *entry {
	if e, ok := c.entries.Load(key); ok {
		return e.(*entry) //nolint:forcetypeassert // nothing else is stored
	}
	e, _ := c.entries.LoadOrStore(key, &entry{})
	return e.(*entry) //nolint:forcetypeassert // nothing else is stored
}

// good says that a copy can be given without a look at Redis.
func (c *Copies) good(e *entry, h *held) bool {
	return h != nil && h.term != 0 && h.term == c.live.Load() && h.news == e.news.Load() && time.Now().Before(h.until)
}

// patience is how long after one another the loads are that must agree on a
// version which is older than one that was given.
var patience = []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond}

// load reads the newest version; one at a time for an entry.
func (c *Copies) load(ctx context.Context, key string, e *entry) (*Copy, error) {
	var lost int64 = -1 // the version that Redis said last
	for _, pause := range patience {
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		h := &held{term: c.live.Load(), news: e.news.Load(), until: time.Now().Add(c.cfg.Safety)}
		got, err := c.read(ctx, key, e.now.Load())
		if err != nil && !errors.Is(err, ErrNoVersion) {
			return nil, err
		}
		version := int64(0)
		if err == nil {
			version = got.Head.Version
		}
		if version < e.given && (lost != version || pause != patience[len(patience)-1]) {
			lost = version
			continue
		}
		if version < e.given {
			c.cfg.Log.Warn("Redis has lost versions of a feed; what it has now is given", "feed", key, "given", e.given, "has", version)
		}
		e.given = version
		if err != nil {
			c.keep(e, nil)
			return nil, err
		}
		h.Copy = got
		c.keep(e, h)
		return got, nil
	}
	return nil, fmt.Errorf("feed: read %q: version %d was given, and Redis answers older ones that differ from each other", key, e.given)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// chases is how often content is asked for that a newer version may have pushed
// out of a short history meanwhile.
const chases = 20

// read asks Redis: the head, and the content where it is another than before.
// Both are of one version.
func (c *Copies) read(ctx context.Context, key string, before *held) (*Copy, error) {
	c.loads.Add(1)
	var missing Head
	for range chases {
		head, err := c.store.Head(ctx, key)
		if err != nil {
			return nil, err
		}
		if head.Empty() || head.same(missing) {
			return nil, fmt.Errorf("%w: %q has none", ErrNoVersion, key)
		}
		if before != nil && before.Head.same(head) {
			return &Copy{Head: head, Meta: before.Meta, Raw: before.Raw, Body: before.Body}, nil
		}
		v, err := c.store.numbered(ctx, key, head.Version)
		if errors.Is(err, ErrNoVersion) {
			missing = head
			continue
		}
		if err != nil {
			return nil, err
		}
		got := &Copy{Head: head, Meta: v.Meta, Raw: v.Raw}
		if c.cfg.Encode != nil {
			if got.Body, err = c.cfg.Encode(key, v); err != nil {
				return nil, err
			}
		}
		return got, nil
	}
	return nil, fmt.Errorf("feed: read %q: others store versions faster than this one can follow", key)
}

// same says that two heads are of the same bytes.
func (h Head) same(o Head) bool {
	return h.Version == o.Version && h.Hash == o.Hash && h.StoredAt.Equal(o.StoredAt)
}

// listen begins to hear what is new, once.
func (c *Copies) listen() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return redis.ErrClosed
	}
	if c.cancel != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.done = cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		c.hear(ctx)
	}()
	return nil
}

// Close ends listening. A Get after it is an error.
func (c *Copies) Close() {
	c.mu.Lock()
	c.closed = true
	cancel, done := c.cancel, c.done
	c.mu.Unlock()
	c.live.Store(0)
	if cancel != nil {
		cancel()
		<-done
	}
}

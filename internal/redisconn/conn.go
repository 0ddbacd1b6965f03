package redisconn

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says which Redis, and where an embedded one keeps its data.
type Config struct {
	// URL is one of
	//
	//	embedded
	//	redis://[USER:PASSWORD@]HOST[:6379][/DB]                 rediss:// the same over TLS
	//	redis+sentinel://[USER:PASSWORD@]HOST[:26379],…/PRIMARY[/DB]     rediss+sentinel://
	//	redis+cluster://[USER:PASSWORD@]HOST[:6379],…                    rediss+cluster://
	//	unix://[USER:PASSWORD@]/path/to/redis.sock[?db=DB]
	//
	// TLS takes ca=, cert=, key= (PEM files; without ca the system's roots) and
	// server_name=; Sentinel takes sentinel_user= and sentinel_password=.
	// A user may be empty (":PASSWORD@").
	URL string
	// Data is the directory of an embedded server; made, mode 0700, where it is missing.
	Data string
	// Server forces the kind of embedded server: "auto" (or ""), "redis-server" or "miniredis".
	Server string
	// LoadWait is how long a Redis that is still reading its data is waited for; 0 is one minute.
	LoadWait time.Duration
	Guard    Guard
	Logger   *slog.Logger
}

// Guard says how a process keeps from writing to a primary that lacks what was
// written before.
type Guard int

const (
	// GuardStart refuses a Redis where another process has raised the alarm: for
	// a process that lives shortly.
	GuardStart Guard = iota
	// GuardAlways also watches the primary, leaves marks there, and raises the alarm.
	GuardAlways
	// GuardNone is for whoever looks into the alarm.
	GuardNone
)

// Conn is the Redis of this process. Safe for concurrent use.
type Conn struct {
	target   target
	embedded *embedded // nil unless the URL says embedded
	loadWait time.Duration
	guard    Guard
	watch    *watcher // nil unless the guard is GuardAlways
	log      *slog.Logger
	client   redis.UniversalClient

	mu      sync.Mutex
	started bool
	closed  bool
}

// New reads the configuration and makes the client, without any I/O. A fault
// is a *URLError. Until Start has returned, calls on an embedded Redis fail.
func New(cfg Config) (*Conn, error) {
	t, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Conn{target: t, loadWait: cfg.LoadWait, guard: cfg.Guard, log: log}
	if c.loadWait <= 0 {
		c.loadWait = time.Minute
	}
	if t.kind == kindEmbedded {
		if c.embedded, err = newEmbedded(cfg.Data, cfg.Server, log); err != nil {
			return nil, err
		}
	}
	redis.SetLogger(clientLog{log})
	if c.guard == GuardAlways {
		c.watch = newWatcher(t.kind, c.memory, log)
	}
	c.client = c.newClient()
	return c, nil
}

// Open is New and Start.
func Open(ctx context.Context, cfg Config) (*Conn, error) {
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Start starts or joins an embedded server, waits for a Redis that is loading
// its data, and checks that this one can be used. An unreachable server is a
// *StartError within a few seconds, sooner when ctx ends; one too old matches
// ErrTooOld. Starting twice is one start; after a failure it can be tried again.
func (c *Conn) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("redis: start: %w", ErrClosed)
	}
	if c.started {
		return nil
	}
	if c.embedded != nil {
		if err := c.embedded.start(ctx); err != nil {
			return err
		}
	}
	if err := c.check(ctx); err != nil {
		if c.embedded != nil {
			c.embedded.close()
		}
		return err
	}
	c.started = true
	c.keepWatch(ctx)
	return nil
}

// Client is the client that this process shares. It is closed by Close.
func (c *Conn) Client() redis.UniversalClient { return c.client }

// NewClient makes a client with the same options and a pool of its own, a
// *redis.Client or a *redis.ClusterClient. The caller closes it.
func (c *Conn) NewClient() redis.UniversalClient { return c.newClient() }

// Mode is "embedded redis-server", "embedded miniredis", "embedded" (before
// Start), "single", "sentinel" or "cluster".
func (c *Conn) Mode() string {
	if c.embedded == nil {
		return string(c.target.kind)
	}
	if kind := c.embedded.kind(); kind != "" {
		return "embedded " + kind
	}
	return "embedded"
}

// Where says for a person which Redis this is. It holds no secret.
func (c *Conn) Where() string {
	if c.embedded != nil {
		return c.Mode() + " in " + c.embedded.dir
	}
	return c.target.String()
}

// Close closes the shared client and, where this process owns it, stops the
// embedded server. It is bounded by some seconds; closing twice is one close.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.watch != nil {
		c.watch.end()
	}
	err := c.client.Close()
	if c.embedded != nil {
		c.embedded.close()
	}
	if err != nil {
		return fmt.Errorf("redis: close: %w", err)
	}
	return nil
}

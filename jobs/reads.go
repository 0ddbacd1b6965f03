package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	readsKept   = 100                 // feeds remembered of a client
	clientsKept = 1000                // clients remembered
	readsLife   = 30 * 24 * time.Hour // after a client's last read
	readsEvery  = 200 * time.Millisecond
	readsHeld   = 10_000 // reads that wait to be written; more are forgotten
	readsTime   = 5 * time.Second
)

func readsKey(client string) string { return "fw:{client:" + client + "}:reads" } // zset: feed, instant of its last read in ms

const clientsKey = "fw:{clients}:seen" // zset: client, instant of its last read in ms

var clientPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@~+=-]{0,63}$`)

// ClientError says what is wrong with a client's name.
type ClientError struct{ Name string }

func (e *ClientError) Error() string {
	return fmt.Sprintf("client %q: 1 to 64 of letters, digits and . _ : @ ~ + = -, beginning with a letter or digit", e.Name)
}

// CheckClient is the *ClientError of a name that no client can have.
func CheckClient(name string) error {
	if !clientPattern.MatchString(name) {
		return &ClientError{name[:min(len(name), 80)]}
	}
	return nil
}

// reads gathers who read what, and writes it in batches: a read never waits
// for it.
type reads struct {
	mu      sync.Mutex
	pending map[read]int64
	timer   *time.Timer
	writing sync.WaitGroup
	closed  bool
}

type read struct{ client, feed string }

// Note remembers that a client has read a feed, for Warm. It does no I/O: what
// was noted is written within a moment, or forgotten where too much waits.
func (c *Client) Note(client, feed string) {
	r := &c.reads
	now := time.Now().UnixMilli()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.pending == nil {
		r.pending = map[read]int64{}
	}
	if len(r.pending) < readsHeld {
		r.pending[read{client, feed}] = now
	}
	if r.timer == nil {
		r.writing.Add(1)
		r.timer = time.AfterFunc(readsEvery, func() {
			defer r.writing.Done()
			c.writeReads()
		})
	}
}

// FlushReads writes what was noted, and takes no more.
func (c *Client) FlushReads() {
	r := &c.reads
	r.mu.Lock()
	r.closed = true
	stopped := r.timer != nil && r.timer.Stop()
	r.mu.Unlock()
	if stopped {
		r.writing.Done()
		c.writeReads()
	}
	r.writing.Wait()
}

func (c *Client) writeReads() {
	r := &c.reads
	r.mu.Lock()
	batch := r.pending
	r.pending, r.timer = nil, nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), readsTime)
	defer cancel()
	if err := saveReads(ctx, c.rdb, batch, c.log); err != nil {
		c.log.Warn("could not remember what clients read", "reads", len(batch), "error", err)
	}
}

func saveReads(ctx context.Context, rdb redis.UniversalClient, batch map[read]int64, log *slog.Logger) error {
	last := map[string]int64{}
	pipe := rdb.Pipeline()
	for r, at := range batch {
		pipe.ZAdd(ctx, readsKey(r.client), redis.Z{Score: float64(at), Member: r.feed})
		last[r.client] = max(last[r.client], at)
	}
	for client, at := range last {
		pipe.ZRemRangeByRank(ctx, readsKey(client), 0, -readsKept-1)
		pipe.PExpire(ctx, readsKey(client), readsLife)
		pipe.ZAdd(ctx, clientsKey, redis.Z{Score: float64(at), Member: client})
	}
	pipe.ZRemRangeByScore(ctx, clientsKey, "-inf", strconv.FormatInt(time.Now().Add(-readsLife).UnixMilli(), 10))
	pipe.PExpire(ctx, clientsKey, readsLife)
	count := pipe.ZCard(ctx, clientsKey)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("jobs: remember reads: %w", err)
	}
	over := count.Val() - clientsKept
	if over <= 0 {
		return nil
	}
	gone, err := rdb.ZPopMin(ctx, clientsKey, over).Result()
	if err != nil {
		return fmt.Errorf("jobs: forget clients: %w", err)
	}
	pipe = rdb.Pipeline()
	for _, z := range gone {
		if name, ok := z.Member.(string); ok {
			pipe.Del(ctx, readsKey(name))
		}
	}
	log.Info("clients that have not read for longest are forgotten", "clients", len(gone), "kept", clientsKept)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("jobs: forget clients: %w", err)
	}
	return nil
}

// Reads are the feeds that a client has read, the last one first.
func (c *Client) Reads(ctx context.Context, client string) ([]string, error) {
	if err := CheckClient(client); err != nil {
		return nil, err
	}
	names, err := c.rdb.ZRevRange(ctx, readsKey(client), 0, readsKept-1).Result()
	if err != nil {
		return nil, fmt.Errorf("jobs: reads of %q: %w", client, err)
	}
	return names, nil
}

package feed

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// hearIdle is how long nothing may be heard before the connection is asked
	// whether it lives; it has as long to answer.
	hearIdle = 3 * time.Second
	// hearAgain is the pause before a subscription that was lost is made anew.
	hearAgain = 200 * time.Millisecond
)

// allEvents matches the channels of all feeds. A Cluster passes a message on to
// every node, so one subscription at any of them hears all.
const allEvents = "fw:{feed:*}:events"

// hear keeps a subscription to all feeds until ctx ends. Every one that begins
// is a new term: what was held under another may have missed something.
func (c *Copies) hear(ctx context.Context) {
	for ctx.Err() == nil {
		term := c.terms.Add(1)
		err := c.subscription(ctx, term)
		heard := c.live.Swap(0) != 0
		if ctx.Err() == nil {
			if heard || term == 1 { // once an outage
				c.cfg.Log.Warn("feeds are read from Redis each time until its messages are heard again", "error", err)
			}
			_ = sleep(ctx, hearAgain)
		}
	}
}

func (c *Copies) subscription(ctx context.Context, term int64) error {
	sub := c.store.rdb.PSubscribe(ctx, allEvents)
	defer sub.Close()
	// A read of it is ended by its end alone.
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	asked := false
	for {
		m, err := sub.ReceiveTimeout(ctx, hearIdle)
		var slow net.Error
		switch {
		case errors.As(err, &slow) && slow.Timeout() && !asked:
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			asked = true
			continue
		case err != nil:
			return err
		}
		asked = false
		switch m := m.(type) {
		case *redis.Subscription:
			if m.Kind == "psubscribe" {
				c.live.Store(term)
			}
		case *redis.Message:
			if key, ok := keyOfChannel(m.Channel); ok {
				if e, ok := c.entries.Load(key); ok {
					e.(*entry).news.Add(1) //nolint:forcetypeassert // nothing else is stored
				}
			}
		}
	}
}

func keyOfChannel(channel string) (string, bool) {
	rest, ok := strings.CutPrefix(channel, "fw:{feed:")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "}:events")
}

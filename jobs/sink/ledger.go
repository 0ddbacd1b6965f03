package sink

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
)

//go:embed queue.lua
var queueSource string

//go:embed note.lua
var noteSource string

var (
	queueScript = redis.NewScript(queueSource)
	noteScript  = redis.NewScript(noteSource)
)

// Ledger is how far each sink of each feed has come.
type Ledger struct {
	rdb  redis.UniversalClient
	desk *luarun.Desk
}

// NewLedger makes one; it does no I/O.
func NewLedger(rdb redis.UniversalClient, desk *luarun.Desk) *Ledger { return &Ledger{rdb, desk} }

// Due is the first version that is not queued for a sink; newest+1 where all
// are. kept is how many versions the feed keeps: older ones are gone. anew says
// that newest was read after the ledger, so that a ledger which knows a newer one
// is wrong: the feed's keys were lost.
func (l *Ledger) Due(ctx context.Context, feed, sink string, newest int64, kept int, anew bool) (int64, error) {
	what := "ask"
	if anew {
		what = "anew"
	}
	return l.queue(ctx, feed, sink, newest, kept, what)
}

// Queued says that every version up to newest is in the queue.
func (l *Ledger) Queued(ctx context.Context, feed, sink string, newest int64) error {
	_, err := l.queue(ctx, feed, sink, newest, 1, "queued")
	return err
}

func (l *Ledger) queue(ctx context.Context, feed, sink string, newest int64, kept int, what string) (int64, error) {
	n, err := l.desk.Run(ctx, queueScript, []string{ledgerKey(feed)}, sink, newest, max(kept, 1), ledgerLife.Milliseconds(), what).Int64()
	if err != nil {
		return 0, fmt.Errorf("sink: ledger of %q: %w", feed, err)
	}
	return n, nil
}

// Note writes down how a try came out: why is "" where the version arrived;
// last says that it is not tried again.
func (l *Ledger) Note(ctx context.Context, feed, sink string, version int64, now time.Time, why string, last bool) error {
	flag := ""
	if last {
		flag = "1"
	}
	err := l.desk.Run(ctx, noteScript, []string{ledgerKey(feed)}, sink, version, now.UnixMilli(), why, flag, ledgerLife.Milliseconds()).Err()
	if err != nil {
		return fmt.Errorf("sink: ledger of %q: %w", feed, err)
	}
	return nil
}

// State is how far one sink has come.
type State struct {
	Sink         string    // its name
	Kind         string    // file, webhook, stream, stdout, s3
	Queued       int64     // every version up to this one is queued or has been
	Delivered    int64     // the newest version that has arrived; 0: none
	DeliveredAt  time.Time // when it did
	Deliveries   int64     // in all
	Failures     int64     // tries that failed, in all
	Lost         int64     // versions that are not tried again
	LastError    string    // "" once its version or a newer one has arrived
	LastErrorAt  time.Time
	ErrorVersion int64
}

// States reads the ledgers of feeds in one round trip. sinks are the feeds'
// sinks; those without a ledger are there as well, all zero.
func (l *Ledger) States(ctx context.Context, sinks map[string][]Config) (map[string][]State, error) {
	pipe := l.rdb.Pipeline()
	cmds := make(map[string]*redis.MapStringStringCmd, len(sinks))
	for feed, all := range sinks {
		if len(all) > 0 {
			cmds[feed] = pipe.HGetAll(ctx, ledgerKey(feed))
		}
	}
	if len(cmds) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("sink: read ledgers: %w", err)
	}
	out := make(map[string][]State, len(cmds))
	for feed, cmd := range cmds {
		for _, c := range sinks[feed] {
			out[feed] = append(out[feed], parseState(c, cmd.Val()))
		}
	}
	return out, nil
}

// parseState reads one sink's fields; unknown ones, a newer binary's, are left alone.
func parseState(c Config, m map[string]string) State {
	name := c.Name()
	num := func(f string) int64 { n, _ := strconv.ParseInt(m[name+":"+f], 10, 64); return n }
	at := func(f string) time.Time {
		if n := num(f); n > 0 {
			return time.UnixMilli(n).UTC()
		}
		return time.Time{}
	}
	return State{
		Sink: name, Kind: c.Kind(), Queued: num("queued"), Delivered: num("delivered"), DeliveredAt: at("delivered_ms"),
		Deliveries: num("deliveries"), Failures: num("failures"), Lost: num("lost"),
		LastError: m[name+":error"], LastErrorAt: at("error_ms"), ErrorVersion: num("error_version"),
	}
}

package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limiter answers charges. It holds no state of its own, and may be used by many
// goroutines, whose charges share calls when there is a crowd of them; limiters of other processes on the same Redis share its quotas.
type Limiter struct {
	settings
	rdb    redis.UniversalClient
	quotas atomic.Pointer[map[string]*bound]
	desk   *desk[Request, Answer]
}

// bound is what one quota needs for a call, made once.
type bound struct {
	Config
	keys []string
	args []any       // of every script, made once: the time and days are put in
	days []*calendar // of the calendar windows

	charge, hot opening
	haste       haste
}

// New makes a Limiter. It does no I/O. Its error joins every fault of the quotas.
func New(rdb redis.UniversalClient, quotas []Config, opts ...Option) (*Limiter, error) {
	l := &Limiter{rdb: rdb, settings: settle(opts)}
	l.desk = &desk[Request, Answer]{send: l.ChargeAll}
	if err := l.fault(); err != nil {
		return nil, err
	}
	if err := l.Reload(quotas); err != nil {
		return nil, err
	}
	return l, nil
}

// Reload replaces all quotas. Logs, lines and blocks in Redis stay: limits and
// windows apply to them as they are. On an error nothing changes.
func (l *Limiter) Reload(quotas []Config) error {
	bounds := make(map[string]*bound, len(quotas))
	var faults []error
	for _, c := range quotas {
		if err := c.faults(); err != nil {
			faults = append(faults, err)
		}
		if _, twice := bounds[c.Name]; twice {
			faults = append(faults, fmt.Errorf("quota: config %q: two quotas have this name; rename one", c.Name))
		}
		bounds[c.Name] = l.bind(c.withDefaults())
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	l.quotas.Store(&bounds)
	return nil
}

func (l *Limiter) bind(c Config) *bound {
	b := &bound{Config: c, keys: keys(l.prefix, c.Name)}
	numbers := packed(nil, c.keep().Microseconds(), c.Grace.Microseconds(), c.Reserve, int64(len(c.Windows)))
	for _, w := range c.Windows {
		if w.Calendar != "" {
			b.days = append(b.days, &calendar{zone: w.Location})
		}
		numbers = packed(numbers, w.Limit, w.Per.Microseconds())
	}
	log := c.keep() + margin
	b.args = []any{"", string(numbers), text(log.Milliseconds()), text(max(rest, log).Milliseconds())}
	b.charge, b.hot = openingOf(chargeScript, b.keys, b.args), openingOf(hotScript, hotKeys(b.keys), b.args)
	return b
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// Names are the quotas' names, sorted.
func (l *Limiter) Names() []string {
	var names []string
	for name := range *l.quotas.Load() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Config gives a quota as it was configured, defaults filled in.
func (l *Limiter) Config(name string) (Config, bool) {
	b, ok := (*l.quotas.Load())[name]
	if !ok {
		return Config{}, false
	}
	return b.Config.withDefaults(), true
}

// Charge takes r.Cost units of every window of a quota, or refuses. The errors
// are ErrUnknownQuota, ErrID, ErrLabel, ErrCost, *ImpossibleError (all before anything is
// charged), ErrClock, and Redis's own. An error is never a grant; after one that is
// Redis's own, ask again with the same ID.
func (l *Limiter) Charge(ctx context.Context, r Request) (Decision, error) {
	fail := func(err error) (Decision, error) {
		return Decision{}, fmt.Errorf("quota: charge %q: %w", r.Quota, err)
	}
	b, err := l.find(r.Quota)
	if err != nil {
		return fail(err)
	}
	if err := r.check(b.Config); err != nil {
		if isImpossible(err) {
			l.hopeless(ctx, r)
		}
		return fail(err)
	}
	a, err := l.desk.ask(ctx, r)
	if err != nil {
		return fail(err)
	}
	return a.Decision, a.Err
}

// hopeless takes out of the line who waits for more than there ever will be, since
// a limit was lowered. If that fails, its place goes when its grace is over.
func (l *Limiter) hopeless(ctx context.Context, r Request) { _ = l.Leave(ctx, r.Quota, r.ID) }

// Refund gives back what an ID was charged, and gives how much that was: 0 when
// there is nothing to refund, be it that it was never charged, was refunded
// before, or that no window counts it any more. It also takes the ID out of the
// line. The ID can be charged again.
func (l *Limiter) Refund(ctx context.Context, quota, id string) (restored int64, err error) {
	b, err := l.findID(quota, id)
	if err == nil {
		restored, err = refundScript.Run(ctx, l.rdb, b.keys, l.argsWith(b, id)...).Int64()
	}
	if err != nil {
		return 0, fmt.Errorf("quota: refund %q: %w", quota, scriptError(err))
	}
	return restored, nil
}

// Leave takes an ID out of the line. What it was granted stays charged.
func (l *Limiter) Leave(ctx context.Context, quota, id string) error {
	b, err := l.findID(quota, id)
	if err == nil {
		err = leaveScript.Run(ctx, l.rdb, b.keys, l.argsWith(b, id)...).Err()
	}
	if err != nil {
		return fmt.Errorf("quota: leave %q: %w", quota, scriptError(err))
	}
	return nil
}

// Block closes a quota for everybody for d, because of reason (shown to people;
// cut at 200 bytes). Of two blocks the one that ends later holds. What was
// granted stays granted; who asks meanwhile gets a place in the line.
func (l *Limiter) Block(ctx context.Context, quota string, d time.Duration, reason string) error {
	b, err := l.find(quota)
	switch {
	case err != nil:
	case d < time.Microsecond || d > maxPer:
		err = errBlock(d)
	default:
		err = blockScript.Run(ctx, l.rdb, b.keys, l.argsWith(b, d.Microseconds(), shortReason(reason))...).Err()
	}
	if err != nil {
		return fmt.Errorf("quota: block %q: %w", quota, scriptError(err))
	}
	return nil
}

// Unblock opens a quota again. Those in line keep their places.
func (l *Limiter) Unblock(ctx context.Context, quota string) error {
	b, err := l.find(quota)
	if err == nil {
		err = blockScript.Run(ctx, l.rdb, b.keys, l.argsWith(b, 0, "")...).Err()
	}
	if err != nil {
		return fmt.Errorf("quota: unblock %q: %w", quota, scriptError(err))
	}
	return nil
}

func (l *Limiter) find(name string) (*bound, error) {
	b, ok := (*l.quotas.Load())[name]
	if !ok {
		return nil, ErrUnknownQuota
	}
	return b, nil
}

func (l *Limiter) findID(name, id string) (*bound, error) {
	b, err := l.find(name)
	if err == nil && !validID(id) {
		err = ErrID
	}
	return b, err
}

// args are a script's arguments, in the order that frame.lua gives, with room for
// so many of its own.
func (l *Limiter) args(b *bound, own int) []any {
	args := append(make([]any, 0, len(b.args)+own), b.args...)
	l.present(b, args)
	return args
}

// present puts the time and the days into what is the same for all scripts.
func (l *Limiter) present(b *bound, args []any) {
	args[0] = l.instant()
	if len(b.days) > 0 {
		numbers := args[1].(string)
		for _, day := range b.days {
			numbers += day.edges(l.host())
		}
		args[1] = numbers
	}
}

func (l *Limiter) argsWith(b *bound, own ...any) []any { return append(l.args(b, len(own)), own...) }

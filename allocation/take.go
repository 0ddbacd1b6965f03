package allocation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// TakeOptions says for whom an endpoint is taken. Both are optional.
type TakeOptions struct {
	Key    string // sticky: calls with the same key get the same endpoint
	Target string // host that will be asked: its bans and pause are respected
}

// An Allocation is one pick, counted.
type Allocation struct {
	Pool, ID string
	URL      *url.URL // with credentials: never to be logged
	Count    int64    // recorded allocations of this endpoint, this one included
	Lease    string   // least-busy: the token that Report releases; else ""
	// PublicOnly: the pool allows no private addresses. Whoever dials must see to
	// it, for a host name may stand for any address by then.
	PublicOnly bool
}

// An EmptyError says that nothing is eligible now, and when something will be.
type EmptyError struct {
	Pool string
	// RetryAfter is the time to the next return; 0: nothing will become
	// eligible by itself, so the caller waits as long as it sees fit.
	RetryAfter time.Duration
	Target     string // not "": the pool is well, and this target is paused
	Busy       bool   // every eligible endpoint is at its cap; a release may come sooner
}

func (e *EmptyError) Error() string {
	what := "no endpoint is eligible"
	switch {
	case e.Target != "":
		what = "the target " + e.Target + " is paused"
	case e.Busy:
		what = "every eligible endpoint is at its cap"
	}
	if e.RetryAfter > 0 {
		return fmt.Sprintf("%s; the next chance is in %s", what, e.RetryAfter.Round(time.Millisecond))
	}
	return what + "; none will be by itself"
}

// ErrAlone: a no-repeat pool with `alone: stop` has only its last endpoint.
var ErrAlone = errors.New("only the endpoint of the last allocation is eligible, and the pool says stop")

// Take picks an endpoint by the pool's policy and counts it, in one script.
// Nothing eligible is an *EmptyError; ErrAlone and ErrUnknownPool are the others.
//
// Takes of one pool that are asked for while others are under way go to Redis
// together. Where its context ends while Redis picks, such a take returns, and the
// allocation is counted all the same; its lease is released. A take that went alone
// still gets its answer.
func (p *Pools) Take(ctx context.Context, pool string, t TakeOptions) (Allocation, error) {
	b, err := p.pool(pool)
	if err != nil {
		return Allocation{}, failed("take", pool, err)
	}
	a, err := b.desk.take(ctx, t)
	if err != nil {
		return Allocation{}, failed("take", pool, err)
	}
	return a, nil
}

// takeAll picks for all of asked in one script and answers each.
func (p *Pools) takeAll(ctx context.Context, pool string, asked []*ask) {
	c, err := p.pool(pool)
	var reply any
	if err == nil {
		reply, err = p.callTake(ctx, c, asked)
	}
	var told []string
	if err == nil {
		told, err = texts(reply, 4*len(asked))
	}
	for i, a := range asked {
		if err != nil {
			a.answer(Allocation{}, err)
			continue
		}
		a.answer(taken(c, targetName(a.Target), told[4*i:4*i+4]))
	}
}

func (p *Pools) callTake(ctx context.Context, c *bound, asked []*ask) (any, error) {
	this := c.calls.lend()
	defer c.calls.back(this)
	k := keysOf(c.Name)
	names := k.members(this.name)
	loan := ""
	if c.Policy == LeastBusy {
		names, loan = k.members(append([]string{this.name}, leaseKeys...)...), token()
	}
	place := func(name string) int {
		i := slices.Index(names, name)
		if i < 0 {
			i, names = len(names), append(names, name)
		}
		return i + 1
	}
	args := []any{c.start(), "", "", this.number, loan, len(asked)}
	bare := len(args)
	switch c.Policy {
	case NoRepeat:
		args[1] = c.Alone
	case LeastBusy:
		args[1], args[2] = c.Cap, c.Lease.Microseconds()
	case Sticky:
		args[1] = c.Stick.Milliseconds()
	}
	named := false
	for _, a := range asked {
		target, own := 0, 0
		if name := targetName(a.Target); name != "" {
			target = place(k.target(name))
		}
		if c.Policy == Sticky && a.Key != "" {
			own = place(k.prefix + "sticky:" + digest(a.Key))
		}
		args = append(args, target, own)
		named = named || target+own > 0
	}
	if !named {
		args = args[:bare]
	}
	for {
		reply, err := p.run(ctx, takeScripts[c.Policy], names, args...)
		if err != nil || reply != "again" {
			return reply, err
		}
		// The scores had fallen behind under another policy, and are mended a part at a time: see by_score.lua.
	}
}

// taken reads one take's part of the reply of take.lua.
func taken(c *bound, target string, told []string) (Allocation, error) {
	if told[0] == "" {
		return Allocation{}, emptied(c, target, told[2], told[3])
	}
	return c.allocation(told[0], told[1], told[2], told[3])
}

// allocation makes an Allocation of what a script gave.
func (c *bound) allocation(id, raw, count, lease string) (Allocation, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" { // the cause would quote the URL
		return Allocation{}, fmt.Errorf("the stored URL of %s is gone or broken: import it again", id)
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return Allocation{}, fmt.Errorf("the stored count of %s is broken: %w", id, err)
	}
	return Allocation{Pool: c.Name, ID: id, URL: u, Count: n, Lease: lease, PublicOnly: !c.AllowPrivate}, nil
}

// emptied makes the error of a take that gave nothing.
func emptied(c *bound, target, wait, reason string) error {
	e := &EmptyError{Pool: c.Name, Busy: reason == "busy"}
	if reason == "alone" && c.Alone == AloneStop {
		return ErrAlone
	}
	if reason == "target" {
		e.Target = target
	}
	if wait != "" {
		us, err := strconv.ParseFloat(wait, 64)
		if err != nil {
			return fmt.Errorf("unexpected wait in the reply: %w", err)
		}
		e.RetryAfter = time.Duration(us) * time.Microsecond
	}
	return e
}

func token() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

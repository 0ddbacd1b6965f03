package quota_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// stormEnv holds the orders of a process that is one of several.
const stormEnv = "QUOTA_STORM"

// orders are what a process of the storm is to do.
type orders struct {
	Process  int
	Redis    string // host:port
	Trailing string // names of the quotas
	Daily    string
	Midnight time.Time     // of the daily one's zone, in the midst of it
	Clock    time.Duration // by which this process's clock is off
	Callers  int
	For      time.Duration
}

// configs are the same for every process.
func (o orders) configs() []quota.Config {
	return []quota.Config{
		{Name: o.Trailing, Reserve: 60, Windows: []quota.Window{{Limit: 900, Per: time.Second}, {Limit: 300, Per: 250 * time.Millisecond}, {Limit: 2500, Per: 4 * time.Second}}},
		{Name: o.Daily, Windows: []quota.Window{{Limit: 200, Calendar: "day", Location: o.zone()}, {Limit: 150, Per: 5 * time.Second}}},
	}
}

// zone is one whose day ends at the midnight of the orders.
func (o orders) zone() *time.Location {
	seconds := -int(o.Midnight.Unix() % 86400)
	if seconds < -43200 {
		seconds += 86400
	}
	return time.FixedZone("soon", seconds)
}

// said is what a process was told of one charge.
type said struct {
	ID       string
	Quota    string
	Cost     int64
	Stamp    int64 // of the grant
	Granted  bool
	Refunded bool
	Left     bool // cancelled while it waited
}

// stormProcess runs the orders and writes what was said to standard output.
func stormProcess(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: o.Redis, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 20 * time.Millisecond})
	defer rdb.Close()
	l, err := quota.New(rdb, o.configs(), quota.WithEdgesAt(func() time.Time { return time.Now().Add(o.Clock) }))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.For)
	defer cancel()
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	var faults []error
	var callers sync.WaitGroup
	for g := range o.Callers {
		c := &caller{l: l, name: o.Trailing, who: fmt.Sprint("p", o.Process, "-g", g), rnd: rand.New(rand.NewPCG(uint64(o.Process), uint64(g)))}
		if g == 0 {
			c.name = o.Daily
		}
		callers.Go(func() {
			for ctx.Err() == nil {
				s, err := c.next(ctx)
				mu.Lock()
				faults = append(faults, err, out.Encode(s))
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return errors.Join(faults...)
}

// caller makes one charge after another.
type caller struct {
	l    *quota.Limiter
	name string
	who  string
	rnd  *rand.Rand
	n    int
}

// next sees one charge through: to its grant, a cancel, or the end.
func (c *caller) next(ctx context.Context) (said, error) {
	c.n++
	r := quota.Request{Quota: c.name, ID: c.who + "-" + strconv.Itoa(c.n), Cost: c.rnd.Int64N(7) + 1}
	if c.rnd.IntN(4) == 0 {
		r.Priority = quota.Interactive
	}
	r.NoLine = c.rnd.IntN(10) == 0
	s := said{ID: r.ID, Quota: r.Quota, Cost: r.Cost}
	for ctx.Err() == nil {
		d, err := c.ask(ctx, r)
		switch {
		case err != nil:
			pause(ctx, time.Duration(c.rnd.IntN(10)+1)*time.Millisecond) // unknown: the same ID again
		case d.Granted:
			s.Granted, s.Stamp = true, d.At.UnixMicro()
			return c.after(ctx, r, s)
		case c.rnd.IntN(50) == 0:
			s.Left = true
			return s, c.insist(ctx, func(ctx context.Context) error { return c.l.Leave(ctx, r.Quota, r.ID) })
		default:
			pause(ctx, d.RetryAfter)
		}
	}
	return s, nil // what is under way may still be granted
}

// ask asks alone, or twice in one call: refused as a newcomer, it may be granted
// as the last of the line at once.
func (c *caller) ask(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if c.rnd.IntN(3) > 0 {
		return c.l.Charge(ctx, r)
	}
	a := c.l.ChargeAll(ctx, []quota.Request{r, r})
	return a[1].Decision, a[1].Err
}

// after asks some IDs once more, and refunds some.
func (c *caller) after(ctx context.Context, r quota.Request, s said) (said, error) {
	switch c.rnd.IntN(20) {
	case 0, 1:
		d, err := c.l.Charge(ctx, r)
		if err == nil && (!d.Granted || d.At.UnixMicro() != s.Stamp || d.Cost != s.Cost) {
			return s, fmt.Errorf("%s, granted with %d, was then told %+v", r.ID, s.Stamp, d)
		}
	case 2:
		s.Refunded = true
		return s, c.insist(ctx, func(ctx context.Context) error {
			_, err := c.l.Refund(ctx, r.Quota, r.ID)
			return err
		})
	}
	return s, nil
}

// insist repeats a call until its reply has come, past the end if need be.
func (c *caller) insist(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	for {
		err := call(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, 5*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

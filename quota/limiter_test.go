package quota_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// hand is a clock that a test moves.
type hand struct{ micros atomic.Int64 }

var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newHand() *hand {
	h := &hand{}
	h.micros.Store(epoch.UnixMicro())
	return h
}

func (h *hand) now() time.Time      { return time.UnixMicro(h.micros.Load()).UTC() }
func (h *hand) set(t time.Time)     { h.micros.Store(t.UnixMicro()) }
func (h *hand) at(d time.Duration)  { h.set(epoch.Add(d)) }
func (h *hand) add(d time.Duration) { h.micros.Add(d.Microseconds()) }

// desk is one quota under test, with a clock that the test moves.
type desk struct {
	t    testing.TB
	ctx  context.Context
	rdb  redis.UniversalClient
	l    *quota.Limiter
	name string
	hand *hand
	cfg  quota.Config
	n    int
}

func open(t testing.TB, c quota.Config) *desk {
	t.Helper()
	d := &desk{t: t, ctx: context.Background(), rdb: connection(t), name: testredis.Name("q"), hand: newHand()}
	d.configure(c)
	return d
}

func (d *desk) configure(c quota.Config) {
	d.t.Helper()
	c.Name = d.name
	l, err := quota.New(d.rdb, []quota.Config{c}, quota.WithClock(d.hand.now))
	if err != nil {
		d.t.Fatal(err)
	}
	d.l, d.cfg = l, c
}

func window(limit int64, per time.Duration) quota.Config {
	return quota.Config{Windows: []quota.Window{{Limit: limit, Per: per}}}
}

func (d *desk) ask(r quota.Request) quota.Decision {
	d.t.Helper()
	r.Quota = d.name
	if r.ID == "" {
		d.n++
		r.ID = fmt.Sprintf("auto-%d", d.n)
	}
	got, err := d.l.Charge(d.ctx, r)
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

func (d *desk) charge(id string, cost int64) quota.Decision {
	d.t.Helper()
	return d.ask(quota.Request{ID: id, Cost: cost})
}

func (d *desk) grant(id string, cost int64) {
	d.t.Helper()
	if got := d.charge(id, cost); !got.Granted {
		d.t.Fatalf("%s, cost %d: refused (%s, %s), want granted", id, cost, got.Reason, got.RetryAfter)
	}
}

func (d *desk) refuse(id string, cost int64, after time.Duration, position int64, reason string) {
	d.t.Helper()
	got := d.charge(id, cost)
	if got.Granted || got.RetryAfter != after || got.Position != position || got.Reason != reason {
		d.t.Fatalf("%s, cost %d: granted %t after %s at %d (%s), want refused after %s at %d (%s)",
			id, cost, got.Granted, got.RetryAfter, got.Position, got.Reason, after, position, reason)
	}
}

func (d *desk) refund(id string, want int64) {
	d.t.Helper()
	got, err := d.l.Refund(d.ctx, d.name, id)
	if err != nil || got != want {
		d.t.Fatalf("refund %s = %d, %v, want %d", id, got, err, want)
	}
}

func (d *desk) state() quota.State {
	d.t.Helper()
	s, err := d.l.State(d.ctx, d.name)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// keys are all that the quota has in Redis.
func (d *desk) keys() (all []string) {
	d.t.Helper()
	var mu sync.Mutex
	look := func(ctx context.Context, node *redis.Client) error {
		found, err := node.Keys(ctx, d.key("*")).Result()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
		return err
	}
	var err error
	switch rdb := d.rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(d.ctx, look)
	case *redis.Client:
		err = look(d.ctx, rdb)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

func (d *desk) used(want int64) {
	d.t.Helper()
	if got := d.state().Windows[0].Used; got != want {
		d.t.Fatalf("used %d, want %d", got, want)
	}
}

func TestWaitUntilAsManyEntriesAsNeededHaveLeft(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Minute))
	d.grant("a", 40)
	d.hand.at(10 * time.Second)
	d.grant("b", 40)
	d.hand.at(20 * time.Second)
	d.grant("c", 20)
	d.hand.at(30 * time.Second)
	d.refuse("d", 60, 40*time.Second, 1, quota.ReasonWindow)
	d.hand.at(70*time.Second - time.Microsecond)
	d.refuse("d", 60, time.Millisecond, 1, quota.ReasonWindow)
	d.hand.at(70 * time.Second)
	d.grant("d", 60)
	d.used(80)
}

func TestRefusalsThatCostNothing(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Minute))
	d.grant("a", 98)
	d.refuse("heavy", 5, time.Minute, 1, quota.ReasonWindow)
	if got := d.charge("light", 2); got.Granted || got.Position != 2 || got.Reason != quota.ReasonLine {
		t.Fatalf("a newcomer while another waits: %+v", got)
	}
	if err := d.l.Leave(d.ctx, d.name, "heavy"); err != nil {
		t.Fatal(err)
	}
	d.grant("light", 2)
	d.used(100)
}

func TestUnknownNamesAndBadCostsWriteNothing(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Minute))
	for name, c := range map[string]struct {
		req  quota.Request
		want error
	}{
		"no such quota": {quota.Request{Quota: "other", ID: "a", Cost: 1}, quota.ErrUnknownQuota},
		"cost 0":        {quota.Request{Quota: d.name, ID: "a", Cost: 0}, quota.ErrCost},
		"cost -1":       {quota.Request{Quota: d.name, ID: "a", Cost: -1}, quota.ErrCost},
		"cost 2^53":     {quota.Request{Quota: d.name, ID: "a", Cost: 1 << 53}, quota.ErrCost},
		"no ID":         {quota.Request{Quota: d.name, Cost: 1}, quota.ErrID},
		"long ID":       {quota.Request{Quota: d.name, ID: strings.Repeat("x", 201), Cost: 1}, quota.ErrID},
		"odd ID":        {quota.Request{Quota: d.name, ID: "a\nb", Cost: 1}, quota.ErrID},
	} {
		if got, err := d.l.Charge(d.ctx, c.req); !errors.Is(err, c.want) || got.Granted {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
	var impossible *quota.ImpossibleError
	_, err := d.l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "a", Cost: 101})
	if !errors.As(err, &impossible) || *impossible != (quota.ImpossibleError{Quota: d.name, Cost: 101, Limit: 100}) {
		t.Errorf("cost above the limit: %v", err)
	}
	if found := d.keys(); len(found) > 0 {
		t.Errorf("keys written: %v", found)
	}
}

func TestRefundOnce(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Minute))
	d.grant("a", 15)
	d.grant("b", 10)
	d.refund("a", 15)
	d.refund("a", 0)
	d.used(10)
	d.grant("a", 20)
	d.used(30)
	d.grant("a", 20)
	d.used(30)
	d.refund("never", 0)
}

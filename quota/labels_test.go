package quota_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// ledgerOfLabels writes down what was granted to whom, and given back.
type ledgerOfLabels struct {
	limiter *quota.Limiter
	name    string
	hand    *hand
	ctx     context.Context
	held    map[string]holding // by charge ID
	taken   map[string]map[time.Time][2]int64
}

type holding struct {
	label string
	cost  int64
	at    time.Time
}

func newLabels(t testing.TB, rdb redis.UniversalClient, c quota.Config) *ledgerOfLabels {
	t.Helper()
	c.Name = testredis.Name("l")
	d := &ledgerOfLabels{name: c.Name, hand: newHand(), ctx: context.Background(), held: map[string]holding{}, taken: map[string]map[time.Time][2]int64{}}
	l, err := quota.New(rdb, []quota.Config{c}, quota.WithClock(d.hand.now))
	if err != nil {
		t.Fatal(err)
	}
	d.limiter = l
	return d
}

func (d *ledgerOfLabels) note(label string, granted, back int64) {
	if d.taken[label] == nil {
		d.taken[label] = map[time.Time][2]int64{}
	}
	q := d.hand.now().Truncate(15 * time.Minute)
	n := d.taken[label][q]
	d.taken[label][q] = [2]int64{n[0] + granted, n[1] + back}
}

// charge asks for all at once; one alone as Charge does.
func (d *ledgerOfLabels) charge(requests ...quota.Request) error {
	for i := range requests {
		requests[i].Quota = d.name
	}
	for i, a := range d.limiter.ChargeAll(d.ctx, requests) {
		r := requests[i]
		if a.Err != nil {
			return a.Err
		}
		if _, known := d.held[r.ID]; known || !a.Granted {
			continue // the same charge, told again, or none
		}
		d.held[r.ID] = holding{r.Label, r.Cost, d.hand.now()}
		d.note(r.Label, r.Cost, 0)
	}
	return nil
}

func (d *ledgerOfLabels) refund(id string) error {
	_, err := d.limiter.Refund(d.ctx, d.name, id)
	if h, ok := d.held[id]; ok && err == nil {
		d.note(h.label, 0, h.cost)
		delete(d.held, id)
	}
	return err
}

func (d *ledgerOfLabels) add(by time.Duration) {
	d.hand.add(by)
	maps.DeleteFunc(d.held, func(_ string, h holding) bool { return d.hand.now().Sub(h.at) >= time.Hour }) // forgotten
}

// law compares every quarter of every label with what was written down, and what
// is left of each point with what had no label.
func (d *ledgerOfLabels) law() error {
	points, shares, err := d.limiter.Shares(d.ctx, d.name)
	if err != nil || len(points) != 96 {
		return fmt.Errorf("%d points, %w", len(points), err)
	}
	got := map[string]quota.Share{}
	before := int64(1 << 62)
	for _, s := range shares {
		if len(s.Units) != 96 || len(s.Refunded) != 96 || s.Label == "" {
			return fmt.Errorf("share %+v", s)
		}
		got[s.Label] = s
		sum := int64(0)
		for i := range 96 {
			sum += s.Units[i] - s.Refunded[i]
		}
		if sum > before {
			return fmt.Errorf("%q took more than the label before it", s.Label)
		}
		before = sum
	}
	for i, p := range points {
		left := [2]int64{p.Units, p.Refunded}
		for label, s := range got {
			if want := d.taken[label][p.Start]; s.Units[i] != want[0] || s.Refunded[i] != want[1] {
				return fmt.Errorf("%s, %q: %d granted and %d given back, want %v", p.Start, label, s.Units[i], s.Refunded[i], want)
			}
			left[0], left[1] = left[0]-s.Units[i], left[1]-s.Refunded[i]
		}
		for label, of := range d.taken {
			if _, ok := got[label]; !ok && label != "" && of[p.Start] != [2]int64{} {
				return fmt.Errorf("%s: nothing of %q, want %v", p.Start, label, of[p.Start])
			}
		}
		if left != d.taken[""][p.Start] {
			return fmt.Errorf("%s: %v are of no label, want %v", p.Start, left, d.taken[""][p.Start])
		}
	}
	return nil
}

// The sum over labels, and what has none, is the series, whatever was asked twice,
// refused, let in later, given back, charged again.
func TestLabelsAddUpToTheSeries(t *testing.T) {
	onBoth(t, func(rt *rapid.T, rdb redis.UniversalClient) {
		c := window(rapid.Int64Range(5, 30).Draw(rt, "limit"), rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(rt, "per"))
		d := newLabels(t, rdb, c)
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		request := func(rt *rapid.T) quota.Request {
			return quota.Request{
				ID: someIDs.Draw(rt, "who"), Cost: rapid.Int64Range(1, 5).Draw(rt, "cost"), NoLine: rapid.IntRange(0, 3).Draw(rt, "no line") == 0,
				Label: rapid.SampledFrom([]string{"", "", "a", "b-1", "a b", "+c 7", "9"}).Draw(rt, "label"),
			}
		}
		ask := func(rt *rapid.T) { must(d.charge(request(rt))) }
		rt.Repeat(map[string]func(*rapid.T){
			"ask": ask, "ask too": ask,
			"ask for many": func(rt *rapid.T) { must(d.charge(rapid.SliceOfN(rapid.Custom(request), 2, 8).Draw(rt, "many")...)) },
			"refund":       func(rt *rapid.T) { must(d.refund(someIDs.Draw(rt, "whose"))) },
			"a moment later": func(rt *rapid.T) {
				d.add(rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, time.Minute}).Draw(rt, "by"))
			},
			"some time later": func(rt *rapid.T) {
				d.add(rapid.SampledFrom([]time.Duration{7 * time.Minute, 15 * time.Minute, 61 * time.Minute}).Draw(rt, "by"))
			},
			"about a day later": func(*rapid.T) { d.add(23*time.Hour + 50*time.Minute) },
			"":                  func(*rapid.T) { must(d.law()) },
		})
	})
}

func TestLabelsInACluster(t *testing.T) {
	t.Parallel()
	nodes, _, stop := cluster(t)
	t.Cleanup(stop)
	d := newLabels(t, nodes, window(30, time.Minute))
	for i := range 80 {
		err := d.charge(
			quota.Request{ID: fmt.Sprint("x", i), Cost: 2, Label: fmt.Sprint("feed-", i%3)},
			quota.Request{ID: fmt.Sprint("y", i), Cost: 1})
		if i%5 == 0 {
			err = errors.Join(err, d.refund(fmt.Sprint("x", i)))
		}
		d.add(3 * time.Minute)
		if err = errors.Join(err, d.law()); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// A quarter knows a thousand labels. Further ones are counted without; those it
// knows go on, and the next quarter knows others.
func TestTheLabelsAreBounded(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	d := newLabels(t, rdb, window(quota.MaxLimit, time.Hour))
	many := func(from, n int) {
		t.Helper()
		requests := make([]quota.Request, n)
		for i := range requests {
			id := fmt.Sprintf("feed-%04d", from+i)
			requests[i] = quota.Request{ID: id + d.hand.now().String(), Cost: 3, Label: id}
		}
		if err := d.charge(requests...); err != nil {
			t.Fatal(err)
		}
	}
	many(0, 1500)
	shares := func() []quota.Share {
		t.Helper()
		points, all, err := d.limiter.Shares(d.ctx, d.name)
		if err != nil || points[95].Units != 4500 && points[94].Units != 4500 {
			t.Fatalf("%+v, %v", points[94:], err)
		}
		return all
	}
	if all := shares(); len(all) != 1000 || all[999].Label != "feed-0999" {
		t.Fatalf("%d labels", len(all))
	}
	// Given back, what was counted without a label stays so; what had one needs room as well.
	for i := 1000; i < 1010; i++ {
		if err := d.refund(fmt.Sprintf("feed-%04d%s", i, d.hand.now())); err != nil {
			t.Fatal(err)
		}
	}
	if n := rdb.HLen(d.ctx, "fw:{quota:"+d.name+"}:labels").Val(); n != 1001 {
		t.Errorf("%d fields", n)
	}
	if all := shares(); len(all) != 1000 || slices.Max(all[999].Refunded) != 0 {
		t.Errorf("%d labels, %+v", len(all), all[999])
	}
	d.add(15 * time.Minute)
	many(1200, 1)
	if all := shares(); len(all) != 1001 || all[1000].Label != "feed-1200" || all[1000].Units[95] != 3 || all[0].Units[94] != 3 {
		t.Errorf("%d labels", len(all))
	}
	for range 200 {
		d.add(15 * time.Minute)
		many(0, 1)
	}
	if n := rdb.HLen(d.ctx, "fw:{quota:"+d.name+"}:series").Val(); n > 97 {
		t.Errorf("%d quarters are kept", n)
	}
	for _, key := range rdb.Keys(d.ctx, "fw:{quota:"+d.name+"}:*").Val() {
		if ttl := rdb.TTL(d.ctx, key).Val(); ttl < time.Hour {
			t.Errorf("%s lives for %s", key, ttl)
		}
	}
}

// A charge without a label writes nothing that has to do with labels.
func TestWithoutLabelsNothingIsKeptOfThem(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	d := newLabels(t, rdb, window(100, time.Minute))
	for i := range 30 {
		if err := errors.Join(d.charge(quota.Request{ID: fmt.Sprint(i), Cost: 1}), d.refund(fmt.Sprint(i-3))); err != nil {
			t.Fatal(err)
		}
		d.add(4 * time.Minute)
	}
	if n := rdb.Exists(d.ctx, "fw:{quota:"+d.name+"}:labels").Val(); n != 0 {
		t.Error("there are labels")
	}
	for slot, text := range rdb.HGetAll(d.ctx, "fw:{quota:"+d.name+"}:series").Val() {
		if strings.Contains(text, "\n") {
			t.Errorf("quarter %s: %q", slot, text)
		}
	}
	if err := d.law(); err != nil {
		t.Error(err)
	}
}

// A server short of memory drops keys: what is left of the labels is still part of
// the series.
func TestLostLabelsCountAsNone(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"labels", "series", "state"} {
		rdb := testredis.Client(t)
		d := newLabels(t, rdb, window(100, time.Minute))
		for i := range 40 {
			if err := d.charge(quota.Request{ID: fmt.Sprint(i), Cost: 2, Label: fmt.Sprint("feed-", i%2)}); err != nil {
				t.Fatal(lost, err)
			}
			if i == 12 {
				rdb.Del(d.ctx, "fw:{quota:"+d.name+"}:"+lost)
			}
			d.add(4 * time.Minute)
		}
		points, shares, err := d.limiter.Shares(d.ctx, d.name)
		if err != nil || len(shares) == 0 {
			t.Fatal(lost, shares, err)
		}
		for i, p := range points {
			if sum := shares[0].Units[i] + shares[1].Units[i]; sum > p.Units {
				t.Errorf("%s: the labels have %d of the %d units of %s", lost, sum, p.Units, p.Start)
			}
		}
	}
}

func TestLabelsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newLabels(t, testredis.Client(t), window(100, time.Minute))
	for _, label := range []string{strings.Repeat("x", 65), "a\nb", "\t", "é"} {
		if err := d.charge(quota.Request{ID: "a", Cost: 1, Label: label}); !errors.Is(err, quota.ErrLabel) {
			t.Errorf("%q: %v", label, err)
		}
	}
	if err := d.charge(quota.Request{ID: "a", Cost: 1, Label: strings.Repeat("x", 64)}); err != nil {
		t.Error(err)
	}
	if _, _, err := d.limiter.Shares(d.ctx, "none"); !errors.Is(err, quota.ErrUnknownQuota) {
		t.Error(err)
	}
}

package quota_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// diary is what was seen of a quota, told by one who writes everything down.
type diary struct {
	limiter  *quota.Limiter
	name     string
	hand     *hand
	ctx      context.Context
	n        int
	charged  []charged
	waiting  []waiting // in order
	quarters map[time.Time]quota.Point
	seen     quota.Seen
	late     []time.Duration
	snoozes  []int
}

type charged struct {
	id   string
	cost int64
	at   time.Time
}

type waiting struct {
	quota.Decision
	refused int
}

func newDiary(t *testing.T, rdb redis.UniversalClient, c quota.Config) *diary {
	t.Helper()
	c.Name = testredis.Name("s")
	d := &diary{name: c.Name, hand: newHand(), ctx: context.Background(), quarters: map[time.Time]quota.Point{}}
	d.limiter = limiter(t, rdb, c, quota.WithClock(d.hand.now))
	return d
}

func (d *diary) note(f func(*quota.Point)) {
	q := d.hand.now().Truncate(15 * time.Minute)
	p := d.quarters[q]
	f(&p)
	d.quarters[q] = p
}

// ask is one who was not there before.
func (d *diary) ask(cost int64) error {
	d.n++
	return d.charge(waiting{Decision: quota.Decision{ID: fmt.Sprint("c", d.n), Cost: cost}})
}

// again is the i-th who waits.
func (d *diary) again(i int) error {
	w := d.waiting[i]
	d.waiting = slices.Delete(d.waiting, i, i+1)
	return d.charge(w)
}

func (d *diary) charge(w waiting) error {
	got, err := d.limiter.Charge(d.ctx, quota.Request{Quota: d.name, ID: w.ID, Cost: w.Cost})
	switch {
	case err != nil:
	case got.Granted:
		d.seen.Grants++
		d.seen.Units += w.Cost
		d.note(func(p *quota.Point) { p.Granted++; p.Units += w.Cost })
		if w.refused > 0 {
			d.late = append(d.late, max(0, d.hand.now().Sub(w.At)))
		}
		d.snoozes = append(d.snoozes, w.refused)
		d.charged = append(d.charged, charged{w.ID, w.Cost, d.hand.now()})
	default:
		d.seen.Refusals++
		d.note(func(p *quota.Point) { p.Refused++ })
		d.waiting = slices.Insert(d.waiting, int(got.Position)-1, waiting{got, w.refused + 1})
	}
	return err
}

func (d *diary) refund(i int) error {
	c := d.charged[i]
	d.charged = slices.Delete(d.charged, i, i+1)
	_, err := d.limiter.Refund(d.ctx, d.name, c.id)
	d.seen.Refunds++
	d.seen.Refunded += c.cost
	d.note(func(p *quota.Point) { p.Refunded += c.cost })
	return err
}

func (d *diary) leave(i int) error {
	id := d.waiting[i].ID
	d.waiting = slices.Delete(d.waiting, i, i+1)
	return d.limiter.Leave(d.ctx, d.name, id)
}

func (d *diary) add(by time.Duration) {
	d.hand.add(by)
	// Which IDs are remembered longer is another test's matter.
	d.charged = slices.DeleteFunc(d.charged, func(c charged) bool { return d.hand.now().Sub(c.at) >= time.Hour })
}

// check compares all that is told with what was written down.
func (d *diary) check() error {
	s, err := d.limiter.State(d.ctx, d.name)
	if err != nil {
		return err
	}
	want := d.seen
	for _, upTo := range []float64{0, 1, 2, 3, 5, 10, math.Inf(1)} {
		b := quota.Bucket{UpTo: upTo}
		for _, n := range d.snoozes {
			if float64(n) <= upTo {
				b.Count++
			}
		}
		want.Snoozes = append(want.Snoozes, b)
	}
	for _, upTo := range []float64{0.01, 0.1, 1, 5, 30, math.Inf(1)} {
		b := quota.Bucket{UpTo: upTo}
		for _, l := range d.late {
			if l.Seconds() <= upTo {
				b.Count++
			}
		}
		want.Lateness = append(want.Lateness, b)
	}
	for _, n := range d.snoozes {
		want.SnoozeSum += int64(n)
	}
	for _, l := range d.late {
		want.LatenessSum += l
	}
	if got, want := fmt.Sprintf("%+v", s.Seen), fmt.Sprintf("%+v", want); got != want {
		return fmt.Errorf("\n got   %s\n diary %s", got, want)
	}
	points, err := d.limiter.History(d.ctx, d.name)
	if err != nil || len(points) != 96 {
		return fmt.Errorf("%d points, %w", len(points), err)
	}
	last := d.hand.now().Truncate(15 * time.Minute)
	for i, p := range points {
		want := d.quarters[last.Add(time.Duration(i-95)*15*time.Minute)]
		want.Start = last.Add(time.Duration(i-95) * 15 * time.Minute)
		if p != want {
			return fmt.Errorf("point %d\n got   %+v\n diary %+v", i, p, want)
		}
	}
	return nil
}

func TestSeenIsWhatHappened(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := window(rapid.Int64Range(3, 20).Draw(rt, "limit"), rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 2 * time.Hour}).Draw(rt, "per"))
		c.Grace = 10000 * time.Hour // nobody loses its place
		d := newDiary(t, rdb, c)
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		one := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "which") }
		ask := func(rt *rapid.T) { must(d.ask(rapid.Int64Range(1, 3).Draw(rt, "cost"))) }
		again := func(*rapid.T) {
			if len(d.waiting) > 0 {
				must(d.again(one(len(d.waiting))))
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"ask": ask, "ask too": ask, "ask again": again,
			"come back late": func(rt *rapid.T) {
				if len(d.waiting) > 0 {
					at := d.waiting[0].At.Add(rapid.SampledFrom([]time.Duration{
						0, 10 * time.Millisecond, 10001 * time.Microsecond, time.Second, 20 * time.Second, time.Hour,
					}).Draw(rt, "late"))
					d.add(max(0, at.Sub(d.hand.now())))
					must(d.again(0))
				}
			},
			"refund": func(*rapid.T) {
				if len(d.charged) > 0 {
					must(d.refund(one(len(d.charged))))
				}
			},
			"leave": func(*rapid.T) {
				if len(d.waiting) > 0 {
					must(d.leave(one(len(d.waiting))))
				}
			},
			"block": func(*rapid.T) {
				d.seen.Blocks++
				must(d.limiter.Block(d.ctx, d.name, time.Second, "why"))
			},
			"time goes on": func(rt *rapid.T) {
				d.add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 4 * time.Minute, 15 * time.Minute, 50 * time.Minute, 25 * time.Hour}).Draw(rt, "by"))
			},
			"": func(*rapid.T) { must(d.check()) },
		})
	})
}

func TestSeenOnMiniredisAndInACluster(t *testing.T) {
	t.Parallel()
	mini := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = mini.Close() })
	nodes, _, stop := cluster(t)
	for name, rdb := range map[string]redis.UniversalClient{"miniredis": mini, "cluster": nodes} {
		c := window(6, time.Minute)
		c.Grace = time.Hour // nobody loses its place
		d := newDiary(t, rdb, c)
		for i := range 60 {
			err := d.ask(int64(i%4 + 1))
			if i%3 == 0 && len(d.waiting) > 0 {
				err = errors.Join(err, d.again(0))
			}
			if i%9 == 0 && len(d.charged) > 0 {
				err = errors.Join(err, d.refund(0))
			}
			d.add(20 * time.Second)
			if err = errors.Join(err, d.check()); err != nil {
				t.Fatalf("%s: step %d: %v", name, i, err)
			}
		}
		if d.seen.Refusals == 0 || len(d.late) == 0 || len(d.quarters) < 2 {
			t.Errorf("%s: too little has happened: %+v", name, d.seen)
		}
		if name == "cluster" {
			stop()
			if points, err := d.limiter.History(d.ctx, d.name); err == nil || points != nil {
				t.Errorf("without nodes: %v, %v", points, err)
			}
		}
	}
}

// Who is refused while nobody is granted is seen in the quarter in which it was.
func TestRefusalsAloneMakeAPoint(t *testing.T) {
	t.Parallel()
	d := newDiary(t, testredis.Client(t), window(1, 100*time.Hour))
	for i := range 8 {
		if err := errors.Join(d.ask(1), d.check()); err != nil {
			t.Fatal(i, err)
		}
		d.add(15 * time.Minute)
	}
}

func TestTheSeriesIsBounded(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	d := newDiary(t, rdb, window(1000, time.Hour))
	for range 300 {
		if err := d.ask(1); err != nil {
			t.Fatal(err)
		}
		d.add(15 * time.Minute)
	}
	if err := d.check(); err != nil {
		t.Fatal(err)
	}
	key := "fw:{quota:" + d.name + "}:series"
	if n := rdb.HLen(d.ctx, key).Val(); n > 97 {
		t.Errorf("%d quarters are kept", n)
	}
	if ttl := rdb.TTL(d.ctx, key).Val(); ttl < 24*time.Hour || ttl > 26*time.Hour {
		t.Errorf("the series lives for %s", ttl)
	}
	// The counters of a quota at rest are gone: the series begins anew with them.
	rdb.Del(d.ctx, "fw:{quota:"+d.name+"}:state")
	if points, err := d.limiter.History(d.ctx, d.name); err != nil || points[95].Units != 0 || points[94].Units != 0 {
		t.Errorf("%+v, %v", points[94:], err)
	}
}

// The sums of the log are made smaller when they come to 2^52; what was granted is not.
func TestUnitsAreCountedThroughARebase(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	d := newDiary(t, rdb, window(quota.MaxLimit, time.Second))
	for range 4510 { // times 10^12 is more than 2^52
		if err := d.ask(quota.MaxLimit); err != nil {
			t.Fatal(err)
		}
		d.add(time.Second)
	}
	if err := d.check(); err != nil || d.seen.Units < 1<<52 || d.seen.Refusals > 0 {
		t.Fatal(err, d.seen)
	}
}

// Records of waiters that an older binary wrote end before the count of refusals.
func TestOlderWaitersAreReadable(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	d := newDiary(t, rdb, window(1, time.Minute))
	for range 3 {
		if err := d.ask(1); err != nil {
			t.Fatal(err)
		}
	}
	key := "fw:{quota:" + d.name + "}:wait"
	for id, record := range rdb.HGetAll(d.ctx, key).Val() {
		fields := strings.Fields(record)
		if len(fields) != 6 {
			t.Fatalf("a record %q", record)
		}
		rdb.HSet(d.ctx, key, id, strings.Join(fields[:5], " "))
	}
	if err := errors.Join(d.again(1), d.check()); err != nil { // refused once more: twice then
		t.Fatal(err)
	}
	for range 2 {
		d.add(time.Minute)
		if err := errors.Join(d.again(0), d.check()); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(d.snoozes) != "[0 1 2]" {
		t.Errorf("%v", d.snoozes)
	}
}

func TestNothingIsSeenOfAnUnknownQuota(t *testing.T) {
	t.Parallel()
	d := newDiary(t, testredis.Client(t), window(1, time.Minute))
	if err := d.check(); err != nil { // 96 points of nothing
		t.Fatal(err)
	}
	if _, err := d.limiter.History(d.ctx, "none"); !errors.Is(err, quota.ErrUnknownQuota) {
		t.Error(err)
	}
}

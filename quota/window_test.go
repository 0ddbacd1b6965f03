package quota_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

func (d *desk) key(name string) string { return "fw:{quota:" + d.name + "}:" + name }

// entries is the log as it stands in Redis: stamps and totals.
func (d *desk) entries() []redis.Z {
	d.t.Helper()
	log, _, err := quota.ReadLog(d.ctx, d.rdb, d.name)
	if err != nil {
		d.t.Fatal(err)
	}
	var all []redis.Z
	for _, e := range log {
		all = append(all, redis.Z{Score: float64(e.Stamp), Member: strconv.FormatInt(e.Total, 10)})
	}
	return all
}

func TestRetryAfterIsInMillisecondsAndNeverZero(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]time.Duration{
		1400 * time.Millisecond:                              1400 * time.Millisecond,
		300 * time.Millisecond:                               300 * time.Millisecond,
		300*time.Millisecond + time.Microsecond:              301 * time.Millisecond,
		time.Microsecond:                                     time.Millisecond,
		999*time.Millisecond + 1*time.Microsecond:            1000 * time.Millisecond,
		59*time.Second + 999999*time.Microsecond:             time.Minute,
		time.Minute - 10*time.Millisecond + time.Microsecond: 59991 * time.Millisecond,
	} {
		d := open(t, window(1, time.Minute))
		d.grant("a", 1)
		d.hand.at(time.Minute - wait)
		d.refuse("b", 1, want, 1, quota.ReasonWindow)
	}
}

func TestTheWholeLimitAfterOneUnit(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Minute))
	d.grant("one", 1)
	d.refuse("all", 100, time.Minute, 1, quota.ReasonWindow)
	d.hand.at(time.Minute)
	d.grant("all", 100)
}

func TestAHundredChargesInOneMicrosecond(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Second))
	for i := range 100 {
		d.grant(fmt.Sprint("c", i), 1)
	}
	d.used(100)
	d.refuse("more", 1, time.Second, 1, quota.ReasonWindow)
	seen := map[int64]bool{}
	for i, e := range d.entries() {
		if got, want := int64(e.Score), epoch.UnixMicro()+int64(i); got != want || seen[got] {
			t.Fatalf("entry %d has the stamp %d, want %d", i, got, want)
		}
		seen[int64(e.Score)] = true
	}
}

func TestOneEntryWhateverItCosts(t *testing.T) {
	t.Parallel()
	d := open(t, window(quota.MaxLimit, time.Minute))
	var sum int64
	for i, cost := range []int64{7999, 8000, 10_000_000, quota.MaxLimit - 20_000_000} {
		d.grant(fmt.Sprint("c", i), cost)
		sum += cost
		if got := len(d.entries()); got != i+1 {
			t.Fatalf("%d entries after %d charges", got, i+1)
		}
		d.used(sum)
	}
	small := open(t, window(quota.MaxLimit, time.Minute))
	small.grant("c", 1)
	big := open(t, window(quota.MaxLimit, time.Minute))
	big.grant("c", 1_000_000)
	memory := func(d *desk) (n int64) {
		for _, k := range []string{"state", "log:0"} {
			n += d.rdb.MemoryUsage(d.ctx, d.key(k)).Val()
		}
		return n
	}
	if a, b := memory(small), memory(big); b > a+16 {
		t.Errorf("a unit takes %d bytes, a million %d", a, b)
	}
}

func TestAllWindowsOrNone(t *testing.T) {
	t.Parallel()
	d := open(t, quota.Config{Windows: []quota.Window{{Limit: 100, Per: time.Hour}, {Limit: 10, Per: time.Minute}}})
	d.grant("a", 10)
	d.refuse("b", 1, time.Minute, 1, quota.ReasonWindow)
	s := d.state()
	if s.Windows[0].Used != 10 || s.Windows[1].Used != 10 || s.Remaining != 0 {
		t.Fatalf("%+v", s)
	}
	for i := 1; i < 10; i++ {
		d.hand.at(time.Duration(i) * time.Minute)
		if i == 1 {
			d.grant("b", 1)
			d.grant("c", 9)
			continue
		}
		d.hand.add(time.Second)
		d.grant(fmt.Sprint("c", i), 10)
	}
	// The long window is the full one now.
	d.hand.at(11 * time.Minute)
	if got := d.ask(quota.Request{Cost: 10}); got.Granted || got.RetryAfter != 49*time.Minute {
		t.Fatalf("%+v", got)
	}
}

func TestEveryWriteSetsTheTTLAgain(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	persist := func(all bool) (n int) {
		for _, key := range d.keys() {
			if !all && strings.HasSuffix(key, ":series") {
				continue // a grant at once does that in eight
			}
			d.rdb.Persist(d.ctx, key)
			n++
		}
		return n
	}
	check := func(when string) {
		t.Helper()
		keys := d.keys()
		for _, key := range keys {
			ttl := d.rdb.PTTL(d.ctx, key).Val()
			if ttl < time.Hour || ttl > 31*24*time.Hour {
				t.Errorf("%s: %s lives for %s", when, key, ttl)
			}
		}
		if len(keys) == 0 {
			t.Errorf("%s: no keys", when)
		}
	}
	d.grant("a", 6)
	persist(false)
	d.grant("b", 2)
	check("after a grant")
	d.charge("w", 3)
	d.ask(quota.Request{ID: "i", Cost: 4, Priority: quota.Interactive})
	if n := persist(true); n < 8 {
		t.Fatalf("only %d keys", n)
	}
	d.charge("x", 3)
	check("after a refusal")
	persist(true)
	d.refund("a", 6)
	check("after a refund")
	persist(true)
	d.ask(quota.Request{ID: "i", Cost: 4, Priority: quota.Interactive})
	check("after a waiter's grant")
}

func TestALineThatLastsLongerThanTheLogKeepsItsKeys(t *testing.T) {
	t.Parallel()
	d := open(t, window(1, time.Hour))
	for i := range 200 {
		d.charge(fmt.Sprint("c", i), 1)
	}
	for _, k := range []string{"wait", "due", "line:scheduled", "sums:scheduled", "meta"} {
		if ttl := d.rdb.PTTL(d.ctx, d.key(k)).Val(); ttl < 199*time.Hour {
			t.Errorf("%s lives for %s, the last promise is 199 h away", k, ttl)
		}
	}
}

func TestLimitsChangeAndTheLogStays(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Hour))
	d.grant("a", 80)
	for limit, want := range map[int64]int64{50: 0, 200: 120, 80: 0, 81: 1} {
		d.configure(window(limit, time.Hour))
		if s := d.state(); s.Remaining != want || s.Windows[0].Used != 80 {
			t.Errorf("limit %d: %+v, want %d left", limit, s, want)
		}
	}
	d.configure(window(50, time.Hour))
	d.refuse("b", 1, time.Hour, 1, quota.ReasonWindow)
	d.configure(window(200, time.Hour))
	d.grant("b", 1)
	// Windows, too: shorter, longer, one more.
	d.hand.at(10 * time.Minute)
	d.configure(window(100, time.Minute))
	d.used(0)
	d.configure(quota.Config{Windows: []quota.Window{{Limit: 100, Per: 11 * time.Minute}, {Limit: 100, Per: 5 * time.Minute}}})
	if s := d.state(); s.Windows[0].Used != 81 || s.Windows[1].Used != 0 {
		t.Errorf("%+v", s.Windows)
	}
	// The same Limiter, reloaded; a faulty config changes nothing.
	c := window(300, time.Hour)
	c.Name = d.name
	if err := d.l.Reload([]quota.Config{c}); err != nil {
		t.Fatal(err)
	}
	if s := d.state(); s.Remaining != 219 {
		t.Errorf("%+v", s)
	}
	if err := d.l.Reload([]quota.Config{{Name: d.name}}); err == nil {
		t.Error("a quota without windows was taken")
	}
	if s := d.state(); s.Remaining != 219 {
		t.Errorf("%+v", s)
	}
}

// A failover to a replica whose clock is behind.
func TestAClockThatStepsBack(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.grant("a", 10)
	d.hand.at(-5 * time.Second)
	d.refuse("b", 1, 65*time.Second, 1, quota.ReasonWindow)
	d.hand.at(55 * time.Second) // a minute later on the clock that is behind
	d.refuse("b", 1, 5*time.Second, 1, quota.ReasonWindow)
	d.hand.at(time.Minute)
	d.grant("b", 1)
	d.hand.at(59 * time.Second)
	d.refuse("c", 1, 1001*time.Millisecond, 1, quota.ReasonWindow) // what had left counts again; stamps rise
	d.hand.at(time.Minute - time.Microsecond)
	d.refuse("c", 1, time.Millisecond, 1, quota.ReasonWindow)
	d.hand.at(61 * time.Second)
	d.grant("c", 1)
	d.hand.at(-time.Hour)
	d.configure(window(20, time.Minute))
	d.grant("d", 1)
	for i, e := range d.entries()[1:] {
		if before := d.entries()[i]; e.Score <= before.Score {
			t.Errorf("stamps %.0f, then %.0f", before.Score, e.Score)
		}
	}
}

func TestSumsStayBelowWhereDigitsAreLost(t *testing.T) {
	t.Parallel()
	d := open(t, window(1000, time.Minute))
	d.grant("a", 50)
	for i := range 25 {
		d.grant(fmt.Sprint("a", i), 2)
	}
	d.grant("b", 50)
	d.refund("b", 50)
	// As after many years: the same log, its sums 2^52 higher.
	if err := quota.RaiseTotals(d.ctx, d.rdb, d.name, 1<<52); err != nil {
		t.Fatal(err)
	}
	d.used(100)
	d.grant("c", 7)
	d.used(107)
	d.grant("d", 893)
	d.used(1000)
	d.refuse("e", 1, time.Minute, 1, quota.ReasonWindow)
	d.refund("a", 50)
	d.grant("e", 1)
	for _, e := range d.entries() {
		if n, err := strconv.ParseInt(e.Member.(string), 10, 64); err != nil || n > math.MaxInt32 {
			t.Fatalf("a sum of %v, %v", e.Member, err)
		}
	}
}

func TestIDsAreRememberedForAnHourOrTheLongestWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		per, keep time.Duration
	}{"short window": {time.Minute, time.Hour}, "long window": {5 * time.Hour, 5 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, window(100, c.per))
			for round := range 6 {
				begin := time.Duration(round) * (c.keep + 17*time.Minute)
				d.hand.at(begin)
				first := d.charge("nightly", 2)
				if !first.Granted || !first.At.Equal(d.hand.now()) {
					t.Fatalf("round %d: %+v", round, first)
				}
				d.grant(fmt.Sprint("other", round), 1)
				d.hand.at(begin + c.keep - time.Microsecond)
				if again := d.charge("nightly", 2); !again.Granted || !again.At.Equal(first.At) {
					t.Fatalf("round %d: %+v, want the answer of %s", round, again, first.At)
				}
			}
			n := d.rdb.HLen(d.ctx, d.key("log:0")).Val() + d.rdb.HLen(d.ctx, d.key("log:1")).Val()
			if n > 6 {
				t.Errorf("%d IDs are kept", n)
			}
		})
	}
}

func TestTheSameIDIsChargedOnce(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	first := d.charge("a", 4)
	d.grant("b", 6)
	d.hand.at(30 * time.Second)
	again := d.ask(quota.Request{ID: "a", Cost: 9, Priority: quota.Interactive})
	if !again.Granted || again.Cost != 4 || !again.At.Equal(first.At) || again.Windows[0].Used != 10 {
		t.Errorf("%+v", again)
	}
	if s := d.state(); s.Grants != 2 || s.Refusals != 0 {
		t.Errorf("%+v", s)
	}
	// Refunded, it is charged like a new one, and waits like one.
	d.refund("a", 4)
	d.grant("c", 4)
	d.refuse("a", 4, 30*time.Second+time.Millisecond, 1, quota.ReasonWindow)
	// A refund also takes it out of the line.
	d.refund("a", 0)
	if s := d.state(); s.Scheduled.Waiting != 0 || s.Refunds != 1 {
		t.Errorf("%+v", s)
	}
	// Spent and gone by: nothing to give back, and the ID is free.
	d.hand.at(2 * time.Minute)
	d.refund("c", 0)
	d.grant("c", 1)
	d.used(1)
}

func TestManyRefunds(t *testing.T) {
	t.Parallel()
	d := open(t, window(1000, time.Hour))
	var want int64
	for i := range 400 {
		d.hand.add(time.Second)
		d.grant(fmt.Sprint("c", i), int64(i%7+1))
		want += int64(i%7 + 1)
		if k := i - i%5; i%3 == 0 && k > 0 {
			if n, err := d.l.Refund(d.ctx, d.name, fmt.Sprint("c", k-1)); err != nil {
				t.Fatal(err)
			} else {
				want -= n
			}
		}
		if got := d.ask(quota.Request{ID: "probe", Cost: 1000, NoLine: true}); got.Windows[0].Used != want {
			t.Fatalf("after %d: used %d, want %d", i, got.Windows[0].Used, want)
		}
		if want > 900 {
			d.hand.add(2 * time.Hour)
			want = 0
		}
	}
	// All of it goes by; so do the holes.
	d.hand.add(10 * time.Hour)
	for i := range 200 {
		d.grant(fmt.Sprint("end", i), 1)
	}
	d.used(200)
	if n := d.rdb.HKeys(d.ctx, d.key("log:0")).Val(); slices.ContainsFunc(n, func(f string) bool { return f[0] == '\r' }) {
		t.Error("holes are left of what nobody counts")
	}
}

// What was forgotten is not found again when the clock steps back a little.
func TestARefundedIDStaysFreeWhenTheClockStepsBack(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	d.grant("other", 1)
	d.hand.at(time.Hour)
	d.grant("a", 5)
	d.hand.at(time.Hour + time.Minute)
	d.grant("another", 1) // a new generation of IDs
	d.hand.at(2 * time.Hour)
	d.grant("a", 3)
	d.hand.add(10 * time.Millisecond)
	d.refund("a", 3)
	d.hand.add(-time.Second)
	if got := d.charge("a", 4); !got.Granted || got.Cost != 4 {
		t.Errorf("%+v", got)
	}
	d.used(4)
}

// At any moment, whatever was given up before it: an ID an hour old is known again.
func TestIDsAreRememberedWhenTheClockStepsBack(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	var ids []quota.Decision
	for i := range 260 {
		d.hand.at(time.Duration(i) * 30 * time.Second)
		ids = append(ids, d.charge(fmt.Sprint("m", i), 1))
		d.hand.add(-59 * time.Second)
		for _, then := range ids[max(0, i-121):max(0, i-119)] {
			if again := d.charge(then.ID, 1); !again.Granted || !again.At.Equal(then.At) {
				t.Fatalf("at %s: %+v, was %+v", d.hand.now(), again, then)
			}
		}
	}
}

package quota_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// Faults that limiters have had.

func TestACostThatNeverFitsIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	c := quota.Config{Reserve: 10, Windows: []quota.Window{{Limit: 1000, Per: time.Hour}, {Limit: 100, Per: time.Minute}}}
	d := open(t, c)
	for class, most := range map[quota.Priority]int64{quota.Scheduled: 90, quota.Interactive: 100} {
		for _, cost := range []int64{most + 1, 1<<53 - 1} {
			r := quota.Request{Quota: d.name, ID: "a", Cost: cost, Priority: class}
			got, err := d.l.Charge(d.ctx, r)
			var impossible *quota.ImpossibleError
			if !errors.As(err, &impossible) || impossible.Limit != most || impossible.Cost != cost || got.Granted {
				t.Errorf("%s, cost %d: %+v, %v", class, cost, got, err)
			}
			if a := d.l.ChargeAll(d.ctx, []quota.Request{r}); !errors.As(a[0].Err, &impossible) || a[0].Granted {
				t.Errorf("%s, cost %d, of many: %+v", class, cost, a[0])
			}
		}
	}
	if found := d.keys(); len(found) > 0 {
		t.Errorf("keys written: %v", found)
	}
}

// Refused 1 µs before Retry-After, granted at it, on every edge that a window has.
func TestAnEntryCountsUntilItsInstantAndNoLonger(t *testing.T) {
	t.Parallel()
	for _, per := range []time.Duration{2 * time.Microsecond, time.Millisecond, time.Second, 24 * time.Hour} {
		d := open(t, window(7, per))
		d.grant("a", 7)
		got := d.charge("b", 7)
		if want := epoch.Add(per); got.Granted || !got.At.Equal(want) {
			t.Fatalf("per %s: promised %s, want %s", per, got.At, want)
		}
		d.hand.set(got.At.Add(-time.Microsecond))
		if early := d.charge("b", 7); early.Granted || early.RetryAfter != time.Millisecond || !early.At.Equal(got.At) {
			t.Errorf("per %s, 1 µs early: %+v", per, early)
		}
		d.hand.set(got.At)
		d.grant("b", 7)
	}
}

func TestARefusalCostsNoUnits(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancelled", "not back"} {
		d := open(t, window(10, time.Hour))
		d.grant("a", 8)
		d.hand.at(30 * time.Minute)
		first := d.charge("five", 5)
		if got := d.charge("two", 2); first.Granted || got.Granted || got.Reason != quota.ReasonLine {
			t.Fatalf("%s: %+v, then %+v", how, first, got)
		}
		d.used(8)
		if how == "cancelled" {
			d.leave("five")
		} else {
			d.hand.set(first.At.Add(30 * time.Second))
		}
		d.grant("two", 2)
	}
}

func TestACostOfTenMillionIsOneEntry(t *testing.T) {
	t.Parallel()
	const cost = 10_000_000
	d := open(t, window(3*cost, time.Minute))
	for i := range 3 {
		d.grant(fmt.Sprint("c", i), cost)
		d.hand.add(time.Second)
	}
	d.refuse("more", cost, 57*time.Second, 1, quota.ReasonWindow)
	d.refund("c1", cost)
	if n := len(d.entries()); n != 3 {
		t.Errorf("%d entries for three charges", n)
	}
	d.used(2 * cost)
}

// Whatever has expired at once, a call is a bounded number of commands: what is old
// goes as a whole, and Redis frees it in its own time.
func TestTenThousandEntriesThatExpireAtOnceBlockNobody(t *testing.T) {
	t.Parallel()
	const n = 10_000
	srv := testredis.Own(t, "--save", "")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	d := &desk{t: t, ctx: t.Context(), rdb: rdb, name: "q", hand: newHand()}
	d.configure(window(n, time.Hour))
	commands := func() (calls int64) {
		for line := range strings.Lines(rdb.Info(d.ctx, "commandstats").Val()) {
			if _, rest, ok := strings.Cut(line, ":calls="); ok {
				k, err := strconv.ParseInt(rest[:strings.IndexByte(rest, ',')], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				calls += k
			}
		}
		return calls
	}
	busiest := func(from int, rounds int) (most int64) {
		for i := range rounds {
			before := commands()
			d.grant(fmt.Sprint("c", from+i), 1)
			most = max(most, commands()-before)
		}
		return most
	}
	quiet := busiest(0, 50)
	batch := make([]quota.Request, n-50)
	for i := range batch {
		batch[i] = quota.Request{Quota: d.name, ID: "f" + strconv.Itoa(i), Cost: 1}
	}
	for _, a := range d.l.ChargeAll(d.ctx, batch) {
		if a.Err != nil || !a.Granted {
			t.Fatal(a)
		}
	}
	d.refuse("more", 1, time.Hour, 1, quota.ReasonWindow)
	d.leave("more")
	d.hand.at(5 * time.Hour)
	expired := busiest(n, 50)
	t.Logf("commands of a charge: %d at most, %d after 10 000 have expired", quiet, expired)
	if quiet < 5 || expired > quiet+8 {
		t.Errorf("a charge takes %d commands after 10 000 have expired, %d else", expired, quiet)
	}
	d.used(50)
	// By and by all of it goes.
	for i := range 1400 {
		d.grant(fmt.Sprint("later", i), 1)
	}
	if left := len(d.entries()); left > 1460 {
		t.Errorf("%d entries are left", left)
	}
}

func TestOneASecondForTwentyWorkers(t *testing.T) {
	t.Parallel()
	d := open(t, window(1, time.Second))
	rnd := rand.New(rand.NewPCG(23, 1))
	due := make([]time.Time, 20)
	jobs := make([]int, len(due))
	var grants []time.Time
	for at := time.Duration(0); at < 40*time.Second; at += 25 * time.Millisecond {
		for _, w := range rnd.Perm(len(due)) {
			d.hand.at(max(at, d.hand.now().Sub(epoch)+time.Microsecond))
			if due[w].After(d.hand.now()) {
				continue
			}
			got := d.charge(fmt.Sprint("w", w, "-", jobs[w]), 1)
			if !got.Granted {
				due[w] = d.hand.now().Add(got.RetryAfter)
				continue
			}
			grants = append(grants, got.At)
			jobs[w]++
		}
	}
	for i := range grants[1:] {
		if gap := grants[i+1].Sub(grants[i]); gap < time.Second {
			t.Fatalf("grants %d and %d are %s apart", i, i+1, gap)
		}
	}
	if len(grants) < 36 {
		t.Errorf("%d grants in 40 s", len(grants))
	}
	for w, n := range jobs {
		if n < 1 {
			t.Errorf("worker %d was never served", w)
		}
	}
}

// µs since 1970 have 16 digits, more than Lua prints of a number by itself.
func TestStampsAFewMicrosecondsApart(t *testing.T) {
	t.Parallel()
	d := open(t, window(100, time.Minute))
	var want []int64
	for i, step := range []time.Duration{0, 1, 2, 3, 1, 7, 9} {
		d.hand.add(step * time.Microsecond)
		got := d.charge(fmt.Sprint("c", i), 1)
		if !got.Granted || !got.At.Equal(d.hand.now()) {
			t.Fatalf("at %s: %+v", d.hand.now(), got)
		}
		want = append(want, d.hand.now().UnixMicro())
		// The ID is remembered with the same stamp.
		if again := d.charge(fmt.Sprint("c", i), 1); !again.At.Equal(got.At) {
			t.Errorf("granted at %s, then said to have been at %s", got.At, again.At)
		}
	}
	for i, e := range d.entries() {
		if int64(e.Score) != want[i] {
			t.Errorf("entry %d has the stamp %.0f, want %d", i, e.Score, want[i])
		}
	}
	waits := d.charge("w", 100)
	if exact := epoch.Add(time.Minute + 23*time.Microsecond); waits.Granted || !waits.At.Equal(exact) {
		t.Errorf("promised %s, want %s", waits.At, exact)
	}
	if s := d.state(); len(s.Waiters) != 1 || !s.Waiters[0].Promised.Equal(waits.At) {
		t.Errorf("%+v", s.Waiters)
	}
	if z := d.rdb.ZRangeWithScores(d.ctx, d.key("due"), 0, -1).Val(); len(z) != 1 || z[0] != (redis.Z{Member: "w", Score: float64(waits.At.Add(30 * time.Second).UnixMicro())}) {
		t.Errorf("%+v", z)
	}
}

package quota_test

import (
	"errors"
	"testing"
	"time"

	"feedwarden/quota"
)

func pacific(t *testing.T) *time.Location {
	t.Helper()
	l, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// On the day with 25 hours a trailing window of 24 h lets the limit be spent twice in one calendar day.
func TestACalendarDayBesidesATrailingOne(t *testing.T) {
	t.Parallel()
	la := pacific(t)
	midnight := time.Date(2026, 11, 1, 0, 0, 0, 0, la)
	late := time.Date(2026, 11, 1, 23, 0, 0, 0, la)
	trailing := quota.Window{Limit: 10_000, Per: 24 * time.Hour}
	day := quota.Window{Limit: 10_000, Calendar: "day", Location: la}

	d := open(t, quota.Config{Windows: []quota.Window{trailing}})
	d.hand.set(midnight)
	d.grant("a", 10_000)
	d.hand.set(late)
	d.grant("b", 10_000)

	d = open(t, quota.Config{Windows: []quota.Window{trailing, day}})
	d.hand.set(midnight)
	got := d.charge("a", 10_000)
	if u := got.Windows[1]; !got.Granted || u.Per != 25*time.Hour || u.Used != 10_000 || u.Calendar != "day" {
		t.Fatalf("%+v", got)
	}
	d.hand.set(late)
	d.refuse("b", 10_000, time.Hour, 1, quota.ReasonWindow)
	d.refuse("c", 10_000, 25*time.Hour, 2, quota.ReasonWindow)
	d.hand.set(late.Add(time.Hour - time.Microsecond))
	d.refuse("b", 10_000, time.Millisecond, 1, quota.ReasonWindow)
	d.hand.set(late.Add(time.Hour))
	d.grant("b", 10_000)
	if s := d.state(); s.Windows[1].Per != 24*time.Hour || !s.NextRelease.Equal(late.Add(25*time.Hour)) {
		t.Fatalf("%+v", s)
	}
}

func TestDaysOf23And25Hours(t *testing.T) {
	t.Parallel()
	la := pacific(t)
	for _, c := range []struct {
		date   time.Time
		length time.Duration
	}{
		{time.Date(2026, 3, 8, 0, 0, 0, 0, la), 23 * time.Hour},
		{time.Date(2026, 11, 1, 0, 0, 0, 0, la), 25 * time.Hour},
		{time.Date(2026, 12, 1, 0, 0, 0, 0, la), 24 * time.Hour},
	} {
		d := open(t, quota.Config{Windows: []quota.Window{{Limit: 1, Calendar: "day", Location: la}}})
		d.hand.set(c.date.Add(-time.Microsecond)) // the last of the day before
		d.grant("before", 1)
		d.hand.set(c.date)
		d.grant("first", 1)
		d.refuse("next", 1, c.length, 1, quota.ReasonWindow)
		// Promises go on, a day each, past the days whose edges are given.
		for i := range 14 {
			d.charge(string(rune('a'+i)), 1)
		}
		ws := d.state().Waiters
		for i, w := range ws[:8] {
			y, m, day := c.date.AddDate(0, 0, i+1).Date()
			if want := time.Date(y, m, day, 0, 0, 0, 0, la); !w.Promised.Equal(want) {
				t.Errorf("waiter %d is promised %s, want %s", i, w.Promised.In(la), want)
			}
		}
		for i := range ws[1:] {
			if gap := ws[i+1].Promised.Sub(ws[i].Promised); gap < 23*time.Hour || gap > 25*time.Hour {
				t.Errorf("%s between two promises", gap)
			}
		}
	}
}

func TestClocksThatAreDaysApart(t *testing.T) {
	t.Parallel()
	d := open(t, quota.Config{Windows: []quota.Window{{Limit: 1, Calendar: "day", Location: time.UTC}}})
	// Edges for the host's time, and the time of the server far away.
	for _, off := range []time.Duration{-10 * 24 * time.Hour, 20 * 24 * time.Hour} {
		calls := 0
		l, err := quota.New(d.rdb, []quota.Config{d.cfg}, quota.WithClock(d.hand.now), quota.WithEdgesAt(func() time.Time { calls++; return epoch.Add(off) }))
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "a", Cost: 1})
		if !errors.Is(err, quota.ErrClock) || got.Granted || calls == 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if n := len(d.keys()); n != 0 {
			t.Errorf("%d keys written", n)
		}
	}
	// Five minutes matter to nobody.
	for _, off := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		d.hand.set(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
		l, err := quota.New(d.rdb, []quota.Config{d.cfg}, quota.WithClock(d.hand.now), quota.WithEdgesAt(func() time.Time { return d.hand.now().Add(off) }))
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "b", Cost: 1})
		if err != nil || !got.Granted || got.Windows[0].Per != 24*time.Hour {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestAUseCountsWhatItsWindowCounts(t *testing.T) {
	t.Parallel()
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(2026, 11, 2, 0, 0, 0, 0, pacific) // after a day of 25 hours
	day := quota.Use{Calendar: "day", Location: pacific, Per: 25 * time.Hour}
	hour := quota.Use{Per: time.Hour}
	for _, c := range []struct {
		name         string
		use          quota.Use
		granted, now time.Time
		want         bool
	}{
		{"from its first instant", day, midnight.Add(-25 * time.Hour), midnight.Add(-1), true},
		{"before its first instant", day, midnight.Add(-25*time.Hour - 1), midnight.Add(-1), false},
		{"a second before midnight, at midnight", day, midnight.Add(-time.Second), midnight, false},
		{"in the new day", day, midnight, midnight.Add(24*time.Hour - 1), true},
		{"to the length's end", hour, midnight, midnight.Add(time.Hour - 1), true},
		{"at the length's end", hour, midnight, midnight.Add(time.Hour), false},
	} {
		if got := c.use.Counts(c.granted, c.now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

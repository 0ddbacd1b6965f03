package scheduler

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimetableHasTheTicksThatAheadSees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		e := Entry{
			Name:       "feed",
			Expression: rapid.SampledFrom([]string{"*/15 * * * *", "@every 7m", "30 2 * * *", "0 9-17 * * 1-5"}).Draw(rt, "expression"),
			Timezone:   rapid.SampledFrom([]string{"UTC", "America/Los_Angeles", "Australia/Lord_Howe"}).Draw(rt, "zone"),
			Jitter:     rapid.SampledFrom([]time.Duration{0, 30 * time.Second, time.Hour}).Draw(rt, "jitter"),
			Phase:      rapid.SampledFrom([]time.Duration{0, 1500 * time.Millisecond, 20 * time.Minute}).Draw(rt, "phase"),
		}
		from := time.UnixMilli(rapid.Int64Range(1_793_000_000_000, 1_794_000_000_000).Draw(rt, "from"))
		span := time.Duration(rapid.Int64Range(1, int64(60*time.Hour/time.Millisecond)).Draw(rt, "span")) * time.Millisecond
		tables, err := Timetables([]Entry{e})
		if err != nil {
			rt.Fatal(err)
		}
		// Ahead leaves out from itself and has the end; Between has from and not the end.
		ahead, _, err := Ahead([]Entry{e}, from.Add(-time.Millisecond), span, 1_000_000)
		if err != nil {
			rt.Fatal(err)
		}
		var got, want []time.Time
		for tick := range tables[0].Between(from, from.Add(span)) {
			got = append(got, tick.FireAt)
		}
		for _, u := range ahead {
			want = append(want, u.FireAt)
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			rt.Fatalf("ticks %v, want %v", got, want)
		}
		before, ok := tables[0].Before(from)
		after, ok2 := tables[0].After(from)
		if !ok || !ok2 || !before.FireAt.Before(from) || after.FireAt.Before(from) || len(got) > 0 && !after.FireAt.Equal(got[0]) {
			rt.Fatalf("before %v, after %v, first %v", before, after, got)
		}
		if next, _ := tables[0].After(before.FireAt.Add(time.Millisecond)); !next.FireAt.Equal(after.FireAt) {
			rt.Fatalf("between %v and %v there is %v", before.FireAt, after.FireAt, next.FireAt)
		}
	})
}

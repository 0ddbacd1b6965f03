package quota

import (
	"testing"
	"time"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDayEdges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, zone, at string
		lengths        []time.Duration // of the day before, of the day, of the next
		start          string          // of the day
	}{
		{"an ordinary day", "America/Los_Angeles", "2026-06-10T12:00:00-07:00", []time.Duration{24 * time.Hour, 24 * time.Hour, 24 * time.Hour}, "2026-06-10T00:00:00-07:00"},
		{"23 hours", "America/Los_Angeles", "2026-03-08T12:00:00-07:00", []time.Duration{24 * time.Hour, 23 * time.Hour, 24 * time.Hour}, "2026-03-08T00:00:00-08:00"},
		{"25 hours", "America/Los_Angeles", "2026-11-01T23:59:59-08:00", []time.Duration{24 * time.Hour, 25 * time.Hour, 24 * time.Hour}, "2026-11-01T00:00:00-07:00"},
		{"midnight is skipped", "Africa/Cairo", "2026-04-24T12:00:00+03:00", []time.Duration{24 * time.Hour, 23 * time.Hour, 24 * time.Hour}, "2026-04-24T01:00:00+03:00"},
		{"midnight comes twice", "America/Havana", "2026-11-01T12:00:00-05:00", []time.Duration{24 * time.Hour, 25 * time.Hour, 24 * time.Hour}, "2026-11-01T00:00:00-04:00"},
		{"a date is skipped", "Pacific/Apia", "2011-12-29T12:00:00-10:00", []time.Duration{24 * time.Hour, 24 * time.Hour, 24 * time.Hour}, "2011-12-29T00:00:00-10:00"},
		{"half an hour", "Australia/Lord_Howe", "2026-10-04T12:00:00+11:00", []time.Duration{24 * time.Hour, 23*time.Hour + 30*time.Minute, 24 * time.Hour}, "2026-10-04T00:00:00+10:30"},
		{"far east", "Pacific/Kiritimati", "2026-06-10T00:00:00+14:00", []time.Duration{24 * time.Hour, 24 * time.Hour, 24 * time.Hour}, "2026-06-10T00:00:00+14:00"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		edges := dayEdges(zone(t, c.zone), at, 1, 2)
		start, err := time.Parse(time.RFC3339, c.start)
		if err != nil || !edges[1].Equal(start) {
			t.Errorf("%s: the day begins at %s, want %s", c.what, edges[1].In(at.Location()), c.start)
		}
		for i, want := range c.lengths {
			if i+1 < len(edges) {
				if got := edges[i+1].Sub(edges[i]); got != want {
					t.Errorf("%s: day %d has %s, want %s", c.what, i, got, want)
				}
			}
		}
	}
	// The date that Samoa left out has no day of its own.
	apia := zone(t, "Pacific/Apia")
	edges := dayEdges(apia, time.Date(2011, 12, 29, 12, 0, 0, 0, apia), 0, 3)
	if len(edges) != 3 || edges[1].In(apia).Format(time.DateOnly) != "2011-12-31" {
		t.Errorf("%v", edges)
	}
}

func TestEdgesAreMadeAnewWhenTheDayIsOver(t *testing.T) {
	t.Parallel()
	c := &calendar{zone: zone(t, "America/Los_Angeles")}
	at := time.Date(2026, 10, 31, 12, 0, 0, 0, c.zone)
	for range 4 {
		text := c.edges(at)
		if got := len(text)/8 - 1; got != daysBefore+daysAfter+1 {
			t.Errorf("%d edges: %q", got, text)
		}
		if again := c.edges(c.to.Add(-1)); again != text {
			t.Errorf("within the day: %q, then %q", text, again)
		}
		if next := c.edges(c.to); next == text {
			t.Error("the edges of a day gone by")
		}
		if before := c.edges(at); before != text {
			t.Errorf("a clock that steps back: %q, want %q", before, text)
		}
		at = at.AddDate(0, 0, 1)
	}
}

package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestAheadGivesTheTicksOfASpanInOrder(t *testing.T) {
	// The night in which Berlin's clocks go back: a fixed 02:30 comes once, an hour of * twice.
	from := time.Date(2026, 10, 24, 23, 0, 0, 0, time.UTC)
	entries := []Entry{
		{Name: "fixed", Expression: "30 2 * * *", Timezone: "Europe/Berlin", Feed: "a"},
		{Name: "hourly", Expression: "30 * * * *", Timezone: "Europe/Berlin"},
		{Name: "later", Expression: "@every 2h", Phase: 90 * time.Minute},
	}
	ticks, more, err := Ahead(entries, from, 4*time.Hour, 100)
	if err != nil || more {
		t.Fatal(more, err)
	}
	var got []string
	for _, u := range ticks {
		got = append(got, u.Schedule+" "+u.FireAt.Format("15:04"))
	}
	want := []string{"hourly 23:30", "later 23:30", "fixed 00:30", "hourly 00:30", "hourly 01:30", "later 01:30", "hourly 02:30"}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if ticks[2].Feed != "a" || ticks[0].Feed != "hourly" {
		t.Errorf("%+v", ticks)
	}
}

func TestAheadIsBounded(t *testing.T) {
	var entries []Entry
	for i := range 2000 {
		entries = append(entries, Entry{Name: fmt.Sprintf("feed-%04d", i), Expression: "@every 1s"})
	}
	begun := time.Now()
	ticks, more, err := Ahead(entries, begun, 24*time.Hour, 5000)
	if err != nil || !more || len(ticks) != 5000 {
		t.Fatal(len(ticks), more, err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if last := ticks[4999]; last.Instant.After(begun.Add(4 * time.Second)) {
		t.Errorf("the last one is of %s", last.Instant)
	}
	if ticks, more, err := Ahead(entries, begun, 24*time.Hour, 0); err != nil || !more || len(ticks) != 0 {
		t.Error(len(ticks), more, err)
	}
}

// Two spans side by side have each tick once, whatever the jitter.
func TestAheadOfJitteredTicksIsWhole(t *testing.T) {
	entries := []Entry{{Name: "a", Expression: "*/5 * * * *", Jitter: 4 * time.Minute}, {Name: "b", Expression: "7 * * * *", Jitter: time.Hour, Spread: time.Hour}}
	from := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	whole, _, err := Ahead(entries, from, 6*time.Hour, 1000)
	if err != nil || len(whole) < 70 {
		t.Fatal(len(whole), err)
	}
	var pieces []Upcoming
	for at := from; at.Before(from.Add(6 * time.Hour)); at = at.Add(time.Minute) {
		part, _, err := Ahead(entries, at, time.Minute, 1000)
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, part...)
	}
	if !slices.Equal(whole, pieces) {
		t.Errorf("%d ticks in one piece, %d in many", len(whole), len(pieces))
	}
}

func TestAheadTellsFaults(t *testing.T) {
	var fault *EntryError
	if _, _, err := Ahead([]Entry{{Name: "a", Expression: "61 * * * *"}}, time.Now(), time.Hour, 1); !errors.As(err, &fault) {
		t.Error(err)
	}
}

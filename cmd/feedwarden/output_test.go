package main

import (
	"testing"
	"time"
)

func TestSpansHaveTwoUnitsAtMostAndNoneThatIsZero(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 350 * time.Millisecond: "350ms", 90 * time.Second: "1m30s", 20*time.Minute + 10*time.Second: "20m10s", 10 * time.Minute: "10m",
		10 * time.Hour: "10h", 24 * time.Hour: "24h", 25*time.Hour + 30*time.Minute: "25h30m", 7 * 24 * time.Hour: "7d", 50 * time.Hour: "2d2h",
		-90 * time.Second: "-1m30s", 12300 * time.Millisecond: "12.3s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestInstantsNameTheDayWhereItIsAnother(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 23, 30, 0, 0, time.Local)
	for at, want := range map[time.Time]string{
		now: "23:30:00", now.Add(time.Hour): "1 Dec 00:30", now.AddDate(2, 0, 0): "2028-11-30 23:30", {}: "—",
	} {
		if got := instant(&at, now); got != want {
			t.Errorf("instant(%s) = %s, want %s", at, got, want)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// line prints one object as JSON on a line.
func (e *env) line(object any) error {
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}

// span is a duration as a person reads it: 350ms, 12.3s, 4m10s, 3h5m, 2d4h. At
// most two units, and none that is zero.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return two(int64(d.Round(time.Second)/time.Second), 60, "m", "s")
	case d < 48*time.Hour:
		return two(int64(d.Round(time.Minute)/time.Minute), 60, "h", "m")
	}
	return two(int64(d.Round(time.Hour)/time.Hour), 24, "d", "h")
}

func two(n, per int64, large, small string) string {
	text := fmt.Sprintf("%d%s", n/per, large)
	if n%per > 0 {
		text += fmt.Sprintf("%d%s", n%per, small)
	}
	return text
}

// instant is a time for a person, in local time: the clock alone where it is
// today, else the day as well.
func instant(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return "—"
	}
	local, today := t.Local(), now.Local()
	switch {
	case local.YearDay() == today.YearDay() && local.Year() == today.Year():
		return local.Format("15:04:05")
	case t.Sub(now).Abs() < 180*24*time.Hour:
		return local.Format("2 Jan 15:04")
	}
	return local.Format("2006-01-02 15:04")
}

func orDash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}

package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// span is a length of time for a person: its two largest units.
func span(d time.Duration) string {
	if d < 0 {
		d = -d
	}
	const day = 24 * time.Hour
	two := func(big time.Duration, bigName string, small time.Duration, smallName string) string {
		n, rest := d/big, d%big/small
		if rest == 0 {
			return fmt.Sprintf("%d %s", n, bigName)
		}
		return fmt.Sprintf("%d %s %d %s", n, bigName, rest, smallName)
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, "min", time.Second, "s")
	case d < day:
		return two(time.Hour, "h", time.Minute, "min")
	}
	return two(day, "d", time.Hour, "h")
}

// moment is an instant on a page: how far off it is, and, behind it, when.
type moment struct {
	At   *time.Time
	Text string
}

// relative is an instant seen from now; none stands for no instant.
func relative(t *time.Time, now time.Time, none string) moment {
	if t == nil || t.IsZero() {
		return moment{Text: none}
	}
	d := t.Sub(now)
	switch {
	case d.Abs() < time.Second:
		return moment{t, "now"}
	case d > 0:
		return moment{t, "in " + span(d.Round(time.Second))}
	}
	return moment{t, span(d.Round(time.Second)) + " ago"}
}

// clock is when something is: the time alone where it is today.
func clock(at, now time.Time) string {
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04:05")
	}
	return at.Format("2 January, 15:04:05")
}

// grouped is a number with its thousands apart: 10 000.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

// counted is a number of things: 1 feed, 8 feeds.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(int64(n)) + " " + what + "s"
}

// plural chooses the word that goes with a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// list names the first few of many.
func list(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(names[:most], ", "), grouped(int64(len(names)-most)))
}

// bar is a share, drawn and said.
type bar struct {
	Percent     float64
	Reserve     float64 // the share at the end that is kept back
	ReserveFrom float64
	Tone        string // good, warn, bad, info
	Says        string
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	p := float64(part) / float64(whole) * 100
	return float64(int(min(max(p, 0), 100)*10)) / 10
}

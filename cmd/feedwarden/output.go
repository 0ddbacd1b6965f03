package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// table collects rows for a person, or prints objects for a program: a command
// adds both and env.json decides.
type table struct {
	e      *env
	tw     *tabwriter.Writer
	text   *bytes.Buffer
	rows   int
	header []string
	empty  string // what to say, on standard error, when there is no row
}

func (e *env) table(empty string, header ...string) *table {
	text := &bytes.Buffer{}
	return &table{e: e, text: text, tw: tabwriter.NewWriter(text, 0, 0, 2, ' ', 0), header: header, empty: empty}
}

// add writes one object as a JSON line, or its cells as a row.
func (t *table) add(object any, cells ...string) error {
	t.rows++
	if t.e.json {
		return t.e.line(object)
	}
	if t.rows == 1 {
		fmt.Fprintln(t.tw, strings.Join(t.header, "\t"))
	}
	for i := range cells {
		cells[i] = oneLine(cells[i])
	}
	fmt.Fprintln(t.tw, strings.Join(cells, "\t"))
	return nil
}

func (t *table) flush() error {
	if t.rows == 0 && !t.e.json {
		fmt.Fprintln(t.e.errOut, t.empty)
	}
	if err := t.tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		line = strings.TrimRight(line, "\n")
		if t.e.width > 0 {
			line = clip(line, t.e.width) // a wrapped row is no row any more; --json has it whole
		}
		if _, err := fmt.Fprintln(t.e.out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// line prints one object as JSON on a line.
func (e *env) line(object any) error {
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}

// oneLine keeps control characters of other people's texts out of a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}

// clip shortens a text for a table's cell.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
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

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// demoLog is a slog.Handler that tells a person what happens, a line an event.
type demoLog struct {
	mu     *sync.Mutex
	w      io.Writer
	colour bool
	width  int // 0: without end
	attrs  map[string]slog.Value
}

func newDemoLog(w io.Writer, colour bool, width int) *demoLog {
	return &demoLog{mu: &sync.Mutex{}, w: w, colour: colour, width: width, attrs: map[string]slog.Value{}}
}

func (d *demoLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (d *demoLog) WithGroup(string) slog.Handler                { return d }

func (d *demoLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *d
	c.attrs = maps.Clone(d.attrs)
	for _, a := range attrs {
		c.attrs[a.Key] = a.Value
	}
	return &c
}

func (d *demoLog) Handle(_ context.Context, r slog.Record) error {
	attrs := maps.Clone(d.attrs)
	r.Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value; return true })
	text, paint := describe(r, attrs)
	if text == "" {
		return nil
	}
	const indent = 26 // of the clock and the feed
	text = strings.Join(folded(text, d.width-indent), "\n"+strings.Repeat(" ", indent))
	if d.colour && paint != "" {
		text = "\x1b[" + paint + "m" + text + "\x1b[0m"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := fmt.Fprintf(d.w, "%s  %-11s %s\n", r.Time.Format("15:04:05.000"), str(attrs["feed"]), text)
	return err
}

const (
	green  = "32"
	yellow = "33"
	red    = "31"
	dim    = "2"
)

// describe puts an event into words; "" is not shown.
func describe(r slog.Record, a map[string]slog.Value) (text, paint string) {
	switch r.Message {
	case "granted":
		return fmt.Sprintf("granted %s of quota %s", count(int(a["cost"].Int64()), "unit"), str(a["quota"])), dim
	case "job snoozed":
		until := a["until"]
		at := until.String()
		if t, ok := until.Any().(time.Time); ok {
			at = t.Local().Format("15:04:05.000")
		}
		return fmt.Sprintf("snoozed until %s (%s)", at, str(a["reason"])), yellow
	case "fetched":
		if a["status"].Int64() == http.StatusNotModified {
			return fmt.Sprintf("not modified, through %s", str(a["via"])), dim
		}
		return fmt.Sprintf("fetched %s through %s", count(int(a["items"].Int64()), "item"), str(a["via"])), dim
	case "stored":
		if str(a["what"]) == "new version" {
			return fmt.Sprintf("new version %d", a["version"].Int64()), green
		}
		return fmt.Sprintf("%s: version %d stays", str(a["what"]), a["version"].Int64()), green
	}
	if r.Level < slog.LevelWarn {
		return "", ""
	}
	var b strings.Builder
	b.WriteString(r.Message)
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if k != "feed" {
			fmt.Fprintf(&b, "  %s=%s", k, str(a[k]))
		}
	}
	return b.String(), red
}

func str(v slog.Value) string {
	if v.Equal(slog.Value{}) {
		return ""
	}
	return oneLine(v.String())
}

// shares tells who carried how much.
func shares(by map[string]int64) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, by[k]))
	}
	return strings.Join(parts, ", ")
}

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// A person at a terminal reads a feed as a table, a program always as JSON.
func TestFeedIsATableOnATerminalAndJSONElsewhere(t *testing.T) {
	t.Parallel()
	up := 3
	v := feed.Version{Meta: feed.Meta{Version: 7, FetchedAt: time.Now()}, Items: []source.Item{
		{ID: "a", Title: "動画 one " + strings.Repeat("word ", 30), URL: "https://example.org/1", Rank: 1, RankChange: &up}, {ID: "b", URL: "https://example.org/2", Rank: 2},
	}}
	for name, c := range map[string]struct {
		json   bool
		format string
		want   string
	}{
		"terminal":        {want: "RANK  RISEN  PUBLISHED  TITLE\n1     +3     —          動画 one word"},
		"terminal, named": {format: "json", want: `{"feed":"news","fetched_at":`},
		"pipe":            {json: true, want: `{"feed":"news","fetched_at":`},
		"pipe, named":     {json: true, format: "ndjson", want: `{"id":"a",`},
	} {
		var out, errOut bytes.Buffer
		e := &env{out: &out, errOut: &errOut, json: c.json, width: 60}
		get := feedsGetCmd{Name: "news", Format: c.format}
		if err := get.print(e, v); err != nil || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if table := !c.json && c.format == ""; table != strings.Contains(errOut.String(), "version 7") {
			t.Errorf("%s: on standard error: %s", name, errOut.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := columns(strings.TrimSpace(line)); name == "terminal" && n > 60 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

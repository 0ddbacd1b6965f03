package source

import (
	"fmt"
	"testing"
	"time"
)

// One instant in all the ways in which feeds, APIs and pages write it; every
// source reads it alike, for what it is or not at all.
func TestDatesAreReadAlikeInEverySource(t *testing.T) {
	const eight = "2026-11-30T08:00:00Z"
	sources := map[string]struct {
		s    Source
		body string
	}{
		"rss":       {feedSource(t), "<rss><channel><item><guid>1</guid><pubDate>%s</pubDate></item></channel></rss>"},
		"atom":      {feedSource(t), "<feed><entry><id>1</id><published>%s</published></entry></feed>"},
		"json feed": {feedSource(t), `{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","date_published":"%s"}]}`},
		"json":      {build(t, Config{Kind: "json", URL: "https://x.example/", Items: ".[]"}), `[{"id":1,"published":"%s"}]`},
		"html":      {build(t, Config{Kind: "html", URL: "https://x.example/", Items: "p", Map: map[string]string{"published": "i", "id": "b"}}), "<p><b>1</b><i>%s</i></p>"},
	}
	for text, want := range map[string]string{
		eight: eight, "2026-11-30t08:00:00z": eight, "2026-11-30T09:00:00+01:00": eight, "2026-11-30T09:00:00+0100": eight, "2026-11-30T09:00:00+01": eight,
		"2026-11-30 08:00:00": eight, "2026-11-30 08:00": eight, "2026-11-30T08:00": eight, "2026-11-30 09:00:00 +0100": eight, "20261130T080000Z": eight,
		"2026/11/30 08:00:00": eight, "2026/11/30 17:00 +0900": eight, "2026/11/30": "2026-11-30T00:00:00Z",
		"2026-11-30T08:00:00.123456789123Z": eight, "2026-11-30T08:00:00,5Z": eight, "2026-11-30T09:00:00+01:00[Europe/Oslo]": eight,
		"2026-11-29T24:00:00Z": "2026-11-30T00:00:00Z", "2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z", "Mon, 30 Nov 2026 24:00:00 +0000": "2026-12-01T00:00:00Z",
		"Mon, 30 Nov 2026 08:00:00 GMT": eight, "Mon, 30 Nov 26 08:00 UT": eight, "30 Nov 2026 8:00:00 Z": eight, "Mon,30 Nov 2026 09:00:00 +01:00": eight,
		"Monday, 30-Nov-26 08:00:00 GMT": eight, "Mon, 30 November 2026 08:00:00 +0000 (UTC)": eight, "Tue, 30 Nov 2026 08:00:00 +0000": eight,
		"Mon, 30 Nov 2026 03:00:00 EST": eight, "Mon, 30 Nov 2026 00:00:00 PST": eight, "Mon, 30 Nov 2026 09:00:00 CET": eight, "Mon, 30 Nov 2026 17:00:00 JST": eight,
		"Mon, 30 Nov 2026 10:00:00 GMT+2": eight, "Mon, 30 Nov 2026 04:30:00 -0330": eight, "Mon, 1 Sept 1997 08:00:00 GMT": "1997-09-01T08:00:00Z",
		"Wed, 01 Jan 97 08:00:00 GMT": "1997-01-01T08:00:00Z",
		// RFC 5322, 4.3: a name that nobody knows tells nothing of the zone.
		"Mon, 30 Nov 2026 08:00:00 XYZT": eight,
		"0000-00-00 00:00:00":            "null", "2026-02-30T08:00:00Z": "null", "2026-11-30T25:00:00Z": "null", "2026-11-30T08:61:00Z": "null", "30/11/2026 08:00": "null",
		"Mon, 31 Nov 2026 08:00:00 GMT": "null", "now": "null", "": "null", "2026-11-30T08:00:00+99:99": "null",
	} {
		for name, tt := range sources {
			a, err := tt.s.Read(answerTo(t, tt.s, Page{}, 200, fmt.Appendf(nil, tt.body, text)))
			if err != nil || len(a.Items) != 1 {
				t.Errorf("%s: %q: %v", name, text, err)
				continue
			}
			got := "null"
			if p := a.Items[0].Published; p != nil {
				got = p.Truncate(time.Second).Format(time.RFC3339)
			}
			if got != want {
				t.Errorf("%s: %q is %s, want %s", name, text, got, want)
			}
		}
	}
}

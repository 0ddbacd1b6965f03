package source

import (
	"strings"
	"testing"
	"time"

	"feedwarden/jobs/fetch"
)

// A source's own signs of a ban are looked for before its answer is read,
// whatever the kind.
func TestBanSigns(t *testing.T) {
	page := `<html><title>Wait</title><body><form id=captcha></form><p>Unusual TRAFFIC from you</p><ul><li>an item</li></ul>`
	kinds := map[string]struct {
		c    Config
		good string
	}{
		"html":        {Config{URL: "https://h/", Items: "li"}, `<li>an item about traffic</li>`},
		"json":        {Config{URL: "https://h/", Items: ".[]"}, `[{"id":1}]`},
		"syndication": {Config{URL: "https://h/"}, `<rss><channel><item><link>https://x.example/1</link></item></channel></rss>`},
		"youtube":     {Config{Method: "search.list", Key: "k"}, `{"kind":"youtube#searchListResponse","items":[{"id":{"videoId":"x"}}]}`},
	}
	for kind, k := range kinds {
		for name, tt := range map[string]struct {
			ban    BanSigns
			status int
			body   string
			banned bool
		}{
			"css":            {BanSigns{CSS: "form#captcha"}, 200, page, true},
			"text":           {BanSigns{Text: "unusual traffic"}, 200, page, true},
			"status":         {BanSigns{Status: []int{404, 410}}, 410, page, true},
			"one of several": {BanSigns{CSS: "#none", Text: "unusual traffic", Status: []int{500}}, 200, page, true},
			"in an error":    {BanSigns{CSS: "#captcha"}, 503, page, true},
			"a good answer":  {BanSigns{CSS: "#captcha", Text: "unusual traffic", Status: []int{403}}, 200, k.good, false},
		} {
			c := k.c
			c.Kind, c.Ban = kind, &tt.ban
			s := build(t, c)
			a, err := s.Read(answerTo(t, s, Page{}, tt.status, []byte(tt.body), "Retry-After", "60", "Content-Type", "text/html"))
			if !tt.banned {
				if err != nil || len(a.Items) != 1 {
					t.Errorf("%s, %s: %v", kind, name, err)
				}
				continue
			}
			e := wantAnswer(t, err, Ban)
			if e.RetryAfter != time.Minute || string(e.Kept) != tt.body || e.ContentType != "text/html" || !strings.Contains(e.Error(), "a ban page: ") {
				t.Errorf("%s, %s: %v, after %v, kept %q", kind, name, e, e.RetryAfter, e.Kept)
			}
		}
	}
}

// An answer that brings nothing is kept for a person: its beginning, and
// without the secrets that the request carried.
func TestOffendingBodiesAreKept(t *testing.T) {
	for name, tt := range map[string]struct {
		c      Config
		status int
		body   string
		kept   string
		want   AnswerKind
	}{
		"a page for a feed":    {Config{Kind: "syndication", URL: "https://h/"}, 200, "<html>hi", "<html>hi", NotAFeed},
		"cut short":            {Config{Kind: "json", URL: "https://h/", Items: "."}, 200, `{"a":`, `{"a":`, Truncated},
		"a refusal":            {Config{Kind: "json", URL: "https://h/", Items: "."}, 403, "go away", "go away", Forbidden},
		"an echoed header":     {Config{Kind: "json", URL: "https://h/", Items: ".", Headers: map[string]string{"Authorization": "Bearer tok-en-12", "Accept": "text/markdown"}}, 200, "text/markdown Bearer tok-en-12!", "text/markdown Bearer [redacted]!", NotAFeed},
		"an echoed key":        {Config{Kind: "youtube", Method: "search.list", Key: testKey}, 200, "key " + testKey, "key [redacted]", NotAFeed},
		"very much":            {Config{Kind: "syndication", URL: "https://h/"}, 200, strings.Repeat("x", 1<<20), strings.Repeat("x", 64<<10), NotAFeed},
		"a secret at the edge": {Config{Kind: "json", URL: "https://h/", Items: ".", Headers: map[string]string{"X-Key": "0123456789"}}, 200, strings.Repeat("x", 64<<10-4) + "0123456789", strings.Repeat("x", 64<<10-4) + "[red", NotAFeed},
	} {
		s := build(t, tt.c)
		resp := answerTo(t, s, Page{}, tt.status, []byte(tt.body), "Content-Type", "a/b")
		_, err := s.Read(resp)
		e := wantAnswer(t, err, tt.want)
		if string(e.Kept) != tt.kept || e.ContentType != "a/b" {
			t.Errorf("%s: kept %.80q of type %q", name, e.Kept, e.ContentType)
		}
		if len(e.Kept) > 0 {
			if e.Kept[0]++; string(resp.Body) != tt.body {
				t.Errorf("%s: it is kept in the body's own bytes", name)
			}
		}
	}
	// What nothing is known of has no body either.
	s := build(t, Config{Kind: "html", URL: "https://h/", Items: "li"})
	_, err := s.Read(&fetch.Response{Status: 502})
	if e := wantAnswer(t, err, Target5xx); len(e.Kept) != 0 {
		t.Errorf("%q", e.Kept)
	}
}

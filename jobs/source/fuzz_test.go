package source

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"feedwarden/jobs/fetch"
)

// corpus adds every recorded answer under a folder.
func corpus(f *testing.F, folder string, extra ...string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "")
	}
	for _, s := range extra {
		f.Add([]byte(s), "text/xml; charset=shift_jis")
	}
}

// sound checks what every answer must keep to, whatever came.
func sound(t *testing.T, c Config, a Answer, err error) {
	t.Helper()
	if err != nil {
		e := wantAnswer(t, err, err.(*AnswerError).Kind)
		if text := e.Error(); len(text) > 600 || strings.ContainsAny(text, "\n\r") || !utf8.ValidString(text) {
			t.Fatalf("error text %q", text)
		}
		return
	}
	if len(a.Items) > c.MaxItems {
		t.Fatalf("%d items", len(a.Items))
	}
	ids := map[string]bool{}
	for i, it := range a.Items {
		if it.ID == "" || len(it.ID) > 512 || ids[it.ID] || it.Rank != i+1 || it.FirstSeen.IsZero() || it.Fields == nil {
			t.Fatalf("item %d: %+v", i, it)
		}
		ids[it.ID] = true
		if it.URL != "" {
			if u, err := url.Parse(it.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
				t.Fatalf("link %q", it.URL)
			}
		}
		if _, err := json.Marshal(it); err != nil {
			t.Fatalf("cannot be stored: %v", err)
		}
	}
}

func fuzzed(t *testing.T, c Config, body []byte, contentType string) {
	c.MaxItems = 50
	s := build(t, c)
	resp := answerTo(t, s, Page{}, 200, body, "Content-Type", contentType)
	a, err := s.Read(resp)
	sound(t, c, a, err)
	again, err2 := s.Read(&fetch.Response{Status: 200, Header: resp.Header, Body: body, URL: resp.URL, Label: resp.Label})
	if (err == nil) != (err2 == nil) || len(again.Items) != len(a.Items) {
		t.Fatalf("two readings differ: %v, %v", err, err2)
	}
}

func FuzzSyndication(f *testing.F) {
	corpus(f, "syndication",
		`<rss><channel><item><link xml:base='http://[::1]:99/'>%zz</link></item></channel></rss>`,
		`<feed xml:base="//x"><entry><link href=":"/></entry></feed>`,
		"<rss xmlns:a='b'><channel><a:item/><item><a:b><a:c/></a:b></item></rss>")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		fuzzed(t, Config{Kind: "syndication", URL: "https://feeds.example/f"}, body, contentType)
	})
}

func FuzzYouTube(f *testing.F) {
	corpus(f, "youtube", `{"kind":"ListResponse","items":[{"id":{"videoId":"x"},"statistics":{"viewCount":-1}}]}`)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		fuzzed(t, Config{Kind: "youtube", Method: "search.list", Key: "k"}, body, contentType)
	})
}

func FuzzYouTubeFailure(f *testing.F) {
	f.Add([]byte(googleError(403, "quotaExceeded", "x")), 403)
	f.Add([]byte(`{"error":{"details":[{"metadata":{"a":1}}]}}`), 429)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		s := build(t, Config{Kind: "youtube", Method: "search.list", Key: "k"})
		if status == 200 {
			return
		}
		a, err := s.Read(answerTo(t, s, Page{}, status, body))
		if err == nil {
			t.Fatalf("status %d reads as %+v", status, a)
		}
		sound(t, Config{}, a, err)
	})
}

func FuzzJSON(f *testing.F) {
	corpus(f, "json", `[{"id":1e999,"url":"\u0000","published":-1e308}]`)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		fuzzed(t, Config{Kind: "json", URL: "https://feeds.example/f", Items: ".. | objects"}, body, contentType)
	})
}

func FuzzDecodeText(f *testing.F) {
	corpus(f, "syndication", "\xff\xfe\x00", "\x1b$B", "<\x00?\x00")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		text, lossy := decodeText(body, contentType)
		if !utf8.ValidString(text) {
			t.Fatalf("%q is not UTF-8", text)
		}
		if utf8.Valid(body) && lossy && !strings.Contains(contentType, "charset") && !strings.Contains(string(body), "encoding") &&
			!strings.ContainsAny(string(body), "\x00\ufffd") {
			t.Fatalf("valid UTF-8 is called lossy: %q", body)
		}
	})
}

package source

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		s := build(t, Config{Kind: "youtube", Method: "search.list", Key: testKey})
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

func FuzzHTML(f *testing.F) {
	corpus(f, "html", `<base href="//["><li><a href="?x">1<time datetime=x>`, "<b a=1><b a=2><p>x<p>x</b><table><li>", "<li><svg><title><li>", "<template><li>")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		fuzzed(t, Config{
			Kind: "html", URL: "https://feeds.example/f", Items: "li, .item, a", Next: &NextPage{CSS: "a", Max: 3}, Ban: &BanSigns{CSS: "#captcha"},
			Map: map[string]string{"x": "*@href", "y": ".", "published": "time"},
		}, body, contentType)
	})
}

// Whatever a target says of its next page: a request is one to a web address,
// with a secret to the same origin, or there is none; and a list ends.
func FuzzJSONPaging(f *testing.F) {
	f.Add([]byte(`{"rows":[{"id":1}],"next":"?p=2"}`), `</x>; rel="next"`, 1)
	f.Add([]byte(`{"rows":[{}],"next":{"a":1}}`), `<//[>; rel=next`, 2)
	f.Add([]byte(`{"rows":[],"next":"https://elsewhere.example\u0000"}`), `<a>; rel="\`, 0)
	f.Add([]byte(`{"rows":[1,2],"next":1e400}`), `</a>;;rel==next`, 3)
	f.Add([]byte(`{"rows":[{}]}`), "<//h\xce>;rel=next", 1)
	ways := []Paging{{Next: ".next"}, {LinkHeader: true}, {Cursor: ".next", Param: "c"}, {Page: &PageNumbers{From: 1, Max: 3}}}
	f.Fuzz(func(t *testing.T, body []byte, link string, way int) {
		c := Config{Kind: "json", URL: "https://feeds.example/f?p={page}", Items: ".rows[]", MaxItems: 50, Headers: map[string]string{"X-Key": "secret-secret"}}
		c.Paging = &ways[uint(way)%uint(len(ways))]
		s := build(t, c)
		p := Page{}
		for n := 0; ; n++ {
			if n > 3 {
				break // the same answer again and again: it has ended, or is a cursor of its own each time
			}
			req, err := s.Request(p)
			if err != nil {
				t.Fatalf("a cursor that was given is refused: %v", err)
			}
			u, err := url.Parse(req.URL)
			if err != nil || u.Scheme != "https" || u.Host != "feeds.example" || !req.Keyed {
				t.Fatalf("%q, %v", req.URL, err)
			}
			a, err := s.Read(&fetch.Response{Status: 200, Header: http.Header{"Link": {link}}, Body: body, URL: u, Label: req.Label})
			if n == 0 {
				sound(t, c, a, err)
			}
			if err != nil || a.Next == "" {
				return
			}
			p.Cursor = a.Next
		}
		if c.Paging.Page != nil {
			t.Fatal("numbers beyond max")
		}
	})
}

func FuzzPushed(f *testing.F) {
	corpus(f, "syndication", `[{"id":1,"fields":{"a":[]}}]`, "{\"id\":1}\n{\"id\":2}", `{"items":[{"url":"https://x"}]}`, `{"items":[]}[]`, "[")
	corpus(f, "json")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		c := Config{MaxItems: 50, Now: func() time.Time { return now }}
		a, err := ReadPushed(contentType, body, c)
		sound(t, c, a, err)
	})
}

func FuzzDecodeText(f *testing.F) {
	corpus(f, "syndication", "\xff\xfe\x00", "\x1b$B", "<\x00?\x00")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		if text, _ := decodeHTML(body, contentType); !utf8.ValidString(text) {
			t.Fatalf("%q is not UTF-8", text)
		}
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

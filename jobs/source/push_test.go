package source

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadPushed(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, body string
		items             []string
	}{
		"a list": {"application/json", `[{"id":"a","url":"https://x.example/a","title":" A\n title ","published":"2026-11-30T08:00:00+06:00","fields":{"n":1}},{"id":9007199254740993}]`,
			[]string{"a | https://x.example/a | A title | 2026-11-30T02:00:00Z", "9007199254740993 |  |  | null"}},
		"an object, as a feed is given out": {"application/json; charset=utf-8", `{"feed":"scores","version":3,"fetched_at":"x","items":[{"id":"a","url":"","title":"","published":null,"first_seen":"2020-01-01T00:00:00Z","rank":7,"fields":{}}]}`,
			[]string{"a |  |  | null"}},
		"lines":             {"application/x-ndjson", "{\"id\":\"a\"}\r\n\n{\"id\":\"b\",\"published\":\"2026-11-30\"}", []string{"a |  |  | null", "b |  |  | 2026-11-30T00:00:00Z"}},
		"lines, not said":   {"", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n", []string{"a |  |  | null", "b |  |  | null"}},
		"one line":          {"text/plain", `{"url":"https://x.example/1"}`, []string{"https://x.example/1 | https://x.example/1 |  | null"}},
		"no items":          {"application/json", `[]`, nil},
		"no items, wrapped": {"application/json", `{"items":[]}`, nil},
		"no lines":          {"application/x-ndjson", "\n", nil},
		"UTF-16":            {"application/json", "\xff\xfe[\x00{\x00\"\x00i\x00d\x00\"\x00:\x001\x00}\x00]\x00", []string{"1 |  |  | null"}},
		"RSS":               {"application/rss+xml", `<rss><channel><item><guid isPermaLink="false">g</guid><link>https://x.example/1</link><title>One</title></item></channel></rss>`, []string{"g | https://x.example/1 | One | null"}},
		"Atom, not said":    {"", `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry><id>e</id><link href="/relative"/><title>E</title></entry></feed>`, []string{"e |  | E | null"}},
		"JSON Feed":         {"application/json", `{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{"id":1,"url":"https://x.example/1"}]}`, []string{"1 | https://x.example/1 |  | null"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ReadPushed(tt.contentType, []byte(tt.body), Config{})
			if err != nil {
				t.Fatal(err)
			}
			for i, it := range a.Items {
				if i < len(tt.items) && brief(it) != tt.items[i] || it.Rank != i+1 || it.FirstSeen.IsZero() || it.FirstSeen.Year() == 2020 || it.Fields == nil {
					t.Errorf("item %d is %+v", i, it)
				}
			}
			if len(a.Items) != len(tt.items) {
				t.Errorf("%d items, want %d", len(a.Items), len(tt.items))
			}
		})
	}
	a, err := ReadPushed("", []byte(`[{"title":"x"},{"fields":{"n":{"m":[1,null]}}}]`), Config{})
	if err != nil || !strings.HasPrefix(a.Items[0].ID, "sha256:") || fmt.Sprint(a.Items[1].Fields) != "map[n:map[m:[1 <nil>]]]" {
		t.Errorf("%v %+v", err, a.Items)
	}
}

// What is wrong with a pushed body is said with its place.
func TestPushedFaultsSayWhere(t *testing.T) {
	const nd = "application/x-ndjson"
	for name, tt := range map[string]struct {
		contentType, body string
		want              AnswerKind
		says              string
	}{
		"nothing":            {"application/json", " ", Invalid, "nothing was put; an empty list is []"},
		"neither":            {"text/csv", "id,title\n1,x\n", NotAFeed, "neither JSON nor XML"},
		"syntax":             {"", "[\n {\"id\": 1},\n {\"id\": x}\n]", Invalid, "line 3, column 9: not JSON"},
		"syntax, wrapped":    {"", "{\"items\": [\n {\"id\": 1,}\n]}", Invalid, "line 2, column 11: not JSON"},
		"syntax in a line":   {nd, "{\"id\":1}\n\n{\"id\":}\n", Invalid, "line 3, column 7: not JSON"},
		"cut":                {"", "[{\"id\":1},\n{\"id\":", Truncated, "the JSON stops in the middle, in line 2, column 7"},
		"cut, wrapped":       {"", "{\"items\":[\n\n{\"id\":1}", Truncated, "in line 3"},
		"cut line":           {nd, "{\"id\":1}\n{\"id\":", Invalid, "line 2: the JSON stops in the middle"},
		"more behind":        {"", "[{\"id\":1}]\n[]", Invalid, "line 2, column 1: not JSON: invalid character '[' after top-level value"},
		"more behind, items": {"", "{\"items\":[]} x", Invalid, "something stands after the object"},
		"items is no list":   {"", "{\n\"items\": {}}", Invalid, "line 2, column 10: items is no list"},
		"no object":          {"", `[{"id":1},7]`, Invalid, "item 2 is no object"},
		"an unknown key":     {"", `[{"id":1},{"id":2,"link":"x"}]`, Invalid, `item 2: an item has no "link"`},
		"a line's key":       {nd, "{\"id\":1}\n{\"score\":3}", Invalid, `line 2: an item has no "score"`},
		"an object alone":    {"", `{"score":3}`, Invalid, `line 1: an item has no "score"`},
		"an odd id":          {"", `[{"id":{"a":1}}]`, Invalid, "item 1: id should be a text"},
		"a flag for a title": {"", `[{"title":true}]`, Invalid, "item 1: title should be a text"},
		"a bad url":          {"", `[{"url":"javascript:x"}]`, Invalid, "item 1: url should begin with https:// or http://"},
		"a bad instant":      {"", `[{"id":1,"published":"soon"}]`, Invalid, "item 1: published is no instant"},
		"bad fields":         {"", `[{"id":1,"fields":[]}]`, Invalid, "item 1: fields should be an object"},
		"an empty item":      {"", `[{"fields":{}}]`, Invalid, "item 1 is empty"},
		"the same id":        {"", `[{"id":1},{"id":2},{"id":"1"}]`, Invalid, `item 3 has the same id as item 1, "1"`},
		"too many":           {"", `[{"id":1},{"id":2},{"id":3},{"id":4}]`, Invalid, "more than 3 items"},
		"too many entries":   {"", `<rss><channel>` + strings.Repeat("<item><title>x</title></item>", 4) + `</channel></rss>`, Invalid, "more than 3 items"},
		"a page":             {"text/html", `<html><title>x`, NotAFeed, "an HTML page"},
		"cut XML":            {"", `<rss><channel><item>`, Truncated, "the XML stops in the middle"},
	} {
		a, err := ReadPushed(tt.contentType, []byte(tt.body), Config{MaxItems: 3})
		if err == nil {
			t.Errorf("%s: read as %+v", name, a)
			continue
		}
		e := wantAnswer(t, err, tt.want)
		if !strings.Contains(e.Error(), tt.says) {
			t.Errorf("%s: %v\nshould say %s", name, e, tt.says)
		}
		if string(e.Kept) != tt.body {
			t.Errorf("%s: kept %q", name, e.Kept)
		}
	}
}

// A push feed is a source like another, and asks nobody.
func TestPushAsksNobody(t *testing.T) {
	s := build(t, Config{Kind: "push"})
	if _, err := s.Request(Page{}); err == nil || !strings.Contains(err.Error(), "never fetched") {
		t.Error(err)
	}
	if s.Host() != "" {
		t.Error(s.Host())
	}
}

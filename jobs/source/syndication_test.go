package source

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func feedSource(t testing.TB) Source {
	return build(t, Config{Kind: "syndication", URL: "https://feeds.example/news/feed.xml"})
}

// brief is an item as these tests compare it: "id | url | title | published".
func brief(it Item) string {
	published := "null"
	if it.Published != nil {
		published = it.Published.Format(time.RFC3339)
	}
	return strings.Join([]string{it.ID, it.URL, it.Title, published}, " | ")
}

func TestSyndicationCorpus(t *testing.T) {
	for _, tt := range []struct {
		file, contentType string
		lossy             bool
		dropped           int
		items             []string
	}{
		{"rss2.xml", "application/rss+xml; charset=utf-8", false, 0, []string{
			"tag:1 | https://harbour.example/ferries?a=1&b=2 | Ferries & tides: the winter plan | 2026-11-30T08:00:00Z",
			"https://harbour.example/2 | https://harbour.example/2 | Only a permalink | 2026-11-29T17:00:00Z",
			"tag:3 | https://feeds.example/stories/3 | A relative link, a bad date | null",
		}},
		{"utf16-bom.xml", "application/xml", false, 0, []string{
			"https://vesti.example/1 | https://vesti.example/1 | Первая новость | null",
			"https://vesti.example/2 | https://vesti.example/2 | Žetva i kiša | null",
			"https://vesti.example/3 | https://vesti.example/3 | 三番目 | null",
		}},
		{"utf16be-no-bom.xml", "text/xml; charset=utf-8", false, 0, []string{
			"https://vesti.example/1 | https://vesti.example/1 | Первая новость | null",
			"https://vesti.example/2 | https://vesti.example/2 | Žetva i kiša | null",
			"https://vesti.example/3 | https://vesti.example/3 | 三番目 | null",
		}},
		{"windows-1251-declared.xml", "text/xml", false, 0, []string{"1 | https://vesti.example/1 | Снег в Москве — «первый» | null"}},
		{"windows-1251-declared.xml", "text/xml; charset=utf-8", false, 0, []string{"1 | https://vesti.example/1 | Снег в Москве — «первый» | null"}},
		{"charset-lies.xml", "text/xml; charset=us-ascii", false, 0, []string{"https://zh.example/1 | https://zh.example/1 | Žužemberk — über alles “quoted” | null"}},
		{"undeclared-windows-1252.xml", "", true, 0, []string{"https://cafe.example/1 | https://cafe.example/1 | Café “français” €5 déjà vu | null"}},
		{"undeclared-windows-1252.xml", "text/xml; charset=iso-8859-1", false, 0, []string{"https://cafe.example/1 | https://cafe.example/1 | Café “français” €5 déjà vu | null"}},
		{"one-bad-byte.xml", "application/rss+xml", true, 0, []string{
			"https://bad.example/1 | https://bad.example/1 | Price: 5\ufffd only – déjà vu | null",
			"https://bad.example/2 | https://bad.example/2 | Fine | null",
		}},
		{"atom-base.xml", "application/atom+xml", false, 0, []string{
			"urn:1 | https://feeds.example/blog/one.html | Against a file | 2026-11-30T02:00:00Z",
			"urn:2 | https://feeds.example/blog/archive/two.html | Nested | 2026-11-01T00:00:00Z",
			"three | https://cdn.example/x/three.html | On the link | null",
			"https://x.example/4 | https://x.example/4 | Absolute &amp; whole | null",
		}},
		{"rdf.xml", "application/rdf+xml", false, 0, []string{
			"https://rdf.example/1 | https://rdf.example/1 | First | 2026-11-30T08:00:00Z",
			"https://rdf.example/2 | https://rdf.example/2 | Second | null",
		}},
		{"entity-bomb.xml", "application/xml", false, 0, []string{
			"https://bomb.example/1 | https://bomb.example/1 | Bomb &lol9; &xxe; é | null",
		}},
		{"dangerous.xml", "application/rss+xml", false, 0, []string{
			"a |  | <script>alert(1)</script> | null",
			"vbscript:x |  | data | null",
			"c |  | Control \ufffd\ufffd \ufffd ok | null",
			"d | https://x.example/4 | user | null",
			"e | https://x.example/a%20b?q=%zz | odd | null",
		}},
		{"feed.json", "application/feed+json", false, 1, []string{
			"20261130 | https://feeds.example/notes/1 |  | 2026-11-30T02:00:00Z",
			"https://json.example/2 | https://elsewhere.example/x | Linked | null",
			"https://json.example/3 | https://json.example/3 |  | null",
		}},
	} {
		t.Run(tt.file+" "+tt.contentType, func(t *testing.T) {
			s := feedSource(t)
			a, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, "syndication", tt.file), "Content-Type", tt.contentType))
			if err != nil {
				t.Fatal(err)
			}
			for i, it := range a.Items {
				if i < len(tt.items) && brief(it) != tt.items[i] {
					t.Errorf("item %d\n got %q\nwant %q", i, brief(it), tt.items[i])
				}
				if it.Rank != i+1 || !it.FirstSeen.Equal(now) {
					t.Errorf("item %d has rank %d, first seen %v", i, it.Rank, it.FirstSeen)
				}
			}
			if len(a.Items) != len(tt.items) || a.Lossy != tt.lossy || a.Dropped != tt.dropped || a.Capped || a.Next != "" {
				t.Errorf("%d items, lossy %v, dropped %d, capped %v, next %q", len(a.Items), a.Lossy, a.Dropped, a.Capped, a.Next)
			}
		})
	}
}

func TestSyndicationFields(t *testing.T) {
	s := feedSource(t)
	a, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, "syndication", "rss2.xml")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(a.Items[0].Fields)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"authors":["Ann Lee"],"categories":["Ferries","Winter"],"content":"\u003cp\u003eLong text.\u003c/p\u003e",` +
		`"enclosures":[{"length":1234,"type":"audio/mpeg","url":"https://feeds.example/audio/1.mp3"}],` +
		`"guid":"tag:1","image":null,"summary":"\u003cp\u003eShort \u0026 plain.\u003c/p\u003e","updated":null}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if l := a.Items[1].Fields["enclosures"].([]any)[0].(map[string]any)["length"]; l != nil {
		t.Errorf("a length that is no number reads as %v", l)
	}
}

func TestIdentity(t *testing.T) {
	s := feedSource(t)
	a, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, "syndication", "same-guid-no-dates.xml")))
	if err != nil {
		t.Fatal(err)
	}
	// By link, then by content; the one that came twice is one; the empty one is dropped.
	if len(a.Items) != 4 || a.Dropped != 2 {
		t.Fatalf("%d items, %d dropped", len(a.Items), a.Dropped)
	}
	if a.Items[0].ID != "https://x.example/1" || a.Items[1].ID != "https://x.example/2" {
		t.Errorf("%q, %q", a.Items[0].ID, a.Items[1].ID)
	}
	for _, it := range a.Items[2:] {
		if !strings.HasPrefix(it.ID, "sha256:") || it.Published != nil || it.FirstSeen.IsZero() || it.Fields["guid"] != "0" {
			t.Errorf("%+v", it)
		}
	}
	again, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, "syndication", "same-guid-no-dates.xml")))
	if err != nil || again.Items[3].ID != a.Items[3].ID {
		t.Error("the next reading names the item otherwise")
	}
}

func TestIdentify(t *testing.T) {
	for name, tt := range map[string]struct {
		in   []entry
		want []string // "#" is by content
	}{
		"one entry is known by its guid":      {[]entry{{guid: "0", link: "l"}}, []string{"0"}},
		"guids that differ":                   {[]entry{{guid: "1", link: "l"}, {guid: "2", link: "l"}}, []string{"1", "2"}},
		"an entry twice keeps its guid":       {[]entry{{guid: "1", link: "a"}, {guid: "1", link: "a"}, {guid: "2"}}, []string{"1", "1", "2"}},
		"an entry and its correction are one": {[]entry{{guid: "1", link: "a", title: "x"}, {guid: "1", link: "a", title: "y"}, {guid: "2"}}, []string{"1", "1", "2"}},
		"a guid for two links is of no use":   {[]entry{{guid: "1", link: "a"}, {guid: "1", link: "b"}, {guid: "2"}}, []string{"a", "b", "2"}},
		"all alike, no links":                 {[]entry{{guid: "0", title: "x"}, {guid: "0", title: "y"}}, []string{"#", "#"}},
		"no guids":                            {[]entry{{link: "a"}, {link: "b"}}, []string{"a", "b"}},
		"nothing":                             {[]entry{{}}, []string{""}},
		"a guid longer than a key":            {[]entry{{guid: strings.Repeat("g", 600)}}, []string{"#"}},
	} {
		got := identify(tt.in)
		for i := range got {
			if tt.want[i] == "#" && strings.HasPrefix(got[i], "sha256:") {
				continue
			}
			if got[i] != tt.want[i] {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
		}
	}
}

func TestNotAFeed(t *testing.T) {
	s := feedSource(t)
	for name, tt := range map[string]struct {
		body   string
		want   AnswerKind
		reason string
	}{
		"HTML":            {string(recorded(t, "syndication", "page.html")), NotAFeed, "an HTML page"},
		"PHP warning":     {string(recorded(t, "syndication", "php-warning.xml")), NotAFeed, "its root is <br>"},
		"plain warning":   {"Warning: mysql_connect(): Too many connections\n<?xml version=\"1.0\"?><rss/>", NotAFeed, "neither XML nor JSON"},
		"cut short":       {string(recorded(t, "syndication", "truncated.xml")), Truncated, "stops in the middle"},
		"JSON, no feed":   {string(recorded(t, "syndication", "error.json")), NotAFeed, "no JSON Feed"},
		"JSON cut short":  {`{"version":"https://jsonfeed.org/version/1","items":[{"id":`, Truncated, ""},
		"JSON, no items":  {`{"version":"https://jsonfeed.org/version/1"}`, NotAFeed, "without items"},
		"JSON, odd items": {`{"version":"https://jsonfeed.org/version/1","items":{"a":1}}`, NotAFeed, "no list"},
		"sitemap":         {`<urlset><url/></urlset>`, NotAFeed, "its root is <urlset>"},
		"empty":           {"", NotAFeed, "an empty answer"},
		"blank":           {" \n ", NotAFeed, "an empty answer"},
		"prolog only":     {`<?xml version="1.0"?><!-- nothing -->`, NotAFeed, "no element"},
		"too deep":        {"<rss><channel>" + strings.Repeat("<a>", 100_000) + strings.Repeat("</a>", 100_000) + "</channel></rss>", NotAFeed, "nest deeper"},
		"scopes":          {"<rss" + manyNamespaces(150) + "><channel>" + strings.Repeat("<a xmlns:q='1'/>", 100_000) + "</channel></rss>", NotAFeed, "namespaces"},
		"namespaces":      {"<rss" + manyNamespaces(1000) + "><channel/></rss>", NotAFeed, "namespaces"},
		"pieces":          {"<rss><channel><a:x>" + strings.Repeat("t<b/>", 200_000) + "</a:x></channel></rss>", NotAFeed, "pieces"},
		"binary":          {"\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\x01", 1000), NotAFeed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Read(answerTo(t, s, Page{}, 200, []byte(tt.body)))
			e := wantAnswer(t, err, tt.want)
			if !strings.Contains(e.Error(), tt.reason) {
				t.Errorf("%v, want %q", e, tt.reason)
			}
			if len(e.Error()) > 400 || strings.ContainsAny(e.Error(), "\n\x00") || !utf8.ValidString(e.Error()) {
				t.Errorf("the snippet is not bounded: %q", e.Error())
			}
		})
	}
}

func manyNamespaces(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " xmlns:n%d='u%d'", i, i)
	}
	return b.String()
}

// Bodies that are made to be slow must not be: a reader has no deadline.
// TestSlowFeedsAreNotSlow holds the time that a large one takes against an eighth of it.
func TestSlowFeedsAreNotSlow(t *testing.T) {
	const size, least = 128 << 10, 5 * time.Millisecond
	type made func(size int) string
	fill := func(before, unit, after string) made {
		return func(size int) string {
			return before + strings.Repeat(unit, (size-len(before)-len(after))/len(unit)) + after
		}
	}
	for name, body := range map[string]made{
		"text in sections":    fill("<rss><channel><a:x>", "<![CDATA[a]]>", "</a:x></channel></rss>"),
		"text among elements": fill("<rss><channel><item><a:x>", "t<b/>", "</a:x></item></channel></rss>"),
		"references":          fill("<rss><channel><item><title>", "&amp;", "</title></item></channel></rss>"),
		"ampersands":          fill("<rss><channel><item><title>", "&", "</title></item></channel></rss>"),
		"bad references":      fill("<rss><channel><item><title>", "&#0;", "</title></item></channel></rss>"),
		"namespaces":          fill("<rss"+manyNamespaces(150)+"><channel>", "<a xmlns:q='1'/>", "</channel></rss>"),
		"bases":               fill("<feed>", "<entry xml:base='a/'><link href='b'/></entry>", "</feed>"),
		"an author":           fill("<rss><channel><item><author>", "a (", "</author></item></channel></rss>"),
		"a date":              fill("<rss><channel><item><pubDate>", "Mon, ", "</pubDate></item></channel></rss>"),
		"comments":            fill("<rss><channel>", "<!---->", "</channel></rss>"),
		"open elements":       fill("<rss><channel>", "<a>", ""),
		"declarations":        fill("<!DOCTYPE x [", "<!ENTITY a 'b'>", "]><rss/>"),
		"JSON arrays":         fill(`{"version":"https://jsonfeed.org/version/1","items":`, "[", "]"),
		"JSON items":          fill(`{"version":"https://jsonfeed.org/version/1","items":[`, "{},", "{}]}"),
	} {
		t.Run(name, func(t *testing.T) {
			s := feedSource(t)
			read := func(size int) time.Duration {
				a := answerTo(t, s, Page{}, 200, []byte(body(size)))
				return spent(t, func() { _, _ = s.Read(a) })
			}
			eighth, whole := read(size/8), read(size)
			t.Logf("%v after %v", whole, eighth)
			if whole > 32*max(eighth, least) { // what grows as the square takes 64 times as long
				t.Errorf("%v, where an eighth of it takes %v", whole, eighth)
			}
		})
	}
}

func TestManyItemsAreCapped(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><rss version="2.0"><channel><title>many</title>`)
	for i := range 50_000 {
		fmt.Fprintf(&b, "<item><guid>%d</guid></item>", i)
	}
	b.WriteString("</channel></rss>")
	atom := strings.NewReplacer("<rss version=\"2.0\"><channel>", "<feed>", "</channel></rss>", "</feed>", "item>", "entry>", "guid>", "id>").Replace(b.String())
	var items []string
	for i := range 3000 {
		items = append(items, fmt.Sprintf(`{"id":%d}`, i))
	}
	jf := `{"version":"https://jsonfeed.org/version/1","items":[` + strings.Join(items, ",") + "]}"
	for name, body := range map[string]string{"rss": b.String(), "atom": atom, "json": jf} {
		s := feedSource(t)
		a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(body)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(a.Items) != defaultMaxItems || !a.Capped || a.Items[len(a.Items)-1].ID != fmt.Sprint(defaultMaxItems-1) {
			t.Errorf("%s: %d items, capped %v", name, len(a.Items), a.Capped)
		}
	}
}

func TestEmptyFeedIsAnAnswer(t *testing.T) {
	s := feedSource(t)
	for _, body := range []string{"<rss><channel><title>t</title></channel></rss>", "<feed/>", `{"version":"https://jsonfeed.org/version/1","items":[]}`} {
		a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(body)))
		if err != nil || len(a.Items) != 0 {
			t.Errorf("%s: %v, %d items", body, err, len(a.Items))
		}
	}
}

func TestLinksResolveAgainstTheFinalURL(t *testing.T) {
	s := feedSource(t)
	resp := answerTo(t, s, Page{}, 200, []byte(`<rss><channel><item><link>a/1</link></item></channel></rss>`))
	resp.URL.Host, resp.URL.Path = "moved.example", "/deep/er/rss"
	a, err := s.Read(resp)
	if err != nil || a.Items[0].URL != "https://moved.example/deep/er/a/1" {
		t.Errorf("%v %+v", err, a.Items)
	}
}

// What encoding/xml writes must be read, whatever the texts are.
func TestReadsWhatAnotherProgramWrote(t *testing.T) {
	type item struct {
		Title string `xml:"title"`
		Link  string `xml:"link"`
		GUID  string `xml:"guid"`
		Date  string `xml:"pubDate"`
	}
	s := feedSource(t)
	rapid.Check(t, func(rt *rapid.T) {
		type rss struct {
			XMLName xml.Name `xml:"rss"`
			Items   []item   `xml:"channel>item"`
		}
		var doc rss
		n := rapid.IntRange(0, 8).Draw(rt, "n")
		for i := range n {
			doc.Items = append(doc.Items, item{
				Title: rapid.String().Draw(rt, "title"),
				Link:  fmt.Sprintf("https://x.example/%d?q=%d&r=%d", i, i, i),
				GUID:  fmt.Sprintf("urn:%d<&>", i),
				Date:  now.Add(time.Duration(-i) * time.Hour).Format(time.RFC1123Z),
			})
		}
		body, err := xml.Marshal(doc)
		if err != nil {
			rt.Fatal(err)
		}
		a, err := s.Read(answerTo(t, s, Page{}, 200, body))
		if err != nil {
			rt.Fatal(err)
		}
		if len(a.Items) != n {
			rt.Fatalf("%d items of %d", len(a.Items), n)
		}
		for i, it := range a.Items {
			// The encoder itself replaces what no XML can hold.
			title := oneLine(strings.Map(func(r rune) rune {
				if illegal(r) {
					return utf8.RuneError
				}
				return r
			}, doc.Items[i].Title))
			if it.Title != title || it.URL != doc.Items[i].Link || it.ID != doc.Items[i].GUID || it.Published.Hour() != (8-i+24)%24 {
				rt.Fatalf("item %d: %s, wrote %+v", i, brief(it), doc.Items[i])
			}
		}
	})
}

func TestReadsWhatAnotherProgramWroteAsJSON(t *testing.T) {
	s := feedSource(t)
	rapid.Check(t, func(rt *rapid.T) {
		var items []map[string]any
		for i := range rapid.IntRange(0, 6).Draw(rt, "n") {
			items = append(items, map[string]any{
				"id": i, "url": fmt.Sprintf("/%d", i), "title": rapid.String().Draw(rt, "title"),
				"content_text": rapid.String().Draw(rt, "text"), "date_published": now.Format(time.RFC3339),
			})
		}
		body, err := json.Marshal(map[string]any{"version": "https://jsonfeed.org/version/1.1", "items": append([]map[string]any{}, items...)})
		if err != nil {
			rt.Fatal(err)
		}
		a, err := s.Read(answerTo(t, s, Page{}, 200, body))
		if err != nil || len(a.Items) != len(items) {
			rt.Fatalf("%v, %d of %d", err, len(a.Items), len(items))
		}
		for i, it := range a.Items {
			if it.ID != fmt.Sprint(i) || it.Title != oneLine(items[i]["title"].(string)) || !it.Published.Equal(now) {
				rt.Fatalf("%s of %v", brief(it), items[i])
			}
		}
	})
}

func TestStatuses(t *testing.T) {
	s := feedSource(t)
	for _, tt := range []struct {
		status  int
		headers []string
		want    AnswerKind
		after   time.Duration
	}{
		{204, nil, NotAFeed, 0},
		{206, nil, Truncated, 0},
		{301, nil, NotAFeed, 0},
		{304, nil, NotAFeed, 0},
		{400, nil, Invalid, 0},
		{401, nil, Forbidden, 0},
		{403, nil, Forbidden, 0},
		{403, []string{"Cf-Mitigated", "challenge"}, Ban, 0},
		{403, []string{"Retry-After", "60"}, QuotaRate, time.Minute},
		{403, []string{"Retry-After", "soon"}, Forbidden, 0},
		{404, nil, NotFound, 0},
		{410, nil, NotFound, 0},
		{408, nil, Target5xx, 0},
		{429, []string{"Retry-After", "120"}, QuotaRate, 2 * time.Minute},
		{429, nil, QuotaRate, 0},
		{451, nil, Forbidden, 0},
		{500, nil, Target5xx, 0},
		{503, []string{"Retry-After", "Mon, 30 Nov 2026 08:31:00 GMT"}, Target5xx, time.Minute},
		{503, []string{"Retry-After", "1.5"}, Target5xx, 0},
		{522, nil, Target5xx, 0},
	} {
		_, err := s.Read(answerTo(t, s, Page{}, tt.status, recorded(t, "syndication", "rss2.xml"), tt.headers...))
		e := wantAnswer(t, err, tt.want)
		if e.RetryAfter != tt.after {
			t.Errorf("%d: Retry-After %v, want %v", tt.status, e.RetryAfter, tt.after)
		}
	}
}

func TestSyndicationRequest(t *testing.T) {
	s := build(t, Config{Kind: "syndication", URL: "https://Feeds.example:443/f?x=1", Params: map[string]string{"n": "5"}, Headers: map[string]string{"Accept-Language": "bn"}})
	req, err := s.Request(Page{Params: map[string]string{"n": "7"}})
	if err != nil || req.URL != "https://Feeds.example:443/f?n=7&x=1" || req.Keyed || req.Header.Get("Accept-Language") != "bn" || !strings.Contains(req.Header.Get("Accept"), "rss") {
		t.Errorf("%v %+v", err, req)
	}
	if s.Host() != "feeds.example" {
		t.Errorf("host %q", s.Host())
	}
	s = build(t, Config{Kind: "syndication", URL: "https://feeds.example/f", Headers: map[string]string{"Authorization": "Bearer x"}})
	if req, _ := s.Request(Page{}); !req.Keyed {
		t.Error("a request with a secret header is not marked as keyed")
	}
	if _, err := s.Request(Page{Cursor: "2"}); err == nil {
		t.Error("a second page was asked for")
	}
}

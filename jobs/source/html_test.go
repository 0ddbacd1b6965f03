package source

import (
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"feedwarden/jobs/fetch"
)

func htmlAnswer(t *testing.T, c Config, body string, headers ...string) (Answer, error) {
	t.Helper()
	c.Kind = "html"
	if c.URL == "" {
		c.URL = "https://pages.example/list/top"
	}
	s := build(t, c)
	return s.Read(answerTo(t, s, Page{}, 200, []byte(body), headers...))
}

func TestHTMLExpressions(t *testing.T) {
	const body = `<div class=item data-id=" 7 " title="whole"><h2>A <b>bold</b><br>title</h2><p>one</p><p>two</p>
		<a href="mailto:x@example.org">mail</a><a href="x?a=1">link</a><img src="javascript:x" alt="A  picture"><q cite="/q">q</q></div>`
	for expr, want := range map[string]any{
		"@data-id":            "7",
		"@DATA-ID":            "7",
		"@none":               nil,
		".":                   "A bold title one two maillink q",
		"h2":                  "A bold title",
		"p":                   "one",
		"p:nth-of-type(2)":    "two",
		"p + p":               "two",
		"a@href":              nil, // the first that matches, and it is no web address
		`a[href*="?"]@href`:   "https://pages.example/list/x?a=1",
		`a[href*="x@exa"]`:    "mail",
		`a[href*='@example']`: "mail",
		"img@src":             nil,
		"img@alt":             "A picture",
		"q@cite":              "https://pages.example/q",
		"h3, h2":              "A bold title",
		`p:contains("two")`:   "two",
		`h2:has(b)`:           "A bold title",
		"section p":           nil,
	} {
		a, err := htmlAnswer(t, Config{Items: ".item", Map: map[string]string{"x": expr}}, body)
		if err != nil || len(a.Items) != 1 || a.Items[0].Fields["x"] != want {
			t.Errorf("%s: %v, %+v; want %v", expr, err, a.Items, want)
		}
	}
}

func TestHTMLDates(t *testing.T) {
	for in, want := range map[string]string{
		`<time datetime="2026-11-30T08:00:00.5Z">x</time>`: "2026-11-30T08:00:00Z",
		`<time datetime="2026-11-30T08:00+06:00">x</time>`: "2026-11-30T02:00:00Z",
		`<time datetime="2026-11-30 08:00">x</time>`:       "2026-11-30T08:00:00Z",
		`<time datetime="soon">2026-11-30</time>`:          "2026-11-30T00:00:00Z",
		`<time>Mon, 30 Nov 2026 08:00:00 GMT</time>`:       "2026-11-30T08:00:00Z",
		`<time>Mon, 30 Nov 2026 08:00:00 +0600</time>`:     "2026-11-30T02:00:00Z",
		`<time> 30 November 2026 </time>`:                  "2026-11-30T00:00:00Z",
		`<time>November 30, 2026</time>`:                   "2026-11-30T00:00:00Z",
		`<time>1796025600</time>`:                          "2026-11-30T08:00:00Z",
		`<time>three hours ago</time>`:                     "null",
		`<time datetime="P3D">3 days</time>`:               "null",
		`<time datetime="9999-01-01T00:00:00Z">x</time>`:   "null",
		`<span>2026-11-30</span>`:                          "null",
	} {
		a, err := htmlAnswer(t, Config{Items: "li", Map: map[string]string{"published": "time"}}, "<li>a "+in)
		if err != nil || len(a.Items) != 1 || !strings.HasSuffix(brief(a.Items[0]), " | "+want) {
			t.Errorf("%s: %v %+v, want %s", in, err, a.Items, want)
		}
	}
}

// A page that brings nothing says what would help: the selector, the page's
// title, what stands on it, its type.
func TestHTMLWithoutItemsSaysWhatCame(t *testing.T) {
	for name, tt := range map[string]struct {
		c           Config
		body, ctype string
		want        AnswerKind
		says        []string
	}{
		"no match":          {Config{Items: "li.x"}, "<title>New\n design</title><style>li.x{}</style><body><p>Hello there", "text/html", NotAFeed, []string{`"li.x" matches nothing`, `"New design"`, "it begins: Hello there"}},
		"empty":             {Config{Items: "li"}, " \n", "", NotAFeed, []string{"an empty answer"}},
		"JSON":              {Config{Items: "li"}, `{"items":[]}`, "application/json", NotAFeed, []string{"came as application/json", `it begins: {"items":[]}`}},
		"a PDF":             {Config{Items: "li"}, "%PDF-1.7\x00\xff", "application/pdf", NotAFeed, []string{"came as application/pdf"}},
		"hollow matches":    {Config{Items: "li", Map: map[string]string{"x": "b"}}, "<ul><li></li><li></li></ul>", "", NotAFeed, []string{`what "li" matches holds nothing`}},
		"title gone":        {Config{Items: "li", Map: map[string]string{"title": "h2.old", "url": "a@href"}}, "<li><h3>x</h3><a href=/1>1</a><li><a href=/2>2</a>", "", NotAFeed, []string{"none of the 2 items has what map.title asks for, \"h2.old\""}},
		"cut within a tag":  {Config{Items: "li"}, "<ul><li>one</li><li cla", "", Truncated, []string{"in the middle of a tag"}},
		"cut within a name": {Config{Items: "li"}, "<ul><li>one</li></u", "", Truncated, nil},
		"deep":              {Config{Items: "li"}, strings.Repeat("<div>", 100_000), "", NotAFeed, []string{"512"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := htmlAnswer(t, tt.c, tt.body, "Content-Type", tt.ctype)
			e := wantAnswer(t, err, tt.want)
			for _, s := range tt.says {
				if !strings.Contains(e.Error(), s) {
					t.Errorf("%v\nshould say %s", e, s)
				}
			}
			if string(e.Kept) != tt.body && len(e.Kept) != mostKept || e.ContentType != tt.ctype {
				t.Errorf("kept %q of type %q", e.Kept, e.ContentType)
			}
		})
	}
	// A sign that is no tag is no cut.
	if a, err := htmlAnswer(t, Config{Items: "li"}, "<li>1 < 2"); err != nil || a.Items[0].Title != "1 < 2" {
		t.Errorf("%v %+v", err, a)
	}
}

func TestHTMLNext(t *testing.T) {
	plain := Config{Items: "li", Next: &NextPage{CSS: "a.next", Max: 5}}
	keyed := Config{Items: "li", Next: &NextPage{CSS: "a.next@href", Max: 5}, Headers: map[string]string{"Cookie": "session=SECRET-SECRET"}}
	for name, tt := range map[string]struct {
		c    Config
		link string
		next string
		want AnswerKind
	}{
		"relative":            {plain, `<a class=next href="?p=2">`, "https://pages.example/list/top?p=2", ""},
		"whole":               {plain, `<a class=next href="https://pages.example/2#top">`, "https://pages.example/2#top", ""},
		"none":                {plain, ``, "", ""},
		"without an address":  {plain, `<a class=next>`, "", ""},
		"to itself":           {plain, `<a class=next href="#">`, "", ""},
		"another site":        {plain, `<a class=next href="https://ads.example/2">`, "", Invalid},
		"no web address":      {plain, `<a class=next href="javascript:more()">`, "", NotAFeed},
		"base elsewhere":      {plain, `<base href="https://ads.example/"><a class=next href="2">`, "", Invalid},
		"keyed, another port": {keyed, `<a class=next href="https://pages.example:8443/2">`, "", Invalid},
		"keyed, at home":      {keyed, `<a class=next href="/2">`, "https://pages.example/2", ""},
	} {
		a, err := htmlAnswer(t, tt.c, tt.link+"<li>x</li>")
		if tt.want != "" {
			if e := wantAnswer(t, err, tt.want); strings.Contains(e.Error()+string(e.Kept), "SECRET") {
				t.Errorf("%s: %v", name, e)
			}
			continue
		}
		at, bad := parseTrail(a.Next)
		if err != nil || bad != nil || at.at != tt.next {
			t.Errorf("%s: %v, next %q, want %q", name, err, a.Next, tt.next)
		}
	}
	// From http to https is the same site, back it is not.
	c := plain
	c.URL = "http://pages.example/"
	if a, err := htmlAnswer(t, c, `<li>x<a class=next href="https://pages.example/2">`); err != nil || a.Next == "" {
		t.Errorf("%v, next %q", err, a.Next)
	}
	_, err := htmlAnswer(t, plain, `<li>x<a class=next href="http://pages.example/2">`)
	wantAnswer(t, err, Invalid)
}

// The pages that a generator wrote are read to their end, each once; a list
// that goes round ends; max is kept.
func TestHTMLPagesAreFollowed(t *testing.T) {
	c := corpusUsual["html"]
	hugoPages(&c)
	for _, most := range []int{10, 2} {
		c.Next.Max = most
		s := build(t, c)
		var ids []string
		p := Page{}
		for n := 1; ; n++ {
			a, err := s.Read(answerTo(t, s, p, 200, recorded(t, "html", fmt.Sprintf("hugo-%d.html", n))))
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range a.Items {
				ids = append(ids, fmt.Sprintf("%d:%s", it.Rank, it.ID))
			}
			if p.Cursor = a.Next; a.Next == "" {
				break
			}
		}
		if got, want := strings.Join(ids, " "), map[int]string{10: "1:n5 2:n4 3:n3 4:n2 5:n1", 2: "1:n5 2:n4 3:n3 4:n2"}[most]; got != want {
			t.Errorf("max %d: %s", most, got)
		}
	}
	s := build(t, Config{Kind: "html", URL: "https://pages.example/?p=1", Items: "li", Next: &NextPage{CSS: "a", Max: 100}})
	p := Page{}
	n := 0
	for ; n < 100; n++ {
		a, err := s.Read(answerTo(t, s, p, 200, []byte(fmt.Sprintf(`<li>x<a href="?p=%d">next`, []int{2, 3, 1}[n%3]))))
		if err != nil {
			t.Fatal(err)
		}
		if p.Cursor = a.Next; a.Next == "" {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d pages of a list that goes round", n+1)
	}
}

// Links resolve against where the page came from after redirects.
func TestHTMLLinksResolveAgainstTheFinalURL(t *testing.T) {
	s := build(t, Config{Kind: "html", URL: "https://pages.example/", Items: "li", Next: &NextPage{CSS: "a.n", Max: 2}})
	u, err := url.Parse("https://www.pages.example/new/list")
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Read(&fetch.Response{Status: 200, URL: u, Body: []byte(`<li><a href=one>x</a></li><a class=n href="?p=2">`)})
	if err != nil || a.Items[0].URL != "https://www.pages.example/new/one" || !strings.HasSuffix(a.Next, " https://www.pages.example/new/list?p=2") {
		t.Errorf("%v %+v", err, a)
	}
}

// A body that a parser would make thousands of times as large is refused
// before it is parsed.
func TestHTMLBombsAreRefused(t *testing.T) {
	var bold strings.Builder
	for i := range 400 {
		fmt.Fprintf(&bold, "<b a=%d>", i)
	}
	for name, tt := range map[string]struct{ body, says string }{
		"formatting opened again in each paragraph": {bold.String() + strings.Repeat("<p>x", 5_000), "more than 500000 elements"},
		"very many elements":                        {strings.Repeat("<br>", 2_000_000), "more than 500000 elements"},
		"attributes without end":                    {"<a " + strings.Repeat("b=c ", 2_000_000), "in the middle of a tag"},
		"tables in each other":                      {strings.Repeat("<table><tr><td><a>", 400_000), "more than 500000 elements"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		took := spent(t, func() { _, err = htmlAnswer(t, Config{Items: "li"}, tt.body) })
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want …%s…", name, err, tt.says)
		}
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 200 {
			t.Errorf("%s: %d MiB for a body of %d MiB", name, made, len(tt.body)>>20)
		}
		if took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	a, err := htmlAnswer(t, Config{Items: "li", MaxItems: 10}, strings.Repeat("<li>x<a href=/1>", 40))
	if err != nil || len(a.Items) > 10 || a.Dropped+len(a.Items) != 40 && !a.Capped {
		t.Errorf("%v %d items, capped %v", err, len(a.Items), a.Capped)
	}
}

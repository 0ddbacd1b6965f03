package source

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"feedwarden/jobs/fetch"
)

// served are the answers of a target, by the address asked, without the host.
type served map[string]struct{ body, link string }

// walk reads a list as a job does: page by page, at most so many. It gives the
// addresses asked, the IDs with their ranks, and the error that ended it.
func (sv served) walk(t *testing.T, s Source, most int) (asked, items []string, err error) {
	t.Helper()
	p := Page{}
	for range most {
		req, err := s.Request(p)
		if err != nil {
			return asked, items, err
		}
		u, err := url.Parse(req.URL)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.TrimPrefix(req.URL, "https://api.example.org")
		asked = append(asked, at)
		one, ok := sv[at]
		if !ok {
			t.Fatalf("%s was asked; there are %v", at, sv)
		}
		h := http.Header{}
		if one.link != "" {
			h.Set("Link", one.link)
		}
		a, err := s.Read(&fetch.Response{Status: 200, Header: h, Body: []byte(one.body), URL: u, Label: req.Label})
		if err != nil {
			return asked, items, err
		}
		for _, it := range a.Items {
			items = append(items, fmt.Sprintf("%d:%s", it.Rank, it.ID))
		}
		if a.Next == "" {
			return asked, items, nil
		}
		p.Cursor = a.Next
	}
	t.Fatalf("it did not end: %v", asked)
	return nil, nil, nil
}

func TestJSONPaging(t *testing.T) {
	const list = "https://api.example.org/list"
	for name, tt := range map[string]struct {
		c     Config
		sv    served
		asked string
		items string
		want  AnswerKind
	}{
		"numbers, to the page without items": {
			Config{URL: list + "?page={page}", Paging: &Paging{Page: &PageNumbers{From: 1, Max: 9}}},
			served{"/list?page=1": {`{"rows":[{"id":"a"},{"id":"b"}]}`, ""}, "/list?page=2": {`{"rows":[{"id":"c"}]}`, ""}, "/list?page=3": {`{"rows":[]}`, ""}},
			"/list?page=1 /list?page=2 /list?page=3", "1:a 2:b 3:c", "",
		},
		"numbers, as many as max": {
			Config{URL: list + "/{page}", Params: map[string]string{"offset": "{page}0"}, Paging: &Paging{Page: &PageNumbers{From: 0, Max: 2}}},
			served{"/list/0?offset=00": {`{"rows":[{"id":"a"}]}`, ""}, "/list/1?offset=10": {`{"rows":[{"id":"b"}]}`, ""}},
			"/list/0?offset=00 /list/1?offset=10", "1:a 2:b", "",
		},
		"numbers beyond the last give the last again": {
			Config{URL: list + "?page={page}", Paging: &Paging{Page: &PageNumbers{From: 1, Max: 9}}},
			served{"/list?page=1": {`{"rows":[{"id":"a"}]}`, ""}, "/list?page=2": {`{"rows":[{"id":"b"}]}`, ""}, "/list?page=3": {`{"rows":[{"id":"b"}]}`, ""}},
			"/list?page=1 /list?page=2 /list?page=3", "1:a 2:b 3:b", "",
		},
		"links, relative and whole": {
			Config{URL: list, Params: map[string]string{"size": "1"}, Paging: &Paging{Next: ".next"}},
			served{
				"/list?size=1":     {`{"rows":[{"id":"a"}],"next":"?p=2"}`, ""},
				"/list?p=2":        {`{"rows":[{"id":"b"}],"next":"https://api.example.org/list?p=3#x"}`, ""},
				"/list?p=3#x":      {`{"rows":[{"id":"c"}],"next":null}`, ""},
				"/never/asked?p=4": {``, ""},
			},
			"/list?size=1 /list?p=2 /list?p=3#x", "1:a 2:b 3:c", "",
		},
		"links, as many as pages": {
			Config{URL: list, Pages: 2, Paging: &Paging{Next: ".next"}},
			served{"/list": {`{"rows":[{"id":"a"}],"next":"?p=2"}`, ""}, "/list?p=2": {`{"rows":[{"id":"b"}],"next":"?p=3"}`, ""}},
			"/list /list?p=2", "1:a 2:b", "",
		},
		"links that go round": {
			Config{URL: list, Paging: &Paging{Next: ".next"}},
			served{"/list": {`{"rows":[{"id":"a"}],"next":"?p=2"}`, ""}, "/list?p=2": {`{"rows":[{"id":"b"}],"next":"/list"}`, ""}},
			"/list /list?p=2", "1:a", Truncated,
		},
		"a link to itself on a page without items": {
			Config{URL: list, Paging: &Paging{Next: ".next"}},
			served{"/list": {`{"rows":[{"id":"a"}],"next":"?p=2"}`, ""}, "/list?p=2": {`{"rows":[],"next":"?p=2"}`, ""}},
			"/list /list?p=2", "1:a", "",
		},
		"a link to another host, without secrets": {
			Config{URL: list, Paging: &Paging{Next: ".next"}},
			served{"/list": {`{"rows":[{"id":"a"}],"next":"https://b.example/x"}`, ""}, "https://b.example/x": {`{"rows":[{"id":"b"}]}`, ""}},
			"/list https://b.example/x", "1:a 2:b", "",
		},
		"a link to another host, with secrets": {
			Config{URL: list, Headers: map[string]string{"Authorization": "Bearer SECRET"}, Paging: &Paging{Next: ".next"}},
			served{"/list": {`{"rows":[{"id":"a"}],"next":"https://b.example/x"}`, ""}},
			"/list", "", Invalid,
		},
		"a link from https to http, with secrets": {
			Config{URL: list, Headers: map[string]string{"X-Token": "SECRET"}, Paging: &Paging{LinkHeader: true}},
			served{"/list": {`{"rows":[{"id":"a"}]}`, `<http://api.example.org/list?p=2>; rel=next`}},
			"/list", "", Invalid,
		},
		"a link that is no address": {
			Config{URL: list, Paging: &Paging{Next: ".next"}},
			served{"/list": {`{"rows":[{"id":"a"}],"next":"javascript:x"}`, ""}},
			"/list", "", NotAFeed,
		},
		"cursors": {
			Config{URL: list + "?size=1", Paging: &Paging{Cursor: ".meta.next", Param: "after"}},
			served{
				"/list?size=1":                        {`{"rows":[{"id":"a"}],"meta":{"next":"x= &+"}}`, ""},
				"/list?after=x%3D+%26%2B&size=1":      {`{"rows":[{"id":"b"}],"meta":{"next":9007199254740993}}`, ""},
				"/list?after=9007199254740993&size=1": {`{"rows":[{"id":"c"}],"meta":{"next":false}}`, ""},
			},
			"/list?size=1 /list?after=x%3D+%26%2B&size=1 /list?after=9007199254740993&size=1", "1:a 2:b 3:c", "",
		},
		"a cursor that comes again": {
			Config{URL: list, Paging: &Paging{Cursor: ".c", Param: "c"}},
			served{"/list": {`{"rows":[{"id":"a"}],"c":"x"}`, ""}, "/list?c=x": {`{"rows":[{"id":"b"}],"c":"y"}`, ""}, "/list?c=y": {`{"rows":[{"id":"c"}],"c":"x"}`, ""}},
			"/list /list?c=x /list?c=y", "1:a 2:b", Truncated,
		},
		"a cursor that is too long": {
			Config{URL: list, Paging: &Paging{Cursor: ".c", Param: "c"}},
			served{"/list": {`{"rows":[{"id":"a"}],"c":"` + strings.Repeat("x", 5000) + `"}`, ""}},
			"/list", "", NotAFeed,
		},
		"an expression that does not fit": {
			Config{URL: list, Paging: &Paging{Cursor: ".rows.c", Param: "c"}},
			served{"/list": {`{"rows":[{"id":"a"}]}`, ""}},
			"/list", "", NotAFeed,
		},
		"the Link header": {
			Config{URL: list, Paging: &Paging{LinkHeader: true}},
			served{
				"/list":     {`{"rows":[{"id":"a"}]}`, `<https://api.example.org/>; title="x, \" next"; rel=up, </list?p=2>; title="a, b"; REL="last Next"`},
				"/list?p=2": {`{"rows":[{"id":"b"}]}`, `</list>; rel="prev"`},
			},
			"/list /list?p=2", "1:a 2:b", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.c.Kind, tt.c.Items = "json", ".rows[]"
			s := build(t, tt.c)
			asked, items, err := tt.sv.walk(t, s, 9)
			if tt.want != "" {
				if e := wantAnswer(t, err, tt.want); strings.Contains(e.Error(), "SECRET") {
					t.Error(e)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(asked, " "); got != tt.asked {
				t.Errorf("asked %s\nwant  %s", got, tt.asked)
			}
			if got := strings.Join(items, " "); got != tt.items {
				t.Errorf("items %s, want %s", got, tt.items)
			}
		})
	}
}

// A list without an end ends all the same.
func TestAListWithoutAnEndIsRefused(t *testing.T) {
	for name, c := range map[string]Config{
		"cursor": {Kind: "json", URL: "https://api.example.org/", Items: ".rows[]", Paging: &Paging{Cursor: ".n", Param: "n"}},
		"link":   {Kind: "json", URL: "https://api.example.org/", Items: ".rows[]", Paging: &Paging{Next: `"?n=\(.n)"`}},
		"number": {Kind: "json", URL: "https://api.example.org/?n={page}", Items: ".rows[]", Paging: &Paging{Page: &PageNumbers{Max: 100000}}},
		"html":   {Kind: "html", URL: "https://api.example.org/", Items: "b", Next: &NextPage{CSS: "a", Max: 100000}},
	} {
		s := build(t, c)
		p, err := Page{}, error(nil)
		n := 0
		for ; err == nil; n++ {
			if n > 1000 {
				t.Fatalf("%s: still going", name)
			}
			body := fmt.Sprintf(`{"rows":[{"id":%d}],"n":%d}`, n, n)
			if name == "html" {
				body = fmt.Sprintf(`<b>%d</b><a href="?n=%d">next</a>`, n, n)
			}
			var a Answer
			if a, err = s.Read(answerTo(t, s, p, 200, []byte(body))); err == nil && a.Next == "" {
				t.Fatalf("%s ends at %d without an error", name, n)
			}
			p.Cursor = a.Next
			if len(p.Cursor) > 8<<10 {
				t.Fatalf("%s: a cursor of %d bytes", name, len(p.Cursor))
			}
		}
		if e := wantAnswer(t, err, Truncated); n != mostPages {
			t.Errorf("%s: %d pages, %v", name, n, e)
		}
	}
}

func TestCursorsOfOthersAreRefused(t *testing.T) {
	for _, c := range []Config{
		{Kind: "json", URL: "https://h/", Items: ".", Paging: &Paging{Next: ".n"}},
		{Kind: "html", URL: "https://h/", Items: "b"},
	} {
		for _, cursor := range []string{"x", "1 2 3", "-1 0  x", "999999 0  x"} {
			if req, err := build(t, c).Request(Page{Cursor: cursor}); err == nil {
				t.Errorf("%s takes %q: %s", c.Kind, cursor, req.URL)
			}
		}
	}
	// One that was kept before the config got its secret leads nowhere either.
	for _, c := range []Config{
		{Kind: "json", URL: "https://h/", Items: ".", Headers: map[string]string{"X-Key": "k"}, Paging: &Paging{Next: ".n"}},
		{Kind: "html", URL: "https://h/", Items: "b", Headers: map[string]string{"X-Key": "k"}, Next: &NextPage{CSS: "a", Max: 3}},
	} {
		if req, err := build(t, c).Request(Page{Cursor: trail{}.after(1, "https://elsewhere.example/").String()}); err == nil {
			t.Errorf("%s goes to %s", c.Kind, req.URL)
		}
	}
}

// RFC 8288, sections 3 and B.
func TestNextLink(t *testing.T) {
	for header, want := range map[string]string{
		`</a>; rel=next`:                                  "/a",
		`</a>; rel="next"`:                                "/a",
		`</a>;rel = "NEXT" ; x`:                           "/a",
		`</a>; rel=prev, </b>; rel=next`:                  "/b",
		`</a>; rel="prev next"`:                           "/a",
		`</a>; rel=prev; rel=next`:                        "", // the first rel counts
		`</a>; title="x, </z>; rel=next"; rel=prev`:       "",
		`</a>; title="\"; rel=next"; rel=prev`:            "",
		`</a>; rel=next; anchor="/other", </b>; rel=next`: "/b",
		`< https://x.example/?a=1,2;3 >; rel=next`:        "https://x.example/?a=1,2;3",
		`rubbish, </a>; rel=next`:                         "/a",
		`</a`:                                             "",
		`</a>; rel="next`:                                 "/a",
		``:                                                "",
		`,,;;<<>>;;`:                                      "",
		`</a>; rel=nextpage`:                              "",
	} {
		if got := nextLink(http.Header{"Link": {header}}); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	if got := nextLink(http.Header{"Link": {"</a>; rel=prev", "</b>; rel=next"}}); got != "/b" {
		t.Errorf("of two headers: %q", got)
	}
}

// Many APIs refuse a number beyond the last page. On the first page, and by
// any other way, a refusal is one.
func TestARefusedNumberIsTheEnd(t *testing.T) {
	numbers := Config{Kind: "json", URL: "https://h/?p={page}", Items: ".[]", Paging: &Paging{Page: &PageNumbers{From: 1, Max: 9}}}
	second := Page{Cursor: trail{}.after(1, "").String()}
	for _, status := range []int{400, 404} {
		s := build(t, numbers)
		if a, err := s.Read(answerTo(t, s, second, status, []byte("no such page"))); err != nil || len(a.Items) != 0 || a.Next != "" {
			t.Errorf("%d: %v %+v", status, err, a)
		}
		if _, err := s.Read(answerTo(t, s, Page{}, status, nil)); err == nil {
			t.Errorf("%d on the first page is read", status)
		}
		linked := numbers
		linked.Paging = &Paging{Cursor: ".c", Param: "c"}
		linked.URL = "https://h/"
		s = build(t, linked)
		if _, err := s.Read(answerTo(t, s, Page{Cursor: trail{}.after(1, "x").String()}, status, nil)); err == nil {
			t.Errorf("%d of a cursor is read", status)
		}
	}
	s := build(t, numbers)
	_, err := s.Read(answerTo(t, s, second, 404, nil, "Cf-Mitigated", "challenge"))
	wantAnswer(t, err, Ban)
	_, err = s.Read(answerTo(t, s, second, 503, nil))
	wantAnswer(t, err, Target5xx)
}

func TestPaged(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want bool
	}{
		{Config{Kind: "youtube"}, true},
		{Config{Kind: "youtube", Pages: 1}, false},
		{Config{Kind: "syndication"}, false},
		{Config{Kind: "json"}, false},
		{Config{Kind: "json", Paging: &Paging{LinkHeader: true}}, true},
		{Config{Kind: "json", Pages: 1, Paging: &Paging{LinkHeader: true}}, false},
		{Config{Kind: "html"}, false},
		{Config{Kind: "html", Next: &NextPage{CSS: "a", Max: 1}}, false},
		{Config{Kind: "html", Next: &NextPage{CSS: "a", Max: 2}}, true},
		{Config{Kind: "push"}, false},
	} {
		if got := tt.c.Paged(); got != tt.want {
			t.Errorf("%+v: %v", tt.c, got)
		}
	}
}

// The user and password of a configured URL go with every page of its site,
// with none of another, and stand in no cursor.
func TestUserInTheURLGoesWithEveryPageOfItsSite(t *testing.T) {
	for name, s := range map[string]Source{
		"json": build(t, Config{Kind: "json", URL: "https://ann:hush5@api.example/x", Items: ".items[]", Paging: &Paging{Next: ".next"}}),
		"html": build(t, Config{Kind: "html", URL: "https://ann:hush5@api.example/x", Items: "p", Next: &NextPage{CSS: "a", Max: 3}}),
	} {
		for link, want := range map[string]string{
			"/x?p=2": "https://ann:hush5@api.example/x?p=2", "https://api.example:443/x?p=2": "https://ann:hush5@api.example:443/x?p=2",
			"https://other.example/x": "https://other.example/x", "http://api.example/x?p=2": "http://api.example/x?p=2", "https://api.example:8443/x": "https://api.example:8443/x",
		} {
			a, err := s.Read(answerTo(t, s, Page{}, 200, fmt.Appendf(nil, map[string]string{"json": `{"items":[{"id":1}],"next":"%s"}`, "html": `<p>x<a href="%s">y</a>`}[name], link)))
			if err != nil {
				if name == "json" {
					t.Errorf("%s: %s: %v", name, link, err)
				}
				continue // html stays on its site
			}
			req, err := s.Request(Page{Cursor: a.Next})
			if err != nil || req.URL != want || strings.Contains(a.Next+req.Label, "hush5") {
				t.Errorf("%s: %s leads to %q by the cursor %q: %v", name, link, req.URL, a.Next, err)
			}
		}
	}
}

// What is neither a link nor an end fails the answer: taken for the end it would
// make a part of the list the whole.
func TestANextPageThatIsNoTextIsNotTheEnd(t *testing.T) {
	for given, says := range map[string]string{
		`{"href": "https://x.example/2"}`: ".href", `{"url": "/2"}`: ".url", `{}`: "an object", `["/2"]`: "a list", `[]`: "a list", `true`: "true",
		`null`: "", `false`: "", `""`: "",
	} {
		for name, paging := range map[string]*Paging{"paging.next": {Next: ".next"}, "paging.cursor": {Cursor: ".next", Param: "after"}} {
			s := build(t, Config{Kind: "json", URL: "https://x.example/1", Items: ".data[]", Paging: paging})
			a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(`{"data": [{"id": 1}], "next": `+given+`}`)))
			if says == "" {
				if err != nil || a.Next != "" || len(a.Items) != 1 {
					t.Errorf("%s gives %s: %v, next %q", name, given, err, a.Next)
				}
				continue
			}
			if e := wantAnswer(t, err, NotAFeed); !strings.Contains(e.Error(), name) || !strings.Contains(e.Error(), says) {
				t.Errorf("%s gives %s: %v", name, given, e)
			}
		}
	}
}

package source

import (
	"bytes"
	"fmt"
	"mime"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// picker takes one text out of an element: "selector" the text of what matches
// first, "selector@attribute", "@attribute" of the element itself, "." its text.
type picker struct {
	name  string // its place in the config
	field string
	sel   *css   // nil is the element itself
	attr  string // "" is the text
	shown string
}

var attrSuffix = regexp.MustCompile(`@([A-Za-z_][A-Za-z0-9_:.-]*)$`)

// newPicker reads an expression; attr is taken where it names none.
func newPicker(name, expr, attr string) (*picker, error) {
	expr = strings.TrimSpace(expr)
	p := &picker{name: name, attr: attr, shown: clip(expr)}
	if m := attrSuffix.FindStringSubmatchIndex(expr); m != nil {
		p.attr, expr = strings.ToLower(expr[m[2]:m[3]]), strings.TrimSpace(expr[:m[0]])
		if expr == "" {
			return p, nil
		}
	}
	if expr == "." {
		return p, nil
	}
	var err error
	p.sel, err = selector(name, expr)
	return p, err
}

// element is what a picker's selector matches first in an item; nil where nothing does.
func (r *htmlReading) element(p *picker, item *html.Node) *html.Node {
	if p.sel == nil {
		return item
	}
	return r.page.first(p.sel, item)
}

// raw is the picked text; ok is false where nothing matches.
func (r *htmlReading) raw(p *picker, item *html.Node) (text string, ok bool) {
	e := r.element(p, item)
	if e == nil {
		return "", false
	}
	if p.attr == "" {
		return textOf(e), true
	}
	v, ok := attribute(e, p.attr)
	return bounded(v), ok
}

func attribute(n *html.Node, name string) (string, bool) {
	if n != nil {
		for _, a := range n.Attr {
			if a.Key == name {
				return a.Val, true
			}
		}
	}
	return "", false
}

// linkAttrs hold an address (HTML, "attributes" index: valid URL).
var linkAttrs = []string{"action", "cite", "data", "formaction", "href", "poster", "src"}

// htmlReading is one page being read.
type htmlReading struct {
	*htmlPage
	doc   *goquery.Document
	page  *matching
	base  *url.URL
	now   time.Time
	found map[*picker]int // items in which it found something
}

func (r *htmlReading) read(at trail) (Answer, *AnswerError) {
	all := r.page.all(r.items)
	if len(all) == 0 && !r.page.late {
		return Answer{}, r.barren("no item: %q matches nothing on the page %q")
	}
	var a Answer
	seen := map[string]bool{}
	for _, n := range all {
		if len(a.Items) >= r.c.MaxItems {
			a.Capped = true
			break
		}
		it, ok := r.item(n)
		if !r.page.inTime() {
			break
		}
		if !ok || seen[it.ID] {
			a.Dropped++
			continue
		}
		seen[it.ID] = true
		it.Rank = at.items + len(a.Items) + 1
		a.Items = append(a.Items, it)
	}
	if r.page.late {
		return a, &AnswerError{Kind: NotAFeed, Reason: errPageTime.Error()}
	}
	if len(a.Items) == 0 {
		return a, r.barren("no item: what %q matches holds nothing that is read, on the page %q")
	}
	for _, p := range []*picker{r.id, r.link, r.title} {
		if p != nil && r.found[p] == 0 {
			return a, &AnswerError{Kind: NotAFeed, Reason: fmt.Sprintf("none of the %d items has what %s asks for, %q", len(a.Items), p.name, p.shown)}
		}
	}
	return a, nil
}

// barren is a page without items, with what helps to see why.
func (r *htmlReading) barren(format string) *AnswerError {
	title := oneLine(r.doc.Find("title").First().Text())
	body := ""
	if b := r.doc.Find("body"); b.Length() > 0 {
		body = textOf(b.Get(0))
	}
	return notAFeed(fmt.Sprintf(format, clip(r.c.Items), snippet(title)), body)
}

// get is a picked text, its white space collapsed.
func (r *htmlReading) get(p *picker, item *html.Node) string {
	text, _ := r.raw(p, item)
	if slices.Contains(linkAttrs, p.attr) {
		text = webLink(r.base, text)
	}
	text = oneLine(text)
	if text != "" {
		r.found[p]++
	}
	return text
}

// The usual form of an item, where the map is silent.
var (
	usualLink    = mustCSS("a[href]")
	usualHeading = mustCSS("h1, h2, h3, h4, h5, h6")
	usualTime    = mustCSS("time[datetime]")
)

func (r *htmlReading) item(n *html.Node) (Item, bool) {
	it := Item{FirstSeen: r.now, Fields: map[string]any{}}
	anchor := n
	if _, itself := attribute(n, "href"); !itself {
		anchor = r.page.first(usualLink, n)
	}
	if r.link != nil {
		it.URL = webLink(r.base, r.get(r.link, n))
	} else {
		href, _ := attribute(anchor, "href")
		it.URL = webLink(r.base, href)
	}
	if r.title != nil {
		it.Title = r.get(r.title, n)
	} else {
		for _, from := range []*html.Node{r.page.first(usualHeading, n), anchor, n} {
			if it.Title == "" && from != nil {
				it.Title = oneLine(textOf(from))
			}
		}
	}
	if r.id != nil {
		it.ID = r.get(r.id, n)
	}
	it.Published = r.when(n)
	holds := it.URL+it.Title+it.ID != ""
	for _, p := range r.fields {
		v := r.get(p, n)
		it.Fields[p.field] = orNil(v)
		holds = holds || v != ""
	}
	if it.ID == "" {
		it.ID = it.URL
	}
	if it.ID == "" {
		var b bytes.Buffer
		if err := html.Render(&b, n); err != nil {
			return it, false
		}
		it.ID = contentID(b.String())
	}
	it.ID = boundedID(it.ID)
	return it, holds
}

// when is an item's date: the picked text, or the datetime of the picked
// element, which is there for machines.
func (r *htmlReading) when(n *html.Node) *time.Time {
	if r.published == nil {
		v, _ := attribute(r.page.first(usualTime, n), "datetime")
		return looseInstant(v)
	}
	if r.published.attr == "" {
		if v, ok := attribute(r.element(r.published, n), "datetime"); ok {
			if t := looseInstant(oneLine(v)); t != nil {
				return t
			}
		}
	}
	v, _ := r.raw(r.published, n)
	return looseInstant(oneLine(v))
}

// longestText bounds one text of an item.
const longestText = 64 << 10

func bounded(s string) string {
	if len(s) > longestText {
		return strings.ToValidUTF8(s[:longestText], "")
	}
	return s
}

// inline are elements that do not part words.
var inline = []atom.Atom{
	atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Cite, atom.Code, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd,
	atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr,
}

// textOf is the text of an element as a reader sees it: without scripts and
// styles, a blank between blocks.
func textOf(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if b.Len() > longestText {
			return
		}
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
			return
		}
		if n.Type == html.ElementNode && slices.Contains([]atom.Atom{atom.Script, atom.Style, atom.Template}, n.DataAtom) {
			return
		}
		apart := n.Type == html.ElementNode && !slices.Contains(inline, n.DataAtom)
		if apart {
			b.WriteByte(' ')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c) // 512 levels at most: the parser refuses more
		}
		if apart {
			b.WriteByte(' ')
		}
	}
	walk(n)
	return bounded(b.String())
}

func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return t
}

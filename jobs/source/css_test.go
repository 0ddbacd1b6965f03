package source

import (
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

// What matches is what the library says, on any tree; it is the model here.
func TestSelectorsMatchWhatTheLibraryMatches(t *testing.T) {
	names := []string{"a", "b", "p", "div"}
	rapid.Check(t, func(rt *rapid.T) {
		var grow func(n *html.Node, deep int)
		grow = func(n *html.Node, deep int) {
			for range rapid.IntRange(0, 4).Draw(rt, "children") {
				name := rapid.SampledFrom(names).Draw(rt, "name")
				e := &html.Node{Type: html.ElementNode, Data: name}
				if rapid.Bool().Draw(rt, "classed") {
					e.Attr = []html.Attribute{{Key: "class", Val: "x"}}
				}
				n.AppendChild(e)
				if rapid.Bool().Draw(rt, "text") {
					n.AppendChild(&html.Node{Type: html.TextNode, Data: "t"})
				}
				if deep > 0 {
					grow(e, deep-1)
				}
			}
		}
		root := &html.Node{Type: html.DocumentNode}
		grow(root, 4)
		part := rapid.SampledFrom([]string{"a", "b", ".x", "div", "*", "p:first-child", "[class='x']", ":not(a, b)", "a:has(b > a)", `[class="a > b, c"]`, ":is(a,b) /* a > b */"})
		expr := part.Draw(rt, "part")
		for range rapid.IntRange(0, 4).Draw(rt, "steps") {
			expr += rapid.SampledFrom([]string{" ", ">", " > ", "+", " +\t", "~", ", ", ",", " /* > */ "}).Draw(rt, "combinator") + part.Draw(rt, "part")
		}
		want, err := cascadia.Compile(expr)
		if err != nil {
			rt.Skip(expr)
		}
		c, err := compileCSS(expr)
		if err != nil {
			rt.Fatalf("%s: %v", expr, err)
		}
		m := newMatching(root, time.Hour)
		all, model := m.all(c), cascadia.QueryAll(root, want)
		if len(all) != len(model) {
			rt.Fatalf("%q matches %d, the library says %d", expr, len(all), len(model))
		}
		for i := range all {
			if all[i] != model[i] {
				rt.Fatalf("%q: the match %d is another", expr, i)
			}
		}
		for in := range root.Descendants() {
			var first *html.Node
			for e := range in.Descendants() {
				if first == nil && e.Type == html.ElementNode && want(e) {
					first = e
				}
			}
			if m.first(c, in) != first {
				rt.Fatalf("%q: another is the first within an element", expr)
			}
		}
	})
}

// A page chooses its depth; a selector of three words must not take that to the third power.
func TestNoPageMakesASelectorSlow(t *testing.T) {
	deep := "<title>deep</title>" + strings.Repeat("<div>", 500) + strings.Repeat("<a>x</a>", 5_000)
	wide := "<title>wide</title><table>" + strings.Repeat("<tr><td>x</td></tr>", 10_000) + "</table>"
	for _, tt := range []struct{ expr, page string }{
		{"main div div a", deep},
		{"main div div div > div div a", deep},
		{"a ~ a ~ b ~ a", deep},
		{"main a, section div div div a", deep},
		{"a:not(div *)", deep},
		{"div:has(main a)", deep},
		{"tr:nth-last-child(2n)", wide}, // counts the brothers, for each of them
	} {
		s := build(t, Config{Kind: "html", URL: "https://x.example/", Items: tt.expr, Map: map[string]string{"title": "b b b", "id": "main div a@id"}})
		s.(*watched).Source.(*htmlPage).patience = 200 * time.Millisecond
		began := time.Now()
		_, err := s.Read(answerTo(t, s, Page{}, 200, []byte(tt.page)))
		wantAnswer(t, err, NotAFeed)
		if took := time.Since(began); took > time.Minute { // it was hours
			t.Errorf("%q took %s: %v", tt.expr, took, err)
		}
	}
}

func TestSelectorsThatGoBackAndForthAreRefused(t *testing.T) {
	for _, expr := range []string{"a:not(main div div *)", "p:has(div div a)", "p:has(a:has(b))", "a:not(.x, b c d)", "a:not(b :not(c d))", "p" + strings.Repeat(" p", mostSteps)} {
		_, err := New(Config{Kind: "html", URL: "https://x.example/", Items: expr})
		if err == nil || !strings.Contains(err.Error(), "items: ") || !strings.Contains(err.Error(), "parts") && !strings.Contains(err.Error(), "further descent") {
			t.Errorf("%q: %v", expr, err)
		}
	}
	for _, expr := range []string{"a:not(.x, .y):not(div *)", "tr:has(td a):not(.x)", "p:nth-child(2n + 1) > a ~ b + c", "li:has(:not(.x))"} {
		if _, err := compileCSS(expr); err != nil {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

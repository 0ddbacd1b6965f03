package source

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// css is a compiled selector. Its combinators are followed here, in one pass
// over the page, with a bit for each step; the library's own way back through
// the ancestors takes depth to the power of the steps for one element, and a
// page can be as deep as its author likes.
type css struct {
	steps []step
	last  uint64 // the steps with which something is found
	plain bool   // no combinator: an element can be asked by itself
}

// step is a compound selector, and how it hangs on the step before: 0 not at
// all, else ' ', '>', '+' or '~'.
type step struct {
	sel  cascadia.Selector
	comb byte
}

const mostSteps = 64

// selector compiles a CSS selector; name is its place in the config.
func selector(name, expr string) (*css, error) {
	if strings.TrimSpace(expr) == "" {
		return nil, fmt.Errorf("%s is empty; it is a CSS selector, as in h2 or a@href", name)
	}
	c, err := compileCSS(expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a CSS selector: %s", name, clip(expr), snippet(err.Error()))
	}
	return c, nil
}

func mustCSS(expr string) *css {
	c, err := compileCSS(expr)
	if err != nil {
		panic(err)
	}
	return c
}

func compileCSS(expr string) (*css, error) {
	// Whole first: the library says best what is wrong with it.
	if _, err := cascadia.Compile(expr); err != nil {
		return nil, err
	}
	if err := checkRelative(expr); err != nil {
		return nil, err
	}
	c := &css{plain: true}
	for _, part := range splitCSS(expr) {
		sel, err := cascadia.Compile(part.text)
		if err != nil {
			return nil, err
		}
		if part.comb == 0 && len(c.steps) > 0 {
			c.last |= 1 << (len(c.steps) - 1)
		}
		c.plain = c.plain && part.comb == 0
		c.steps = append(c.steps, step{sel, part.comb})
		if len(c.steps) > mostSteps {
			return nil, fmt.Errorf("it has more than %d parts", mostSteps)
		}
	}
	c.last |= 1 << (len(c.steps) - 1)
	return c, nil
}

var relative = regexp.MustCompile(`(?i):(not|has|haschild)\s*\(`)

// checkRelative refuses what the library would go back and forth over: within
// :not() and :has() it matches in its own way.
func checkRelative(expr string) error {
	for _, at := range relative.FindAllStringIndex(expr, -1) {
		inner := expr[at[1]:]
		inner = inner[:closing(inner)]
		steps := 0
		for _, part := range splitCSS(inner) {
			if steps++; part.comb == 0 {
				steps = 1
			}
			if steps > 2 {
				return errors.New("within :not() and :has() stand at most two parts, as in :has(h2 a)")
			}
			if steps == 2 && relative.MatchString(part.text) || strings.Contains(strings.ToLower(part.text), ":has") {
				return errors.New("within :not() and :has() stands no :has() and no further descent")
			}
		}
	}
	return nil
}

// closing is where the parenthesis before text closes.
func closing(text string) int {
	depth := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

type cssPart struct {
	text string
	comb byte
}

// splitCSS cuts a selector that is known to be one at its commas and
// combinators, outside of strings, brackets and parentheses.
func splitCSS(expr string) []cssPart {
	var out []cssPart
	comb, depth, from := byte(0), 0, -1
	end := func(i int) {
		if from >= 0 {
			out = append(out, cssPart{expr[from:i], comb})
			comb, from = ' ', -1
		}
	}
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case depth == 0 && strings.HasPrefix(expr[i:], "/*"):
			end(i)
			i += 2 + max(strings.Index(expr[i+2:], "*/"), 0) + 1
			continue
		case depth == 0 && strings.IndexByte(" \t\r\n\f", c) >= 0:
			end(i)
			continue
		case depth == 0 && strings.IndexByte(">+~,", c) >= 0:
			end(i)
			if comb = c; c == ',' {
				comb = 0
			}
			continue
		}
		if from < 0 {
			from = i
		}
		switch c {
		case '\\':
			i++
		case '"', '\'':
			for i++; i < len(expr) && expr[i] != c; i++ {
				if expr[i] == '\\' {
					i++
				}
			}
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		}
	}
	end(len(expr))
	return out
}

// walk calls found for what matches below n, in the page's order, until it
// says stop. self and above are the steps that match at n, and at its ancestors.
func (c *css) walk(n *html.Node, self, above uint64, found func(*html.Node, bool) bool) bool {
	var prev, before uint64
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		if e.Type != html.ElementNode {
			continue
		}
		here := uint64(0)
		for i, s := range c.steps {
			from := ^uint64(0)
			switch s.comb {
			case ' ':
				from = self | above
			case '>':
				from = self
			case '+':
				from = prev
			case '~':
				from = before
			}
			if (s.comb == 0 || from&(1<<(i-1)) != 0) && s.sel(e) {
				here |= 1 << i
			}
		}
		if !found(e, here&c.last != 0) || !c.walk(e, here, self|above, found) {
			return false
		}
		prev, before = here, before|here
	}
	return true
}

// matching answers selectors on one page, for so long and no longer.
type matching struct {
	root  *html.Node
	until time.Time
	sets  map[*css]map[*html.Node]bool
	late  bool
}

// pageTime bounds all selectors over one page.
const pageTime = 5 * time.Second

var errPageTime = errors.New("the selectors took longer than " + pageTime.String() + " on this page")

func newMatching(root *html.Node, patience time.Duration) *matching {
	return &matching{root: root, until: time.Now().Add(patience), sets: map[*css]map[*html.Node]bool{}}
}

func (m *matching) inTime() bool {
	m.late = m.late || time.Now().After(m.until)
	return !m.late
}

// all is what a selector matches on the page, in its order.
func (m *matching) all(c *css) []*html.Node {
	var out []*html.Node
	c.walk(m.root, 0, 0, func(e *html.Node, match bool) bool {
		if match {
			out = append(out, e)
		}
		return m.inTime()
	})
	return out
}

// first is what a selector matches first within an element, nil where nothing
// does. What it hangs on may stand around the element.
func (m *matching) first(c *css, in *html.Node) *html.Node {
	set, asked := m.sets[c]
	if !asked && !c.plain {
		set = map[*html.Node]bool{}
		for _, e := range m.all(c) {
			set[e] = true
		}
		m.sets[c] = set
	}
	var first *html.Node
	by := c
	if !c.plain {
		by = &css{}
	}
	by.walk(in, 0, 0, func(e *html.Node, match bool) bool {
		if match || set[e] {
			first = e
		}
		return first == nil && m.inTime()
	})
	return first
}

package source

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// mostNodes bounds what a page may become. A parser of HTML opens unclosed
// formatting again in every paragraph, so that a body of the allowed size could
// otherwise become thousands of times as large.
const mostNodes = 500_000

// formatting elements are opened again (HTML, "list of active formatting elements").
var formatting = []atom.Atom{
	atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U,
}

// weigh refuses, before it is parsed, a page that would become too large, and
// one that stops in the middle of a tag.
func weigh(text string) *AnswerError {
	z := html.NewTokenizer(strings.NewReader(text))
	type open struct {
		name atom.Atom
		raw  string
	}
	var again []open
	nodes, read := 0, 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		raw := z.Raw()
		read += len(raw)
		nodes += 1 + len(again)
		if kind != html.StartTagToken && kind != html.EndTagToken {
			if nodes > mostNodes {
				break
			}
			continue
		}
		name, _ := z.TagName()
		a := atom.Lookup(name)
		if slices.Contains(formatting, a) {
			if kind == html.StartTagToken {
				this := open{a, string(raw)}
				// Of equal ones three are kept ("Noah's Ark clause").
				same := 0
				for _, o := range again {
					if o == this {
						same++
					}
				}
				if same < 3 && len(again) < 512 {
					again = append(again, this)
				}
			} else {
				for i := len(again) - 1; i >= 0; i-- {
					if again[i].name == a {
						again = slices.Delete(again, i, i+1)
						break
					}
				}
			}
		}
		if nodes > mostNodes {
			break
		}
	}
	if nodes > mostNodes {
		return notAFeed(fmt.Sprintf("a page of more than %d elements", mostNodes), text)
	}
	if rest := text[min(read, len(text)):]; len(rest) > 1 && rest[0] == '<' && (letter(rest[1]) || rest[1] == '/') {
		return &AnswerError{Kind: Truncated, Reason: "the HTML stops in the middle of a tag"}
	}
	return nil
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

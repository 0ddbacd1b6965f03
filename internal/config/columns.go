package config

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// columns are the true columns of tokens. The scanner does not count tabs, and on
// the last line of a key of several lines it counts too much.
type columns struct {
	widths []int                // of the lines
	fixed  map[*token.Token]int // on lines with tabs
}

func newColumns(text string, tokens token.Tokens) columns {
	lines := strings.Split(text, "\n")
	cols := columns{make([]int, len(lines)), map[*token.Token]int{}}
	for i, line := range lines {
		cols.widths[i] = utf8.RuneCountInString(line)
	}
	if !strings.Contains(text, "\t") {
		return cols
	}
	var (
		line  []rune
		at    int // the line that `line` holds
		shift int // how far the scanner lags behind on it
	)
	for _, tk := range tokens {
		if tk.Position.Line != at {
			at, shift, line = tk.Position.Line, 0, nil
			if at >= 1 && at <= len(lines) && strings.Contains(lines[at-1], "\t") {
				line = []rune(lines[at-1])
			}
		}
		first := firstRune(tk)
		if line == nil || first == 0 {
			continue
		}
		for col := tk.Position.Column + shift; col >= 1 && col <= len(line); col++ {
			if line[col-1] == first {
				shift = col - tk.Position.Column
				cols.fixed[tk] = col
				break
			}
		}
	}
	return cols
}

func firstRune(tk *token.Token) rune {
	for _, r := range tk.Origin {
		if !unicode.IsSpace(r) {
			return r
		}
	}
	return 0
}

// pos is where a token stands.
func (c columns) pos(tk *token.Token) Pos {
	if tk == nil || tk.Position == nil {
		return Pos{1, 1}
	}
	col := tk.Position.Column
	if fixed, ok := c.fixed[tk]; ok {
		col = fixed
	}
	if n := tk.Position.Line; n >= 1 && n <= len(c.widths) {
		col = min(col, c.widths[n-1]+1)
	}
	return Pos{max(tk.Position.Line, 1), max(col, 1)}
}

// start is where a value begins; a block mapping's own token is its first colon.
func (c columns) start(n ast.Node) Pos {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return c.pos(m.Values[0].Key.GetToken())
	}
	return c.pos(n.GetToken())
}

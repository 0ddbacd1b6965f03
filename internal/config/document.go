package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"feedwarden/internal/units"
)

// Bounds on a file. The parser recurses once a level and once a key of a block
// mapping, and takes quadratic time in the keys of one mapping, so both are
// bounded before it runs.
const (
	maxBytes    = 2 << 20
	maxDepth    = 64
	maxSiblings = 2e8 // the sum over all blocks of lines²/2: one block of 20,000 lines
)

// document is a file's text and its one YAML document.
type document struct {
	body ast.Node
	cols columns
}

// readDocument turns bytes into a document, or says why they are none.
func (d *decoder) readDocument(src []byte) (doc document, ok bool) {
	if len(src) > maxBytes {
		d.fault(Pos{}, "the file is larger than "+units.FormatSize(maxBytes), "`each` makes many feeds of one entry")
		return doc, false
	}
	text, ok := d.cleanText(src)
	if !ok {
		return doc, false
	}
	tokens, ok := d.tokens(text)
	if !ok {
		return doc, false
	}
	file, err := parseTokens(tokens)
	doc.cols = newColumns(text, tokens)
	if err != nil {
		d.syntaxFault(err, text, doc.cols)
		return doc, false
	}
	for _, one := range file.Docs {
		if one.Body == nil || one.Body.Type() == ast.DirectiveType {
			continue
		}
		if doc.body != nil {
			d.fault(doc.cols.start(one.Body), "a second YAML document", "want one document: remove the `---` between them")
			return doc, false
		}
		doc.body = one.Body
	}
	if doc.body == nil {
		d.fault(Pos{}, "the file is empty", "want at least one of "+strings.Join(topKeys, ", "))
		return doc, false
	}
	return doc, true
}

// cleanText is the file's text with line ends of one kind and no BOM.
func (d *decoder) cleanText(src []byte) (string, bool) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		d.fault(Pos{1, 1}, "the file is UTF-16", "want UTF-8")
		return "", false
	}
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	src = bytes.ReplaceAll(src, []byte("\r"), []byte("\n"))
	pos := Pos{1, 1}
	for rest := src; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			d.fault(pos, fmt.Sprintf("byte 0x%02x is not UTF-8", rest[0]), "want the file in UTF-8")
			return "", false
		case r == '\n':
			pos = Pos{pos.Line + 1, 0}
		case unicode.IsControl(r) && r != '\t':
			d.fault(pos, fmt.Sprintf("control character U+%04X", r), `write it as an escape in double quotes, such as "\u0007", or remove it`)
			return "", false
		}
		pos.Col++
		rest = rest[size:]
	}
	return string(src), true
}

// tokens scans the text and refuses what would cost the parser too much.
func (d *decoder) tokens(text string) (token.Tokens, bool) {
	all := lexer.Tokenize(text)
	var (
		flow, run, line int
		blocks          []struct{ col, lines int }
		work            float64
	)
	for _, tk := range all {
		first := tk.Position.Line != line
		if first {
			line, run = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType, token.AliasType:
			run++
		case token.StringType: // may be an anchor's name
		default:
			run = 0
		}
		if flow > maxDepth || run > maxDepth || len(blocks) > maxDepth {
			d.fault(Pos{tk.Position.Line, tk.Position.Column}, "nested too deep", fmt.Sprintf("want at most %d levels", maxDepth))
			return nil, false
		}
		if !first || tk.Type == token.CommentType {
			continue
		}
		col := tk.Position.Column
		for len(blocks) > 0 && blocks[len(blocks)-1].col > col {
			blocks = blocks[:len(blocks)-1]
		}
		if len(blocks) == 0 || blocks[len(blocks)-1].col < col {
			blocks = append(blocks, struct{ col, lines int }{col: col})
		}
		top := &blocks[len(blocks)-1]
		top.lines++
		if work += float64(top.lines); work > maxSiblings {
			d.fault(Pos{tk.Position.Line, col}, "too many lines in one block", "want at most 20000 keys side by side; `each` makes many feeds of one entry")
			return nil, false
		}
	}
	return all, true
}

// errParser stands for a panic of the parser, on a text it was not made for.
var errParser = errors.New("this is no YAML that can be read")

func parseTokens(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errParser
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// syntaxFault puts the parser's complaint in a person's words. The parser's own
// text quotes the lines around, so only its message is taken.
func (d *decoder) syntaxFault(err error, text string, cols columns) {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil {
		d.fault(Pos{1, 1}, "YAML: "+firstLine(err.Error()), "")
		return
	}
	pos := cols.pos(syntax.Token)
	problem, want := "YAML: "+firstLine(syntax.Message), ""
	line := lineOf(text, pos.Line)
	switch {
	case strings.Contains(syntax.Message, "'\t'") || strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		problem, want = "YAML: a tab in the indentation", "want spaces"
	case strings.Contains(line, "${"):
		want = `inside { } and [ ], write "${NAME}" in quotes`
	case unquotedStar.MatchString(line):
		problem, want = "YAML: a text that begins with *", "write it in quotes"
	case noSpace.MatchString(line) && !strings.Contains(syntax.Message, "reserved character"):
		want = "a key's colon is followed by a blank"
	case strings.Contains(syntax.Message, "mapping value is not allowed"):
		want = `a text with ": " in it is written in quotes`
	case strings.Contains(syntax.Message, "reserved character"):
		want = "write the text in quotes"
	}
	d.fault(pos, problem, want)
}

// What a newcomer to YAML writes: a schedule, and a key, as they come.
var (
	unquotedStar = regexp.MustCompile(`[:,\[{-]\s+\*[/\s,0-9]`)
	noSpace      = regexp.MustCompile(`^\s*(- )?[A-Za-z_][\w-]*:[^\s/]`)
)

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func lineOf(text string, n int) string {
	for ; n > 1; n-- {
		_, after, found := strings.Cut(text, "\n")
		if !found {
			return ""
		}
		text = after
	}
	return firstLine(text)
}

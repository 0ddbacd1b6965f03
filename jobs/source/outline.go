package source

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// What a feed may ask of a parser. A body of the allowed size could otherwise
// overflow the stack of one that recurses, or keep it busy for hours.
const (
	deepest        = 200     // levels of elements
	mostNamespaces = 200     // declarations in scope
	mostScopes     = 5 << 20 // declarations copied, all in scope for each element that adds one
	mostJoining    = 2 << 30 // bytes copied where a text comes in pieces and each is appended
)

// outline is what one pass over a feed's XML finds out before it is parsed:
// that it is a feed, whole, not too deep, and against what its links resolve.
// The feed library is not asked for the last: it takes every xml:base for a
// directory, and does not know where the feed came from.
type outline struct {
	// doc is the feed from its root on: no DTD, no encoding to be believed,
	// xml:base renamed, cut after the last item that is wanted.
	doc    string
	atom   bool
	bases  []*url.URL // what each item's link resolves against
	root   *url.URL   // the same for a feed whose items are not found here
	capped bool
}

const xmlNamespace = "http://www.w3.org/XML/1998/namespace"

// scanner makes an outline.
type scanner struct {
	d     *xml.Decoder
	doc   []byte
	open  []element
	items int
	limit int
	spent int // bytes that appending has copied
	scope int // declarations copied
	out   outline
}

type element struct {
	raw   string // its name as written
	local string
	base  *url.URL
	item  bool
	link  bool // the item's link has been found
	names int  // namespace declarations in scope
	text  int  // bytes of text so far
}

// scan reads text, which begins with "<".
func scan(text string, base *url.URL, limit int) (outline, *AnswerError) {
	text = cleanXML(text)
	// A declaration may name version 1.1 and an encoding that is no longer
	// true; neither matters now.
	if strings.HasPrefix(text, "<?xml") {
		if end := strings.Index(text, "?>"); end >= 0 {
			text = text[end+2:]
		}
	}
	s := &scanner{doc: []byte(text), limit: limit}
	s.d = xml.NewDecoder(strings.NewReader(text))
	s.d.Strict = false
	s.d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	s.out.root = base
	start, end, err := s.run(base)
	if err != nil {
		return outline{}, s.explain(err, text)
	}
	var b strings.Builder
	b.WriteString(xml.Header)
	b.Write(s.doc[start:end])
	for i := len(s.open) - 1; i >= 0; i-- {
		b.WriteString("</" + s.open[i].raw + ">")
	}
	s.out.doc = b.String()
	return s.out, nil
}

var (
	errNoRoot  = errors.New("it has no element")
	errTooDeep = fmt.Errorf("its elements nest deeper than %d", deepest)
	errNames   = errors.New("it declares too many namespaces")
	errPieces  = errors.New("its texts come in too many pieces")
)

type rootError struct{ name string }

func (e *rootError) Error() string { return fmt.Sprintf("its root is <%s>", clip(e.name)) }

// run finds the feed's first and last byte.
func (s *scanner) run(base *url.URL) (start, end int, err error) {
	started := false
	for {
		from := int(s.d.InputOffset())
		tok, err := s.d.Token()
		if errors.Is(err, io.EOF) {
			return 0, 0, errNoRoot
		}
		if err != nil {
			return 0, 0, err
		}
		to := int(s.d.InputOffset())
		switch t := tok.(type) {
		case xml.StartElement:
			if !started {
				started, start = true, from
				switch strings.ToLower(t.Name.Local) {
				case "rss", "rdf":
				case "feed":
					s.out.atom = true
				default:
					return 0, 0, &rootError{t.Name.Local}
				}
			}
			if s.isItem(t) {
				if s.items == s.limit {
					s.out.capped = true
					return start, from, nil
				}
				s.items++
			}
			s.push(t, from, to, base)
			if len(s.open) > deepest {
				return 0, 0, errTooDeep
			}
			if s.open[len(s.open)-1].names > mostNamespaces || s.scope > mostScopes {
				return 0, 0, errNames
			}
		case xml.CharData:
			if n := len(s.open); n > 0 {
				e := &s.open[n-1]
				e.text += len(t)
				if s.spent += e.text; s.spent > mostJoining {
					return 0, 0, errPieces
				}
			}
		case xml.EndElement:
			s.pop()
			if len(s.open) == 0 {
				return start, to, nil
			}
		}
	}
}

// isItem says that an element stands where the feed library reads an item.
func (s *scanner) isItem(t xml.StartElement) bool {
	name := strings.ToLower(t.Name.Local)
	if s.out.atom {
		return name == "entry" && len(s.open) == 1
	}
	return name == "item" && (len(s.open) == 1 || len(s.open) == 2 && s.open[1].local == "channel")
}

func (s *scanner) push(t xml.StartElement, from, to int, base *url.URL) {
	e := element{raw: rawName(s.doc[from:to]), local: strings.ToLower(t.Name.Local), base: base, item: s.isItem(t)}
	if n := len(s.open); n > 0 {
		e.base, e.names = s.open[n-1].base, s.open[n-1].names
	}
	rel := ""
	for _, a := range t.Attr {
		switch {
		case a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns":
			e.names++
		case a.Name.Local == "base" && (a.Name.Space == xmlNamespace || a.Name.Space == "xml"):
			if ref, err := url.Parse(strings.TrimSpace(a.Value)); err == nil && e.base != nil {
				e.base = e.base.ResolveReference(ref)
			}
			hideBase(s.doc[from:to])
		case a.Name.Local == "rel":
			rel = a.Value
		}
	}
	if n := len(s.open); e.names > 0 && (n == 0 || e.names > s.open[n-1].names) {
		s.scope += e.names
	}
	if e.item {
		s.out.bases = append(s.out.bases, e.base)
	}
	if n := len(s.open); n > 0 && s.open[n-1].item && e.local == "link" && !s.open[n-1].link && (rel == "" || rel == "alternate") {
		s.open[n-1].link = true
		s.out.bases[len(s.out.bases)-1] = e.base
	}
	s.open = append(s.open, e)
}

func (s *scanner) pop() {
	if n := len(s.open); n > 0 {
		s.open = s.open[:n-1]
	}
}

// explain says what a failed scan means.
func (s *scanner) explain(err error, text string) *AnswerError {
	var syntax *xml.SyntaxError
	var root *rootError
	switch {
	case errors.As(err, &root) && strings.EqualFold(root.name, "html"):
		return notAFeed("an HTML page", text)
	case errors.As(err, &root), errors.Is(err, errNoRoot):
		return notAFeed("XML, but no feed: "+err.Error(), text)
	case errors.As(err, &syntax) && strings.Contains(syntax.Msg, "unexpected EOF"):
		if len(s.open) == 0 {
			return notAFeed("not XML", text)
		}
		return &AnswerError{Kind: Truncated, Reason: fmt.Sprintf("the XML stops in the middle, in line %d", syntax.Line)}
	case errors.As(err, &syntax):
		return notAFeed(fmt.Sprintf("broken XML in line %d: %s", syntax.Line, snippet(syntax.Msg)), text)
	}
	return notAFeed("XML that is not read: "+snippet(err.Error()), text)
}

// rawName is the name in the bytes of a start tag.
func rawName(tag []byte) string {
	s := strings.TrimLeft(string(tag), "<")
	if i := strings.IndexAny(s, " \t\r\n/>"); i >= 0 {
		s = s[:i]
	}
	return s
}

// hideBase renames an attribute xml:base in the bytes of a start tag, in place
// and at the same length.
func hideBase(tag []byte) {
	const name = "xml:base"
	var quote byte
	for i, c := range tag {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == 'x' && strings.HasPrefix(string(tag[i:min(len(tag), i+len(name))]), name):
			tag[i+3] = '-'
		}
	}
}

var charReference = regexp.MustCompile(`&#(?:[0-9]{1,9}|[xX][0-9a-fA-F]{1,8});`)

// cleanXML takes out what no XML may hold: control characters, and references
// to them, at which a parser would give up the whole feed.
func cleanXML(s string) string {
	if strings.ContainsFunc(s, illegal) {
		s = strings.Map(func(r rune) rune {
			if illegal(r) {
				return -1
			}
			return r
		}, s)
	}
	if strings.Contains(s, "&#") {
		s = charReference.ReplaceAllStringFunc(s, func(ref string) string {
			digits, radix := ref[2:len(ref)-1], 10
			if digits[0] == 'x' || digits[0] == 'X' {
				digits, radix = digits[1:], 16
			}
			if n, err := strconv.ParseUint(digits, radix, 32); err != nil || n > 0x10ffff || illegal(rune(n)) || n >= 0xd800 && n < 0xe000 {
				return "\ufffd"
			}
			return ref
		})
	}
	return s
}

func illegal(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
}

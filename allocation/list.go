package allocation

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The formats of a proxy list. They differ only in the colon form, four or
// more fields without a scheme.
const (
	FormatAuto      = "auto"       // host:port:user:password; a line that can also be read the other way is refused
	FormatUserFirst = "user-first" // user:password:host:port
)

// ListOptions says how a list is read. The zero value is the default.
type ListOptions struct {
	Format       string // FormatAuto or FormatUserFirst
	Scheme       string // of lines without one: http by default, https, socks5, socks5h
	AllowPrivate bool   // accept private and loopback addresses
}

// A LineError says why a line is not an endpoint. It never quotes the line: any
// part of a broken one may be a part of a password.
type LineError struct {
	Problem string // what is wrong
	Want    string // what would be right
}

func (e *LineError) Error() string { return e.Problem + ": " + e.Want }

const (
	maxLine     = 1 << 20 // a file without line ends is not held in memory
	maxEndpoint = 2048    // nor is a page of text made an ID
)

// ParseList reads a proxy list and calls each for every endpoint or fault, with
// the line's number from 1. Read are
//
//	scheme://[user[:password]@]host[:port]   http, https, socks5, socks5h
//	[user[:password]@]host:port
//	host:port:user:password                  the password may hold colons
//
// as UTF-8 with or without a BOM, LF, CRLF or CR, one a line or separated by
// commas, with comments after #. A scheme without a port means 80, 443 or 1080.
// In URL form user and password are percent-encoded; in colon form they are
// literal. The URLs that come out are normal: lower case, port always there.
//
// The error is that of reading r, or of options that do not exist.
func ParseList(r io.Reader, o ListOptions, each func(line int, u *url.URL, err error)) error {
	if o.Format == "" {
		o.Format = FormatAuto
	}
	if o.Scheme == "" {
		o.Scheme = "http"
	}
	if o.Format != FormatAuto && o.Format != FormatUserFirst {
		return fmt.Errorf("allocation: list format %q is unknown: use %s or %s", o.Format, FormatAuto, FormatUserFirst)
	}
	if _, ok := defaultPorts[o.Scheme]; !ok {
		return fmt.Errorf("allocation: list scheme %q is unknown: use http, https, socks5 or socks5h", o.Scheme)
	}
	br := bufio.NewReaderSize(&lineEnds{r: r}, 64<<10)
	if head, _ := br.Peek(2); bytes.Equal(head, []byte{0xff, 0xfe}) || bytes.Equal(head, []byte{0xfe, 0xff}) {
		each(1, nil, &LineError{"the list is UTF-16", "save it as UTF-8"})
		return nil
	}
	for n := 1; ; n++ {
		line, long, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("allocation: read proxy list, line %d: %w", n, err)
		}
		switch {
		case long:
			each(n, nil, &LineError{"the line is longer than 1 MiB", "one endpoint a line"})
		case !utf8.Valid(line):
			each(n, nil, &LineError{"the line is not UTF-8", "save the list as UTF-8"})
		default:
			o.line(string(line), func(u *url.URL, err error) { each(n, u, err) })
		}
		if err != nil {
			return nil //nolint:nilerr // io.EOF: any other was told of above
		}
	}
}

// lineEnds gives every line end as LF.
type lineEnds struct {
	r  io.Reader
	cr bool // the last byte was a CR
}

func (l *lineEnds) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	kept := p[:0]
	for _, c := range p[:n] {
		if c != '\n' || !l.cr {
			if l.cr = c == '\r'; l.cr {
				c = '\n'
			}
			kept = append(kept, c)
			continue
		}
		l.cr = false
	}
	return len(kept), err
}

// readLine reads up to a line's end; of a line over maxLine it keeps nothing.
func readLine(br *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// line reads one line: nothing, an endpoint, or several separated by commas.
func (o ListOptions) line(text string, each func(*url.URL, error)) {
	text = clean(text)
	if text == "" {
		return
	}
	if !strings.Contains(text, ",") {
		each(o.endpoint(text))
		return
	}
	loose := o.loose()
	var parts []string
	good := true
	for part := range strings.SplitSeq(text, ",") {
		if part = clean(part); part == "" {
			continue
		}
		parts = append(parts, part)
		_, err := loose.endpoint(part)
		good = good && err == nil
	}
	// A comma may also be meant as part of a password. Taken as a separator it
	// would make the password's rest an endpoint, so where both can be meant
	// nothing is taken. In colon form that doubt is cast only by a part that is
	// no endpoint: any list in it could be one long password.
	_, err := loose.endpoint(text)
	if err == nil && (!good || loose.holdsURL(text)) {
		each(nil, &LineError{"the comma may separate endpoints or belong to a password",
			"one endpoint a line, with %2C for a comma inside scheme://user:password@host:port"})
		return
	}
	for _, part := range parts {
		each(o.endpoint(part))
	}
}

// clean takes blanks, byte order marks and a comment off a line.
func clean(text string) string {
	blank := func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' }
	text = strings.TrimFunc(text, blank)
	if strings.HasPrefix(text, "#") {
		return ""
	}
	// A # inside a word may belong to a password; after a blank it cannot.
	for i, r := range text {
		if r == '#' && blank(lastRune(text[:i])) {
			return strings.TrimFunc(text[:i], blank)
		}
	}
	return text
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

package source

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// decodeText gives a body as UTF-8. What the bytes are beats what is said of
// them: a byte order mark first, then UTF-16 and UTF-32 by their zeros, EBCDIC
// by its own "<?xml", then bytes that are valid UTF-8 but for a few, and only
// then the charset that the header or the XML declaration names. lossy says
// that bytes had to be replaced or guessed.
func decodeText(body []byte, contentType string) (text string, lossy bool) {
	return decodeNamed(body, charsetParam(contentType), declaredEncoding(body))
}

// decodeHTML is decodeText for a page, which may name its charset in a meta
// element among its first 1024 bytes (HTML, "prescan a byte stream").
func decodeHTML(body []byte, contentType string) (text string, lossy bool) {
	meta, head := "", body[:min(len(body), 1024)]
	if metaCharset.Match(head) { // else what is determined is a guess
		_, meta, _ = charset.DetermineEncoding(head, "")
	}
	return decodeNamed(body, charsetParam(contentType), meta, declaredEncoding(body))
}

var metaCharset = regexp.MustCompile(`(?i)<meta\s[^>]*charset\s*=`)

// decodeNamed is decodeText with the charsets that something claims, those
// that count most first.
func decodeNamed(body []byte, names ...string) (text string, lossy bool) {
	if e, skip := byMark(body); e != nil {
		return convert(e, body[skip:])
	}
	for bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		body = body[3:]
	}
	if e := bySignature(body); e != nil {
		return convert(e, body)
	}
	right, wrong := sequences(body)
	if utf8.Valid(body) {
		for _, n := range names {
			// These write other scripts with ASCII bytes alone.
			if n == "iso-2022-jp" || n == "hz-gb-2312" {
				if e, err := htmlindex.Get(n); err == nil {
					return convert(e, body)
				}
			}
		}
		return string(body), false
	}
	// Text in another charset is right as UTF-8 by accident only, and a charset of
	// one byte a letter never finds a byte that is wrong.
	if right >= 10*wrong {
		names = nil
	}
	var best string
	found := false
	for _, n := range names {
		e := encodingNamed(n)
		if e == nil {
			continue
		}
		if canonical, _ := htmlindex.Name(e); canonical == "utf-8" || strings.HasPrefix(canonical, "utf-16") || canonical == "replacement" {
			continue
		}
		s, bad := convert(e, body)
		if !bad {
			return s, false
		}
		if !found {
			best, found = s, true
		}
	}
	if right >= wrong || wrong == 1 {
		return strings.ToValidUTF8(string(body), string(utf8.RuneError)), true
	}
	if found {
		return best, true
	}
	s, _ := convert(charmap.Windows1252, body)
	return s, true
}

func byMark(b []byte) (encoding.Encoding, int) {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe, 0, 0}):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), 4
	case bytes.HasPrefix(b, []byte{0, 0, 0xfe, 0xff}):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), 4
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), 2
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), 2
	}
	return nil, 0
}

// bySignature recognizes what begins without a mark, but as a document does
// (XML 1.0, appendix F): with ASCII in two or four bytes, or in EBCDIC.
func bySignature(b []byte) encoding.Encoding {
	if len(b) < 4 {
		return nil
	}
	switch {
	case bytes.HasPrefix(b, []byte{0x4c, 0x6f, 0xa7, 0x94}): // "<?xm"
		text, _ := charmap.CodePage037.NewDecoder().Bytes(b[:min(len(b), 512)])
		if e := encodingNamed(declaredEncoding(text)); e != nil {
			if probe, err := e.NewEncoder().Bytes([]byte("<?xm")); err == nil && bytes.HasPrefix(b, probe) {
				return e
			}
		}
		return charmap.CodePage037
	case b[0] != 0 && b[1] == 0 && b[2] == 0 && b[3] == 0:
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	case b[0] == 0 && b[1] == 0 && b[2] == 0 && b[3] != 0:
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	case b[0] != 0 && b[1] == 0 && b[2] != 0 && b[3] == 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case b[0] == 0 && b[1] != 0 && b[2] == 0 && b[3] != 0:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// encodingNamed finds a charset by a name of browsers, else of IANA's registry,
// as cp437 and IBM1047; nil is none.
func encodingNamed(name string) encoding.Encoding {
	if e, err := htmlindex.Get(name); err == nil {
		return e
	}
	for _, n := range []string{name, strings.Replace(strings.Replace(name, "cp-", "cp", 1), "win-", "windows-", 1)} {
		if e, err := htmlindex.Get(n); err == nil {
			return e
		}
		if e, err := ianaindex.IANA.Encoding(n); err == nil && e != nil {
			return e
		}
	}
	return nil
}

func convert(e encoding.Encoding, b []byte) (string, bool) {
	out, err := e.NewDecoder().Bytes(b)
	s := strings.ToValidUTF8(string(out), string(utf8.RuneError))
	return strings.TrimPrefix(s, "\ufeff"), err != nil || strings.ContainsRune(s, utf8.RuneError)
}

// sequences counts the sequences of several bytes that are UTF-8, and the bytes
// that are none: it tells a UTF-8 text with a few broken bytes from one in
// another encoding.
func sequences(b []byte) (right, wrong int) {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			wrong++
		case n > 1:
			right++
		}
		b = b[n:]
	}
	return right, wrong
}

var charsetAttr = regexp.MustCompile(`(?i)(?:^|[\s;])charset\s*=\s*["']?\s*([a-z][a-z0-9._:-]{0,40})`)

// charsetParam is the charset of a Content-Type, also of one that is not
// written as the standard has it.
func charsetParam(contentType string) string {
	if m := charsetAttr.FindStringSubmatch(contentType); m != nil {
		return strings.ToLower(m[1])
	}
	return ""
}

var encodingAttr = regexp.MustCompile(`^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._:-]{0,40})["']`)

// declaredEncoding is the encoding of an XML declaration, lower case.
func declaredEncoding(b []byte) string {
	if m := encodingAttr.FindSubmatch(b[:min(len(b), 512)]); m != nil {
		return strings.ToLower(string(m[1]))
	}
	return ""
}

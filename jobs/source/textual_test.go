package source

import (
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

func TestDecodeText(t *testing.T) {
	declared := func(name, rest string) string {
		return `<?xml version="1.0" encoding="` + name + `"?><a>` + rest + `</a>`
	}
	for name, tt := range map[string]struct {
		text  string
		in    encoding.Encoding // nil is UTF-8
		ctype string
	}{
		"UTF-8":                                  {declared("utf-8", "日本"), nil, ""},
		"UTF-8 called Latin-1 by all":            {declared("iso-8859-1", "žužemberk – déjà"), nil, "text/xml; charset=iso-8859-1"},
		"UTF-8 called UTF-16":                    {declared("utf-16", "日本"), nil, ""},
		"Shift_JIS by the header":                {"<a>夏の終わり</a>", japanese.ShiftJIS, "text/xml; charset=Shift_JIS"},
		"EUC-JP by the declaration":              {declared("euc-jp", "夏の終わり"), japanese.EUCJP, "text/xml"},
		"ISO-2022-JP, which is ASCII throughout": {declared("iso-2022-jp", "夏の終わり"), japanese.ISO2022JP, ""},
		"GB2312":                                 {declared("gb2312", "新闻标题"), simplifiedchinese.GBK, ""},
		"EUC-KR":                                 {declared("euc-kr", "새 소식"), korean.EUCKR, ""},
		"KOI8-R by the header":                   {"<a>Новости дня</a>", charmap.KOI8R, `text/xml; charset="koi8-r"`},
		"the header lies, the declaration not":   {declared("windows-1250", "Žužemberk Šibenik"), charmap.Windows1250, "text/xml; charset=utf-8"},
		"UTF-16 with a mark":                     {declared("utf-16", "日本 😀"), unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "text/xml; charset=utf-8"},
		"UTF-16 without":                         {declared("utf-16", "日本 😀"), unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), ""},
		"UTF-32 with a mark":                     {declared("utf-32", "日本"), utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), ""},
		"UTF-32 without":                         {declared("utf-32", "日本"), utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), ""},
		"UTF-32 without, the other way round":    {declared("utf-32", "日本"), utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), ""},
		"EBCDIC":                                 {declared("ebcdic-cp-us", "plain"), charmap.CodePage037, ""},
		"EBCDIC of another page":                 {declared("IBM1047", "[plain]"), charmap.CodePage1047, "text/xml; charset=utf-8"},
		"EBCDIC that says UTF-8":                 {declared("utf-8", "plain"), charmap.CodePage037, ""},
		"a charset that browsers do not know":    {declared("IBM850", "déjà"), charmap.CodePage850, ""},
		"cp437":                                  {declared("cp437", "déjà"), charmap.CodePage437, ""},
		"a name with one hyphen too many":        {declared("cp-1251", "Привет"), charmap.Windows1251, ""},
		"single quotes in the header":            {"<a>Привет</a>", charmap.Windows1251, "text/xml; charset='windows-1251'"},
		"a header with a loose end":              {"<a>Привет</a>", charmap.Windows1251, "text/xml; charset=windows-1251; oops"},
		"a header without its semicolon":         {"<a>Привет</a>", charmap.Windows1251, "text/xml charset=windows-1251"},
		"UTF-8 with a mark":                      {declared("utf-8", "日本"), unicode.UTF8BOM, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := []byte(tt.text)
			if tt.in != nil {
				var err error
				if b, err = tt.in.NewEncoder().Bytes(b); err != nil {
					t.Fatal(err)
				}
			}
			got, lossy := decodeText(b, tt.ctype)
			if got != tt.text || lossy {
				t.Errorf("got %q, lossy %v; want %q", got, lossy, tt.text)
			}
		})
	}
	for name, b := range map[string]string{
		"UTF-16 cut within a character": "\xff\xfe<\x00a\x00>",
		"a charset that nobody knows":   "<?xml version='1.0' encoding='x-mine'?><a>\xe9t\xe9</a>",
		"a bad byte in Shift_JIS":       "<?xml version='1.0' encoding='shift_jis'?><a>\x82\xb1\xff\x82\xb1</a>",
	} {
		if _, lossy := decodeText([]byte(b), ""); !lossy {
			t.Errorf("%s is not marked lossy", name)
		}
	}
	for name, ctype := range map[string]string{"": "text/xml; charset=iso-8859-1", "windows-1251": "", "koi8-r": "text/xml; charset=windows-1252"} {
		want := "žužemberk – déjà vu, für alle: Привет"
		got, lossy := decodeText([]byte(declared(name, want+"\xff")), ctype)
		if got != declared(name, want+"\ufffd") || !lossy {
			t.Errorf("UTF-8 with a bad byte called %q and %q: %q, lossy %v", name, ctype, got, lossy)
		}
	}
	if got, lossy := decodeText([]byte("\xef\xbb\xbf\xef\xbb\xbf<a/>"), ""); got != "<a/>" || lossy {
		t.Errorf("two marks: %q, lossy %v", got, lossy)
	}
}

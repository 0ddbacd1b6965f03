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
}

package main

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how many columns of a terminal a text takes: none for a mark that
// sits on the letter before it, two for a wide letter.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// clip shortens a text to so many columns.
func clip(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	head, _ := cut(s, n-1)
	return head + "…"
}

// cut parts a text after so many columns.
func cut(s string, n int) (head, rest string) {
	used := 0
	for i, r := range s {
		if used += columnsOf(r); used > n {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// folded breaks a text into lines of so many columns: between words, and within
// one, as an address is, that is longer than a line.
func folded(text string, width int) []string {
	if width < 20 {
		return []string{text}
	}
	var out []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && columns(line)+1+columns(word) > width {
			out, line = append(out, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
		for columns(line) > width {
			var head string
			head, line = cut(line, width)
			out = append(out, head)
		}
	}
	return append(out, line)
}

// oneLine keeps out of a terminal what steers it in other people's texts:
// control characters, and the marks that turn the direction of what follows.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029:
			return ' '
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

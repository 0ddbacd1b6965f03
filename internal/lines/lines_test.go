package lines

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEachGivesLinesWithTheirNumbers(t *testing.T) {
	t.Parallel()
	var got []string
	in := "\ufeff one \r\n\n" + strings.Repeat("x", 21) + "\ntwo\n" + strings.Repeat("y", 20) + "\nlast"
	err := Each(strings.NewReader(in), 20, func(n int, line []byte, tooLong bool) error {
		got = append(got, fmt.Sprint(n, " ", string(line), " ", tooLong))
		return nil
	})
	want := []string{"1 one false", "3  true", "4 two false", "5 " + strings.Repeat("y", 20) + " false", "6 last false"}
	if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}

func TestHalfALineIsNotGiven(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(strings.NewReader("whole\nhal"), iotest.ErrReader(errors.New("cut")))
	n := 0
	err := Each(broken, 100, func(int, []byte, bool) error { n++; return nil })
	var re *ReadError
	if !errors.As(err, &re) || re.Line != 2 || n != 1 {
		t.Errorf("%d lines, %v", n, err)
	}
}

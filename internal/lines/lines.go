// Package lines reads texts of one item a line, of any number of lines.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ReadError says that reading failed in a line: it may be half of one, and was
// not given.
type ReadError struct {
	Line int
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("line %d cannot be read: %v", e.Line, e.Err) }
func (e *ReadError) Unwrap() error { return e.Err }

// Each gives every line that is not blank, trimmed, with its number, until f
// answers an error. One longer than most bytes is told of, and its text left
// out. A byte order mark before the first is none of it. *ReadError.
func Each(in io.Reader, most int, f func(n int, line []byte, tooLong bool) error) error {
	r := bufio.NewReaderSize(in, most+1)
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = true
			line, err = r.ReadSlice('\n')
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return &ReadError{n, err}
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); tooLong {
			line = nil
		}
		if tooLong || len(line) > 0 {
			if ferr := f(n, line, tooLong); ferr != nil {
				return ferr
			}
		}
		if last {
			return nil
		}
	}
}

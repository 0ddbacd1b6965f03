package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in the file: both count from 1, columns in characters.
type Pos struct{ Line, Col int }

// Fault is one thing that is wrong with a config file.
type Fault struct {
	File      string
	Line, Col int    // 0 when it is about the whole file
	Problem   string // what is wrong
	Want      string // what would be right, or ""
	Err       error  // the system's error for a file that cannot be read
}

// String is the fault in one line, in the form that editors can jump to.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Col)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(f.Problem)
	if f.Want != "" {
		b.WriteString("; ")
		b.WriteString(f.Want)
	}
	return b.String()
}

// Faults is all that is wrong with a file, in the order of its lines.
type Faults []Fault

// Error is one fault a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the causes that the faults carry.
func (fs Faults) Unwrap() []error {
	var errs []error
	for _, f := range fs {
		if f.Err != nil {
			errs = append(errs, f.Err)
		}
	}
	return errs
}

// maxFaults bounds what a garbage file can print, and maxKept what is kept of
// it to be sorted.
const (
	maxFaults = 1000
	maxKept   = 5 * maxFaults
)

// sorted is the faults by place, each once. A last line tells of those that
// are not shown; count is how many there were.
func (fs Faults) sorted(count int) Faults {
	more := count - len(fs)
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	fs = slices.CompactFunc(fs, func(a, b Fault) bool { return a == b })
	if len(fs) > maxFaults {
		more += len(fs) - maxFaults
		fs = fs[:maxFaults:maxFaults]
	}
	if more > 0 {
		fs = append(fs, Fault{File: fs[0].File, Problem: fmt.Sprintf("%d more faults are not shown", more)})
	}
	return fs
}

package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"feedwarden/internal/units"
)

// path is where a value stands, for a person: feeds.trending.ttl.
type path struct{ shown string }

func (p path) String() string { return p.shown }

func (p path) name(n string) path { return p.key(clip(n)) }
func (p path) index(i int) path   { return path{fmt.Sprintf("%s[%d]", p.shown, i)} }

func (p path) key(k string) path {
	if p.shown == "" {
		return path{k}
	}
	return path{p.shown + "." + k}
}

// decoder collects faults while the sections are read.
type decoder struct {
	file     string
	getenv   func(string) (string, bool)
	schedule ParseSchedule
	cost     MethodCost
	check    CheckSource
	env      map[string]string // the variables that were read
	faults   Faults
	count    int // of faults, those that were not kept too
	warnings Faults
	unset    bool // a variable of the environment is missing: what it would have filled in is not held against the file
	visited  int
}

func (d *decoder) fault(at Pos, problem, want string) {
	d.note(Fault{Line: at.Line, Col: at.Col, Problem: problem, Want: want})
}

func (d *decoder) note(f Fault) {
	if d.count++; d.count <= maxKept {
		f.File = d.file
		d.faults = append(d.faults, f)
	}
}

func (d *decoder) warn(at Pos, problem, want string) {
	d.warnings = append(d.warnings, Fault{File: d.file, Line: at.Line, Col: at.Col, Problem: problem, Want: want})
}

// maxVisited bounds the entries read, which aliases can make far more than the
// text has.
const maxVisited = 500_000

// spend tells whether n more entries may be read. That they may not is kept
// whatever the number of other faults, and comes first.
func (d *decoder) spend(n int) bool {
	if d.visited > maxVisited {
		return false
	}
	if d.visited += n; d.visited > maxVisited {
		d.count++
		d.faults = append(d.faults, Fault{File: d.file, Problem: "the file is too large once its aliases are followed"})
		return false
	}
	return true
}

// fields reads one mapping: each reader names a key, and done reports the keys
// that none has named.
type fields struct {
	d     *decoder
	path  path
	at    Pos // where a missing key is reported
	have  map[string]entry
	order []string
	known []string
}

// section opens a mapping. Absent and empty ones read as all defaults.
func (d *decoder) section(n *node, p path, at Pos) *fields {
	f := &fields{d: d, path: p, at: at}
	if n == nil || n.kind == nothing {
		return f
	}
	if n.kind != mapping {
		want := "want keys and values below it"
		if n.kind == scalar && n.shape == plain && noSpace.MatchString(n.shown()) {
			want = "a key's colon is followed by a blank"
		}
		d.wrongKind(n, p, want)
		return f
	}
	if !d.spend(len(n.entries)) {
		return f
	}
	f.have = make(map[string]entry, len(n.entries))
	for _, e := range n.entries {
		f.have[e.key] = e
		f.order = append(f.order, e.key)
	}
	return f
}

func (d *decoder) wrongKind(n *node, p path, want string) {
	if n.kind == mapping && len(n.entries) == 1 && n.entries[0].value.kind == nothing {
		want = fmt.Sprintf(`a placeholder stands in quotes: "{%s}"`, clip(n.entries[0].key))
	}
	d.fault(n.pos, fmt.Sprintf("%s is %s", p, n.kind), want)
}

// node is a key's value, or nil when the file does not give it.
func (f *fields) node(key string) *node {
	f.known = append(f.known, key)
	e, ok := f.have[key]
	if !ok {
		return nil
	}
	return e.value
}

// has tells that the file gives a key.
func (f *fields) has(key string) bool { _, ok := f.have[key]; return ok }

// pos is where a key's value stands, else where the mapping does.
func (f *fields) pos(key string) Pos {
	if e, ok := f.have[key]; ok {
		return e.value.pos
	}
	return f.at
}

// done reports the unknown keys. elsewhere says of a key that is known in
// another place where it belongs.
func (f *fields) done(elsewhere func(key string) string) {
	for _, k := range f.order {
		if slices.Contains(f.known, k) {
			continue
		}
		if f.d.count >= maxKept {
			f.d.count++
			continue
		}
		want := ""
		if elsewhere != nil {
			want = elsewhere(k)
		}
		if want == "" {
			want = orNear(k, f.known)
		}
		problem := fmt.Sprintf("unknown key %s", quote(k))
		if f.path.shown != "" {
			problem += " in " + f.path.shown
		}
		f.d.fault(f.have[k].pos, problem, want)
	}
}

// scalar is a key's scalar value, or nil: absent, or of the wrong kind.
func (f *fields) scalar(key, want string) *node {
	n := f.node(key)
	if n == nil {
		return nil
	}
	return f.d.scalarOf(n, f.path.key(key), want)
}

func (d *decoder) scalarOf(n *node, p path, want string) *node {
	if n.broken {
		return nil
	}
	if n.kind == nothing {
		d.fault(n.pos, fmt.Sprintf("%s has no value", p), want)
		return nil
	}
	if n.kind != scalar {
		d.wrongKind(n, p, want)
		return nil
	}
	return n
}

// bad reports a scalar's value, as the file has it.
func (f *fields) bad(key string, n *node, problem, want string) {
	f.d.bad(n, f.path.key(key), problem, want)
}

func (d *decoder) bad(n *node, p path, problem, want string) {
	d.fault(n.pos, fmt.Sprintf("%s: %s %s", p, quote(n.shown()), problem), want)
}

// check says what is wrong with a text and what would be right, or "".
type check func(text string) (problem, want string)

// text reads a text that is not empty.
func (f *fields) text(key string, to *string, checks ...check) *node {
	n := f.scalar(key, "want a text")
	if n == nil {
		return nil
	}
	value := n.text()
	if value == "" {
		f.d.fault(n.pos, fmt.Sprintf("%s is empty", f.path.key(key)), "")
		return nil
	}
	for _, c := range checks {
		if problem, want := c(value); problem != "" {
			f.bad(key, n, problem, want)
			return nil
		}
	}
	*to = value
	return n
}

// secret reads a text that no fault may quote.
func (f *fields) secret(key string, to *Secret) *node {
	n := f.scalar(key, "want a text")
	if n == nil {
		return nil
	}
	value := n.text()
	problem := ""
	switch {
	case value == "":
		problem = "is empty"
	case strings.ContainsFunc(value, notVisible):
		problem = "holds a blank or a control character"
	}
	if problem != "" {
		want := ""
		if n.fromEnv() {
			want = "look at what the environment has for " + clip(n.shown())
		}
		f.d.fault(n.pos, fmt.Sprintf("%s %s", f.path.key(key), problem), want)
		return nil
	}
	*to = Secret(value)
	return n
}

func notVisible(r rune) bool { return r <= ' ' || r == 0x7f }

// choice reads one of some words.
func (f *fields) choice(key string, to *string, words ...string) *node {
	return f.text(key, to, func(s string) (string, string) {
		if slices.Contains(words, s) {
			return "", ""
		}
		want := oneOf(words)
		if n := near(s, words); n != "" {
			want = fmt.Sprintf("did you mean %q?", n)
		}
		return "is none of its values", want
	})
}

// whole reads a whole number between two bounds.
func whole[T int | int64](f *fields, key string, to *T, least, most T) *node {
	want := fmt.Sprintf("want a whole number, %d or more", least)
	n := f.scalar(key, want)
	if n == nil {
		return nil
	}
	text := strings.ReplaceAll(n.text(), "_", "")
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case n.shape == quoted && !n.fromEnv() && err == nil:
		f.bad(key, n, "is a text in quotes", "want the number without quotes")
	case err != nil && strings.Trim(text, "0123456789") == "" && text != "":
		f.bad(key, n, "is too large", fmt.Sprintf("want at most %d", most))
	case err != nil:
		f.bad(key, n, "is not a whole number", want)
	case T(v) < least:
		f.bad(key, n, "is too small", want)
	case T(v) > most:
		f.bad(key, n, "is too large", fmt.Sprintf("want at most %d", most))
	default:
		*to = T(v)
		return n
	}
	return nil
}

// fraction reads a number from above 0 to 1.
func (f *fields) fraction(key string, to *float64) {
	const want = "want a number above 0 and up to 1, such as 0.5"
	n := f.scalar(key, want)
	if n == nil {
		return
	}
	v, err := strconv.ParseFloat(n.text(), 64)
	if err != nil || !(v > 0 && v <= 1) || n.shape == quoted && !n.fromEnv() {
		f.bad(key, n, "is no share", want)
		return
	}
	*to = v
}

// flag reads true or false.
func (f *fields) flag(key string, to *bool) {
	n := f.scalar(key, "want true or false")
	if n == nil {
		return
	}
	text := strings.ToLower(n.text())
	if text != "true" && text != "false" || n.shape == quoted && !n.fromEnv() {
		f.bad(key, n, "is not true or false", "want true or false, without quotes")
		return
	}
	*to = text == "true"
}

// longest keeps sums of instants and durations far from overflow.
const longest = 365 * 24 * time.Hour

// duration reads a duration of at least so much. A second is the least where
// the queue would read a shorter one as "no limit given".
func (f *fields) duration(key string, to *time.Duration, least time.Duration) *node {
	example := units.FormatDuration(max(*to, least, time.Second))
	n := f.scalar(key, "want a duration, such as "+example)
	if n == nil {
		return nil
	}
	v, err := units.ParseDuration(n.text())
	switch {
	case err != nil:
		f.bad(key, n, "is not a duration", durationHint(n.text(), example))
	case v < least && least == 0:
		f.bad(key, n, "is before zero", "want 0s or longer")
	case v < least:
		f.bad(key, n, "is too short", "want "+units.FormatDuration(least)+" or longer")
	case v > longest:
		f.bad(key, n, "is too long", "want a year at most: 365d")
	default:
		*to = v
		return n
	}
	return nil
}

// size reads a number of bytes.
func (f *fields) size(key string, to *int64) {
	n := f.scalar(key, "want bytes, such as "+units.FormatSize(*to))
	if n == nil {
		return
	}
	v, err := units.ParseSize(strings.ReplaceAll(n.text(), "_", ""))
	switch {
	case err != nil:
		f.bad(key, n, "is not a size", sizeHint(n.text()))
	case v < 1:
		f.bad(key, n, "is too small", "want bytes, such as "+units.FormatSize(*to))
	default:
		*to = v
	}
}

// list is a key's items.
func (f *fields) list(key, want string) []*node {
	n := f.node(key)
	if n == nil || n.kind == nothing {
		return nil
	}
	if n.kind != list {
		f.d.wrongKind(n, f.path.key(key), want)
		return nil
	}
	if !f.d.spend(len(n.items)) {
		return nil
	}
	return n.items
}

// quote is a text for a fault: in quotes, and not too long.
func quote(s string) string { return strconv.Quote(clip(s)) }

func clip(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

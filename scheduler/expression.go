package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// ErrNeverFires is wrapped by the error about an expression none of whose
// times ever comes, such as the 31st of February.
var ErrNeverFires = errors.New("it never fires")

// ExpressionError says what is wrong in a schedule's expression.
type ExpressionError struct {
	Expression string
	Field      string // "minute", "zone", …; "" when it is about the whole
	Reason     string // what is wrong, and what would be right
	Err        error  // ErrNeverFires, ErrZone or nil
}

func (e *ExpressionError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("expression %+q: %s", e.Expression, e.Reason)
	}
	return fmt.Sprintf("expression %+q: %s: %s", e.Expression, e.Field, e.Reason)
}

func (e *ExpressionError) Unwrap() error { return e.Err }

// Schedule is an expression that was read, in its zone. It is immutable.
type Schedule struct {
	text   string
	loc    *time.Location
	every  int64 // @every's seconds; 0 for a calendar expression
	phase  int64 // @every's shift from the epoch, in seconds
	fields calendar
}

// Location is the zone the schedule is read in.
func (s *Schedule) Location() *time.Location { return s.loc }

// String is the expression without its zone, one blank between fields.
func (s *Schedule) String() string { return s.text }

// maxExpression bounds the work of reading an expression, in bytes. Every
// minute, hour, day, month and weekday written out takes 400.
const maxExpression = 1024

// tail is an instant after which every zone keeps one rule for ever, in Unix
// seconds (2100-01-01): the last table of the tz database ends in 2087.
const tail = 4102444800

// Parse reads an expression: five fields (minute, hour, day of month, month,
// weekday), @yearly, @annually, @monthly, @weekly, @daily, @midnight,
// @hourly, or @every with a duration of whole seconds. A first field TZ=ZONE
// or CRON_TZ=ZONE wins over zone, which is UTC when nil. The error is an
// *ExpressionError.
func Parse(expr string, zone *time.Location) (*Schedule, error) {
	fail := func(field, reason string, err error) (*Schedule, error) {
		shown := expr
		if len(shown) > maxExpression {
			shown = shown[:64] + "…"
		}
		return nil, &ExpressionError{Expression: shown, Field: field, Reason: reason, Err: err}
	}
	if len(expr) > maxExpression {
		return fail("", fmt.Sprintf("it has %d bytes; at most %d are read", len(expr), maxExpression), nil)
	}
	if reason := foreign(expr); reason != "" {
		return fail("", reason, nil)
	}
	words := strings.FieldsFunc(expr, blank)
	if zone == nil {
		zone = time.UTC
	}
	if name, ok := zonePrefix(words); ok {
		loc, err := LoadZone(name)
		switch {
		case name == "":
			return fail("zone", "the name after = is empty; write it as TZ=Asia/Dhaka", ErrZone)
		case err != nil:
			return fail("zone", err.Error(), ErrZone)
		}
		zone, words = loc, words[1:]
		if _, again := zonePrefix(words); again {
			return fail("zone", "it is given twice; once is wanted", nil)
		}
	}
	s := &Schedule{text: strings.Join(words, " "), loc: zone}
	if len(words) == 0 {
		return fail("", "it is empty; five fields are wanted (minute hour day month weekday), such as */15 * * * *", nil)
	}
	if words[0] == "@every" {
		seconds, reason := period(words[1:])
		if reason != "" {
			return fail("@every", reason, nil)
		}
		s.every = seconds
		return s, nil
	}
	if strings.HasPrefix(words[0], "@") {
		full, ok := descriptors[words[0]]
		if !ok || len(words) > 1 {
			return fail("", fmt.Sprintf("%q is not known; known are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, each alone, and @every with a duration", s.text), nil)
		}
		words = full
	}
	if len(words) != len(grammar) {
		return fail("", fmt.Sprintf("it has %d fields; five are wanted (minute hour day month weekday), without seconds or years, and a zone goes in front as TZ=ZONE", len(words)), nil)
	}
	if field, reason := s.read(words); reason != "" {
		return fail(field, reason, nil)
	}
	if _, _, ok := s.next(tail); !ok {
		return fail("", "it never fires: none of its times ever comes in "+zone.String(), ErrNeverFires)
	}
	return s, nil
}

// WithPhase is the schedule with an @every's instants moved by d after the
// epoch's, in whole seconds. Other expressions name their times, and stay.
func (s *Schedule) WithPhase(d time.Duration) *Schedule {
	if s.every == 0 {
		return s
	}
	moved := *s
	moved.phase = floorMod(int64(d/time.Second), s.every)
	return &moved
}

var robfig = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// read turns the five words into bits. The grammar's own check comes first:
// robfig's parser passes over empty list elements, signs and more.
func (s *Schedule) read(words []string) (field, reason string) {
	plain := make([]string, len(grammar))
	for i, g := range grammar {
		var err error
		if plain[i], err = g.plain(words[i]); err != nil {
			return g.name, err.Error()
		}
	}
	s.fields.lastDay = hasLast(words[dayField])
	lastOnly := plain[dayField] == ""
	if lastOnly {
		plain[dayField] = "1" // robfig wants one; its bit is taken out below
	}
	parsed, err := robfig.Parse(strings.Join(plain, " "))
	if err != nil {
		return "", err.Error()
	}
	spec := parsed.(*cron.SpecSchedule)
	c := &s.fields
	// robfig's star bit is bit 63; whether a field starts with * is read from the text instead.
	const values = 1<<63 - 1
	c.minutes, c.hours, c.days = spec.Minute&values, spec.Hour&values, spec.Dom&values
	c.months, c.weekdays = spec.Month&values, spec.Dow&values
	if lastOnly {
		c.days = 0
	}
	c.both = starred(words[dayField]) || starred(words[weekdayField])
	c.follows = starred(words[minuteField]) || starred(words[hourField])
	return "", ""
}

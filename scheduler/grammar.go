package scheduler

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	minuteField = iota
	hourField
	dayField
	monthField
	weekdayField
)

// bounds is what one of the five fields may hold.
type bounds struct {
	name     string
	min, max int
	names    map[string]int
}

var grammar = []bounds{
	minuteField: {name: "minute", max: 59},
	hourField:   {name: "hour", max: 23},
	dayField:    {name: "day of month", min: 1, max: 31},
	monthField: {name: "month", min: 1, max: 12, names: map[string]int{
		"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}},
	weekdayField: {name: "weekday", max: 7, names: map[string]int{
		"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}},
}

var descriptors = map[string][]string{
	"@yearly":   {"0", "0", "1", "1", "*"},
	"@annually": {"0", "0", "1", "1", "*"},
	"@monthly":  {"0", "0", "1", "*", "*"},
	"@weekly":   {"0", "0", "*", "*", "0"},
	"@daily":    {"0", "0", "*", "*", "*"},
	"@midnight": {"0", "0", "*", "*", "*"},
	"@hourly":   {"0", "*", "*", "*", "*"},
}

// blank are ASCII's blanks, which part fields.
func blank(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

// foreign says which character of expr no expression can hold, if any.
func foreign(expr string) string {
	for i, r := range expr {
		switch {
		case r == '\ufeff' && i == 0:
			return "it starts with a byte order mark (U+FEFF); save the text without one"
		case r > '~' || r < ' ' && !blank(r):
			return fmt.Sprintf("character %U at byte %d; only ASCII is read, with blanks or tabs between fields", r, i+1)
		}
	}
	return ""
}

// zonePrefix is the zone's name in a first word TZ=… or CRON_TZ=….
func zonePrefix(words []string) (string, bool) {
	if len(words) == 0 {
		return "", false
	}
	if name, ok := strings.CutPrefix(words[0], "CRON_TZ="); ok {
		return name, true
	}
	return strings.CutPrefix(words[0], "TZ=")
}

// starred tells whether a field starts with * or, which means the same, ?.
func starred(field string) bool { return field[0] == '*' || field[0] == '?' }

func isLast(element string) bool { return element == "L" || element == "l" }

func hasLast(field string) bool {
	for element := range strings.SplitSeq(field, ",") {
		if isLast(element) {
			return true
		}
	}
	return false
}

// plain checks a field and writes it in robfig's grammar: weekday ranges that
// hold a 7 or wrap become lists, and L is left out of days, which may leave
// nothing.
func (b bounds) plain(field string) (string, error) {
	var out []string
	for element := range strings.SplitSeq(field, ",") {
		if element == "" {
			return "", fmt.Errorf("%q has an empty list element; write values with one comma between them", field)
		}
		if b.name == grammar[dayField].name && isLast(element) {
			continue
		}
		text, err := b.element(element)
		if err != nil {
			return "", err
		}
		out = append(out, text)
	}
	return strings.Join(out, ","), nil
}

// element checks one element of a list: *, a value or a range, and a step.
func (b bounds) element(text string) (string, error) {
	span, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText); !ok || step == 0 {
			return "", fmt.Errorf("%q: the step after / is a whole number, 1 or more, as in */15", text)
		}
	}
	if span == "*" || span == "?" {
		return text, nil
	}
	lowText, highText, ranged := strings.Cut(span, "-")
	low, err := b.value(text, lowText)
	if err != nil {
		return "", err
	}
	high := low
	if ranged {
		if high, err = b.value(text, highText); err != nil {
			return "", err
		}
	}
	if b.names != nil && b.min == 0 {
		return weekdays(low, high, step, ranged, stepped), nil
	}
	if low > high {
		return "", fmt.Errorf("%q: the range runs backwards; write it as %d-%d,%d-%d", text, low, b.max, b.min, high)
	}
	return text, nil
}

// value is a number or a name in the field's bounds.
func (b bounds) value(element, text string) (int, error) {
	n, ok := b.names[strings.ToLower(text)]
	if !ok {
		n, ok = number(text)
	}
	wanted := fmt.Sprintf("%d to %d", b.min, b.max)
	if b.names != nil {
		wanted += ", or three letters of an English name"
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("%q is not understood: *, values, ranges such as 1-5 and steps such as */2 are, with values %s", element, wanted)
	case n < b.min || n > b.max:
		return 0, fmt.Errorf("%q: %d is out of range; values are %s", element, n, wanted)
	}
	return n, nil
}

// weekdays writes a range of weekdays out. 7 is Sunday, and a range may wrap
// round the week's end: FRI-MON is 5,6,0,1.
func weekdays(low, high, step int, ranged, stepped bool) string {
	if low == 7 {
		if high == 7 {
			high = 0
		}
		low = 0
	}
	switch {
	case ranged && high < low:
		high += 7
	case !ranged && stepped:
		high = 6
	}
	var out []string
	for d := low; d <= high; d += step {
		out = append(out, strconv.Itoa(d%7))
	}
	return strings.Join(out, ",")
}

// number reads plain digits: no sign, no blank, at most nine of them.
func number(text string) (int, bool) {
	if text == "" || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

package source

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The two ways to write an instant that programs use, and what people's
// programs make of them: RFC 3339 and ISO 8601; RFC 5322 with the two-digit
// years and named zones of RFC 822.
const zoneForm = `(?:\s*(Z|(?:GMT|UTC)?[+-]\d{1,2}(?::?\d\d)?|[A-Z]{1,5}))?$`

var (
	isoForm = regexp.MustCompile(`(?i)^(\d{4})[-/]?(\d\d)[-/]?(\d\d)(?:T|\s+)(\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9})\d*)?)?` + zoneForm)
	rfcForm = regexp.MustCompile(`(?i)^(?:[a-z]{2,9}\.?,?\s*)?(\d{1,2})[\s-]+([a-z]{3,9})\.?[\s-]+(\d{4}|\d\d),?\s+(\d{1,2}):(\d\d)(?::(\d\d))?()` + zoneForm)
	// A remark behind: (UTC) as mail has it, [Europe/Oslo] as Java has it.
	remark = regexp.MustCompile(`\s*(?:\([^()]*\)|\[[^][]*\])$`)
)

// zoneHours are the names that mean one thing to everybody, among them those
// of RFC 822. An abbreviation of several zones (IST, CST of China) is not here.
var zoneHours = map[string]float64{
	"": 0, "Z": 0, "UT": 0, "UTC": 0, "GMT": 0, "WET": 0,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10, "NST": -3.5, "NDT": -2.5,
	"BST": 1, "WEST": 1, "CET": 1, "MET": 1, "CEST": 2, "MEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "MSD": 4,
	"HKT": 8, "SGT": 8, "AWST": 8, "JST": 9, "KST": 9, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
}

// longestDate is more than any of the two ways takes.
const longestDate = 100

// civil reads an instant in one of the two ways. 24:00 is the next day's
// beginning, a leap second the next minute's; without a zone it is UTC.
func civil(s string) (time.Time, bool) {
	if s = strings.TrimSpace(s); len(s) > longestDate {
		return time.Time{}, false
	}
	s = remark.ReplaceAllString(s, "")
	var year, month, day int
	m := isoForm.FindStringSubmatch(s)
	if m != nil {
		year, month, day = number(m[1]), number(m[2]), number(m[3])
	} else if m = rfcForm.FindStringSubmatch(s); m != nil {
		day, month, year = number(m[1]), monthOf(m[2]), number(m[3])
		if len(m[3]) == 2 { // RFC 5322, 4.3
			if year += 1900; year < 1950 {
				year += 100
			}
		}
	} else {
		return time.Time{}, false
	}
	hour, minute, second := number(m[4]), number(m[5]), number(m[6])
	offset, ok := zoneOffset(strings.ToUpper(m[8]))
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if !ok || month < 1 || month > 12 || date.Day() != day || minute > 59 || second > 60 || hour > 24 || hour == 24 && minute+second > 0 {
		return time.Time{}, false
	}
	nanos := number((m[7] + "000000000")[:9])
	return date.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second + time.Duration(nanos) - offset), true
}

// number is digits that a pattern has counted; none are 0.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func monthOf(name string) int {
	for m := time.January; m <= time.December; m++ {
		if full := m.String(); len(name) <= len(full) && strings.EqualFold(full[:len(name)], name) {
			return int(m)
		}
	}
	if strings.EqualFold(name, "Sept") {
		return int(time.September)
	}
	return 0
}

func zoneOffset(zone string) (time.Duration, bool) {
	if h, known := zoneHours[zone]; known {
		return time.Duration(h * float64(time.Hour)), true
	}
	zone = strings.TrimPrefix(strings.TrimPrefix(zone, "GMT"), "UTC")
	if len(zone) < 2 || zone[0] != '+' && zone[0] != '-' {
		return 0, false
	}
	digits := strings.ReplaceAll(zone[1:], ":", "")
	hours, minutes := digits, ""
	if len(digits) > 2 {
		hours, minutes = digits[:len(digits)-2], digits[len(digits)-2:]
	}
	d := time.Duration(number(hours))*time.Hour + time.Duration(number(minutes))*time.Minute
	if d > 24*time.Hour || number(minutes) > 59 {
		return 0, false
	}
	if zone[0] == '-' {
		d = -d
	}
	return d, true
}

package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"feedwarden/internal/units"
)

var sizeText = regexp.MustCompile(`^([0-9]{1,18})([A-Za-z]*)$`)

// sizeHint is the size that was probably meant, or an example.
func sizeHint(s string) string {
	if m := sizeText.FindStringSubmatch(strings.ReplaceAll(s, " ", "")); m != nil {
		unit := strings.ToUpper(strings.TrimSuffix(strings.ToLower(m[2]), "b"))
		switch strings.TrimSuffix(unit, "I") {
		case "K", "M", "G":
			meant := m[1] + strings.TrimSuffix(unit, "I") + "iB"
			if _, err := units.ParseSize(meant); err == nil {
				return fmt.Sprintf("did you mean %q?", meant)
			}
		}
	}
	return "want bytes, such as 16MiB"
}

// durationHint is the duration that was probably meant, or an example.
func durationHint(s, example string) string {
	compact := strings.ToLower(strings.ReplaceAll(s, " ", ""))
	number := strings.TrimRight(compact, "abcdefghijklmnopqrstuvwxyz")
	unit := strings.TrimPrefix(compact, number)
	if number != "" && strings.Trim(number, "0123456789") == "" && slices.Contains([]string{"ms", "s", "m", "h", "d"}, unit) {
		if _, err := units.ParseDuration(compact); err != nil {
			return "it is too long: want a year at most, 365d"
		}
	}
	if _, err := strconv.ParseUint(number, 10, 31); err == nil {
		switch unit {
		case "":
			return fmt.Sprintf("did you mean %q? A duration has a unit: ms, s, m, h or d", number+"s")
		case "sec", "secs", "second", "seconds":
			unit = "s"
		case "min", "mins", "minute", "minutes":
			unit = "m"
		case "hr", "hrs", "hour", "hours":
			unit = "h"
		case "day", "days":
			unit = "d"
		}
		if _, err := units.ParseDuration(number + unit); err == nil {
			return fmt.Sprintf("did you mean %q?", number+unit)
		}
	}
	return "want a duration, such as " + example + "; units are ms, s, m, h and d"
}

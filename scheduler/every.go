package scheduler

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// period reads what follows @every, in seconds: a duration as Go writes it,
// with days (d) before the rest. reason says what is wrong, and is "" when
// nothing is.
func period(words []string) (seconds int64, reason string) {
	const wanted = "a duration of whole seconds is wanted, at least 1s, such as 90s, 10m, 1h30m or 1d"
	if len(words) != 1 {
		return 0, fmt.Sprintf("%d words follow it; %s", len(words), wanted)
	}
	text := words[0]
	if strings.ContainsAny(text, "+-") {
		return 0, fmt.Sprintf("%q has a sign; %s", text, wanted)
	}
	d, ok := duration(text)
	switch {
	case !ok:
		return 0, fmt.Sprintf("%q is not a duration; %s", text, wanted)
	case d < time.Second || d%time.Second != 0:
		return 0, fmt.Sprintf("%q is not a whole number of seconds; %s", text, wanted)
	}
	return int64(d / time.Second), ""
}

// duration is time.ParseDuration with days of 24 hours in front.
func duration(text string) (time.Duration, bool) {
	var days time.Duration
	if head, tail, ok := strings.Cut(text, "d"); ok {
		d, err := time.ParseDuration(head + "h")
		if err != nil || strings.Trim(head, "0123456789.") != "" || d > math.MaxInt64/24 {
			return 0, false
		}
		if days = d * 24; tail == "" {
			return days, true
		}
		text = tail
	}
	rest, err := time.ParseDuration(text)
	if err != nil || rest > math.MaxInt64-days {
		return 0, false
	}
	return days + rest, true
}

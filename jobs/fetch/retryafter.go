package fetch

import (
	"net/http"
	"strings"
	"time"
)

// MaxRetryAfter caps what a target may ask us to wait.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads the Retry-After of an answer (RFC 9110, 10.2.3): seconds as
// digits, or one of the three HTTP dates. A date that has passed is 0; a value
// beyond MaxRetryAfter is MaxRetryAfter. ok is false, and the caller's default
// holds, where there is none or it is neither: "-5", "1.5", "soon".
// Of several values the longest wins.
func RetryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	for _, v := range h.Values("Retry-After") {
		if one, valid := retryAfterOne(strings.Trim(v, " \t"), now); valid {
			d, ok = max(d, one), true
		}
	}
	return d, ok
}

func retryAfterOne(v string, now time.Time) (time.Duration, bool) {
	if v == "" {
		return 0, false
	}
	if strings.Trim(v, "0123456789") == "" {
		limit := int64(MaxRetryAfter / time.Second)
		var n int64
		for _, c := range []byte(v) {
			if n = n*10 + int64(c-'0'); n >= limit {
				return MaxRetryAfter, true
			}
		}
		return time.Duration(n) * time.Second, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	// RFC 9110, 5.6.7: a two-digit year that seems more than fifty years ahead
	// is in the past.
	if t.After(now.AddDate(50, 0, 0)) && strings.Contains(v, "-") {
		return 0, true
	}
	if !t.After(now) {
		return 0, true
	}
	if t.After(now.Add(MaxRetryAfter)) {
		return MaxRetryAfter, true
	}
	return t.Sub(now), true
}

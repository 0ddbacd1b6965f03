// Package units reads durations and sizes as people write them.
package units

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	days      = regexp.MustCompile(`^([0-9]{1,6})d(.*)$`)
	sizeText  = regexp.MustCompile(`^([0-9]{1,18})([A-Za-z]*)$`)
	sizeUnits = []struct {
		name  string
		bytes int64
	}{
		{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
	}
)

// ParseDuration reads Go's form of a duration, with d for days of 24 hours in
// front: 90s, 1h30m, 1d, 1d12h. A bare 0 needs no unit.
func ParseDuration(s string) (time.Duration, error) {
	if m := days.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > math.MaxInt64/int64(24*time.Hour) {
			return 0, fmt.Errorf("duration %q is too long", s)
		}
		whole := time.Duration(n) * 24 * time.Hour
		if m[2] == "" {
			return whole, nil
		}
		rest, err := time.ParseDuration(m[2])
		if err != nil || rest < 0 || m[2][0] == '+' || m[2] == "0" {
			return 0, fmt.Errorf("%q is not a duration", s)
		}
		if whole > math.MaxInt64-rest {
			return 0, fmt.Errorf("duration %q is too long", s)
		}
		return whole + rest, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", s)
	}
	return d, nil
}

// FormatDuration is a duration in the shortest form that ParseDuration reads
// back: 24h, 1m30s, 250ms, 0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var errSize = errors.New("not a size")

// ParseSize reads a number of bytes: 512, 64KiB, 16MiB, 1GiB, or the decimal
// KB, MB, GB.
func ParseSize(s string) (int64, error) {
	m := sizeText.FindStringSubmatch(s)
	if m == nil {
		return 0, errSize
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, errSize
	}
	if m[2] == "" {
		return n, nil
	}
	for _, u := range sizeUnits {
		if u.name == m[2] {
			if n > math.MaxInt64/u.bytes {
				return 0, errSize
			}
			return n * u.bytes, nil
		}
	}
	return 0, errSize
}

// FormatSize is a size in the largest unit that leaves a whole number.
func FormatSize(n int64) string {
	for _, u := range sizeUnits {
		if n > 0 && n%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Package spelling finds the name that somebody meant who wrote another.
package spelling

import (
	"strings"
	"unicode/utf8"
)

// Near is the candidate that was probably meant, or "".
func Near(got string, candidates []string) string {
	got = strings.ToLower(got)
	if utf8.RuneCountInString(got) > 64 {
		return ""
	}
	best, bestDistance := "", 1+max(1, utf8.RuneCountInString(got)/3)
	for _, c := range candidates {
		lower := strings.ToLower(c)
		d := distance(got, lower)
		if d > 1 && len(got) >= 3 && (strings.HasPrefix(lower, got) || len(lower) >= 3 && strings.HasPrefix(got, lower)) {
			d = 1
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of slips between two words: a letter more, less or
// other, or two neighbours swapped (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if abs(len(s)-len(t)) > 4 || len(t) > 64 {
		return 99
	}
	var before []int
	last := make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row := make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(t)]
}

func abs(n int) int { return max(n, -n) }

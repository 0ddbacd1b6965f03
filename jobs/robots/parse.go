package robots

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxBytes is how much of a file counts. RFC 9309, 2.5, asks for so much at least.
const MaxBytes = 500 << 10

// Rule is one allow or disallow line.
type Rule struct {
	Allow   bool   `json:"allow,omitempty"`
	Pattern string `json:"pattern"` // normalized
	Line    int    `json:"line"`    // in the file, from 1
}

func (r Rule) String() string {
	if r.Allow {
		return "Allow: " + r.Pattern
	}
	return "Disallow: " + r.Pattern
}

// Rules are a file's, for one product token, the longest pattern first.
type Rules struct {
	Rules []Rule `json:"rules,omitempty"`
	// Agent is the user-agent line that the rules stand under: the token, "*",
	// or "" where the file has none for it.
	Agent string `json:"agent,omitempty"`
	// Delay is the group's Crawl-delay; 0 where it has none that can be read.
	Delay time.Duration `json:"delay,omitempty"`
}

// group is what stands under one name, of all groups of the file that have it.
type group struct {
	named bool
	rules []Rule
	delay time.Duration
}

// Parse reads a file for a product token. Every input is a file.
func Parse(body []byte, token string) Rules {
	if len(body) > MaxBytes {
		body = body[:MaxBytes]
		// What was cut may have said something else.
		body = body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	var ours, all group
	var inOurs, inAll, begun bool
	each(body, func(n int, key, value string) {
		switch strings.ToLower(key) {
		case "user-agent":
			if begun {
				inOurs, inAll, begun = false, false, false
			}
			switch {
			case value == "*" || strings.HasPrefix(value, "* "):
				inAll, all.named = true, true
			case token != "" && strings.EqualFold(leading(value), token):
				inOurs, ours.named = true, true
			}
		case "allow", "disallow":
			begun = true
			r := Rule{Allow: len(key) == len("allow"), Pattern: normalize(value, true), Line: n}
			if r.Pattern == "" || r.Pattern[0] != '/' && r.Pattern[0] != '*' {
				return // it can match no path
			}
			if inOurs {
				ours.rules = append(ours.rules, r)
			}
			if inAll {
				all.rules = append(all.rules, r)
			}
		case "crawl-delay":
			d, ok := delay(value)
			if ok && inOurs {
				ours.delay = max(ours.delay, d)
			}
			if ok && inAll {
				all.delay = max(all.delay, d)
			}
		}
	})
	out := Rules{}
	switch {
	case ours.named:
		out = Rules{Rules: ours.rules, Agent: token, Delay: ours.delay}
	case all.named:
		out = Rules{Rules: all.rules, Agent: "*", Delay: all.delay}
	}
	// The longest decides; of two alike the one that allows.
	slices.SortStableFunc(out.Rules, func(a, b Rule) int {
		if c := cmp.Compare(len(b.Pattern), len(a.Pattern)); c != 0 {
			return c
		}
		return cmp.Compare(rank(a), rank(b))
	})
	return out
}

func rank(r Rule) int {
	if r.Allow {
		return 0
	}
	return 1
}

// each gives the lines that have a key: their number, the key and the value
// without comment and blanks. Lines end with CR, LF or both.
func each(body []byte, f func(n int, key, value string)) {
	for n := 1; len(body) > 0; n++ {
		line, end := body, len(body)
		if i := bytes.IndexAny(body, "\r\n"); i >= 0 {
			line, end = body[:i], i+1
			if body[i] == '\r' && end < len(body) && body[end] == '\n' {
				end++
			}
		}
		body = body[end:]
		line, _, _ = bytes.Cut(line, []byte("#"))
		if key, value, ok := bytes.Cut(line, []byte(":")); ok {
			f(n, string(bytes.Trim(key, " \t")), string(bytes.Trim(value, " \t")))
		}
	}
}

// MaxDelay bounds a Crawl-delay: more is taken for so much.
const MaxDelay = time.Minute

// delay reads a Crawl-delay: seconds, with a fraction or not. No standard has it.
func delay(s string) (time.Duration, bool) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0, false
	}
	return time.Duration(min(n, MaxDelay.Seconds()) * float64(time.Second)), true
}

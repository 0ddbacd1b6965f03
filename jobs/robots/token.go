package robots

import "strings"

// Token is the product token of a User-Agent: what a file's user-agent lines
// are compared with. Of "feeds/1.0 (+https://…)" it is "feeds"; of a browser's
// form, "Mozilla/5.0 (compatible; feeds/1.0; …)", what stands after compatible.
func Token(userAgent string) string {
	t := leading(userAgent)
	if t == "Mozilla" {
		if _, rest, ok := strings.Cut(userAgent, "compatible;"); ok {
			if inner := leading(strings.TrimLeft(rest, " ")); inner != "" {
				return inner
			}
		}
	}
	return t
}

// leading is what stands at the beginning of s as a product token. The RFC
// knows letters, hyphens and underscores; digits are in many names.
func leading(s string) string {
	for i := range len(s) {
		if c := s[i]; c != '-' && c != '_' && !alphanumeric(c) {
			return s[:i]
		}
	}
	return s
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

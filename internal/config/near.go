package config

import (
	"fmt"
	"strings"

	"feedwarden/internal/spelling"
)

// near is the candidate that was probably meant, or "".
func near(got string, candidates []string) string { return spelling.Near(got, candidates) }

// orNear says what would be right: the near one, else all there are.
func orNear(got string, candidates []string) string {
	if n := near(got, candidates); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return oneOf(candidates)
}

// oneOf lists what is allowed, shortened when it is long.
func oneOf(candidates []string) string {
	const most = 12
	if len(candidates) == 1 {
		return "want " + candidates[0]
	}
	if len(candidates) > most {
		return "want one of " + strings.Join(candidates[:most], ", ") + ", …"
	}
	return "want one of " + strings.Join(candidates, ", ")
}

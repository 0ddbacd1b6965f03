package doctor

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Severity says how bad a finding is.
type Severity string

const (
	OK      Severity = "ok"
	Unknown Severity = "unknown" // it could not be checked
	Warning Severity = "warning" // it works, and may not for long
	Broken  Severity = "broken"
)

// Finding is one thing that was looked at.
type Finding struct {
	Check    string   `json:"check"`   // redis.version, queue, pool, …
	Subject  string   `json:"subject"` // which of them; "" where there is one
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Do       string   `json:"do"` // "" where there is nothing to do
}

// Sick says whether something is broken.
func Sick(all []Finding) bool {
	for _, f := range all {
		if f.Severity == Broken {
			return true
		}
	}
	return false
}

// counted is a number of things: 1 job, 2 jobs.
func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// notes collects findings.
type notes struct{ all []Finding }

func (n *notes) add(check, subject string, s Severity, do, format string, args ...any) {
	n.all = append(n.all, Finding{Check: check, Subject: subject, Severity: s, What: fmt.Sprintf(format, args...), Do: do})
}

// failed notes that something could not be read: forbidden is unknown, all else is broken.
func (n *notes) failed(check, subject string, err error) {
	var reply redis.Error
	if errors.As(err, &reply) {
		n.add(check, subject, Unknown, "", "could not check: %v", err)
		return
	}
	n.add(check, subject, Broken, "see that Redis answers", "could not be read: %v", err)
}

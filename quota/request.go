package quota

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Request asks for cost units of a quota.
type Request struct {
	Quota    string
	ID       string // the caller's name for this charge: 1 to 200 printable ASCII bytes
	Cost     int64  // units, 1 to 2^53-1
	Priority Priority
	NoLine   bool   // refused, it takes no place in the line
	Label    string // for whom, as History tells: up to 64 printable ASCII bytes; "" is nobody in particular
}

// Decision is the answer to a Request.
type Decision struct {
	Granted    bool
	ID         string
	Cost       int64         // what was asked; for an ID charged before, what was charged then
	RetryAfter time.Duration // whole milliseconds, rounded up; 0 only when granted
	Position   int64         // place in the line, 1 = next, Interactive before Scheduled; 0 when granted or when it has none
	Windows    []Use         // as they are after this charge
	Reason     string        // of a refusal: ReasonWindow, ReasonLine, ReasonReserve, ReasonBlocked; else ""
	At         time.Time     // by Redis's clock: when it was granted, or the promised instant
}

// Why a charge was refused.
const (
	ReasonWindow  = "window"  // a window has no room for it
	ReasonLine    = "line"    // there is room, but others wait for it
	ReasonReserve = "reserve" // the room that is left is reserved
	ReasonBlocked = "blocked" // the quota is closed for now
)

// Use is what one window counts.
type Use struct {
	Limit    int64
	Per      time.Duration // a calendar's is the length of its present day
	Used     int64
	Calendar string         // "day", or "" for a trailing window
	Location *time.Location // the calendar's zone
}

// Counts says whether the window counts at now what was granted at an instant.
func (u Use) Counts(granted, now time.Time) bool {
	if u.Calendar == "" {
		return now.Before(granted.Add(u.Per))
	}
	from, _ := Day(u.Location, now)
	return !granted.Before(from)
}

// ErrUnknownQuota is returned for a name that no Config has.
var ErrUnknownQuota = errors.New("no such quota")

// ErrCost is returned for a cost that is not a whole number from 1 to 2^53-1.
var ErrCost = errors.New("cost must be a whole number from 1 to 9007199254740991")

// ErrID is returned for a charge ID that is empty, too long or not printable.
var ErrID = errors.New("charge ID must be 1 to 200 printable ASCII bytes")

// ErrLabel is returned for a label that is too long or not printable.
var ErrLabel = errors.New("a charge's label must be at most 64 printable ASCII bytes")

// ErrClock is returned when this process's clock and Redis's are days apart, so
// that the edges of a calendar window cannot be told.
var ErrClock = errors.New("the clocks of this host and of Redis are days apart; set them right")

// ImpossibleError says that a cost can never be granted: it is more than the
// smallest window has for its class.
type ImpossibleError struct {
	Quota string
	Cost  int64
	Limit int64 // the most that one charge of this class can take
}

func (e *ImpossibleError) Error() string {
	return fmt.Sprintf("cost %d of quota %q can never be granted: one charge can take %d at most", e.Cost, e.Quota, e.Limit)
}

func isImpossible(err error) bool {
	if err == nil {
		return false
	}
	var never *ImpossibleError
	return errors.As(err, &never)
}

// ParseCost reads a cost written in decimal digits alone. All else (signs,
// blanks, hex, exponents, NaN, 2^53 and more) is ErrCost.
func ParseCost(s string) (int64, error) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, fmt.Errorf("quota: cost %q: %w", s, ErrCost)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || !validCost(n) {
		return 0, fmt.Errorf("quota: cost %q: %w", s, ErrCost)
	}
	return n, nil
}

func validCost(n int64) bool { return n >= 1 && n < 1<<53 }

func validID(id string) bool { return id != "" && len(id) <= 200 && printable(id) }

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// check is all that can be said of a request without Redis.
func (r Request) check(c Config) error {
	switch {
	case !validID(r.ID):
		return ErrID
	case len(r.Label) > 64 || !printable(r.Label):
		return ErrLabel
	case !validCost(r.Cost):
		return fmt.Errorf("cost %d: %w", r.Cost, ErrCost)
	case r.Priority != Scheduled && r.Priority != Interactive:
		return fmt.Errorf("priority %d: must be Scheduled or Interactive", int(r.Priority))
	case r.Cost > c.ceiling(r.Priority):
		return &ImpossibleError{Quota: c.Name, Cost: r.Cost, Limit: c.ceiling(r.Priority)}
	}
	return nil
}

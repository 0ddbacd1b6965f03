package quota

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Window is one limit: so many units in any stretch of a length, or in a day.
type Window struct {
	Limit int64         // units, 1 to MaxLimit
	Per   time.Duration // length of a trailing window, whole microseconds; 0 with Calendar

	Calendar string         // "day" counts from midnight to midnight instead; "" is a trailing window
	Location *time.Location // the calendar's zone
}

// Config is one quota.
type Config struct {
	Name    string
	Windows []Window
	Reserve int64         // the last so many units of each window larger than it are for Interactive charges alone
	Grace   time.Duration // how long a place is held after its promise; 0 is 30 s
}

// MaxLimit is the largest limit of a window.
const MaxLimit = 1_000_000_000_000

const (
	defaultGrace = 30 * time.Second
	minKeep      = time.Hour
	margin       = time.Minute         // the log is kept so much longer than need be: a clock may step back
	rest         = 30 * 24 * time.Hour // counters of a quota at rest are kept so long
	maxPer       = 10 * 366 * 24 * time.Hour
	calendarDay  = "day"
	// A day with every change of a zone in it, the dropped date of one that moved over the date line among them.
	longestDay = 50 * time.Hour
)

// Priority is a charge's class. Each class has a line of its own.
type Priority int

const (
	// Scheduled is work that a clock asked for.
	Scheduled Priority = iota
	// Interactive is work that somebody waits for: it goes first, and may take the reserve.
	Interactive
)

// String is the class's name: "scheduled" or "interactive".
func (p Priority) String() string {
	switch p {
	case Scheduled:
		return "scheduled"
	case Interactive:
		return "interactive"
	}
	return fmt.Sprintf("Priority(%d)", int(p))
}

// ceiling is the most that one charge of a class can ever take.
func (c Config) ceiling(p Priority) int64 {
	least := int64(MaxLimit)
	for _, w := range c.Windows {
		least = min(least, w.Limit-c.held(w, p))
	}
	return least
}

// held is how many units of a window are not for a class. The reserve is kept
// in the windows that are larger than it: 500 kept of 10,000 a day say nothing
// of a limit of 300 a minute.
func (c Config) held(w Window, p Priority) int64 {
	if p == Scheduled && c.Reserve < w.Limit {
		return c.Reserve
	}
	return 0
}

// keep is how long the log and the charge IDs are kept: the longest window, and an hour at least.
func (c Config) keep() time.Duration {
	k := minKeep
	for _, w := range c.Windows {
		if w.Calendar != "" {
			k = max(k, longestDay)
		}
		k = max(k, w.Per)
	}
	return k
}

func (c Config) withDefaults() Config {
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	c.Windows = append([]Window(nil), c.Windows...)
	return c
}

// faults are all that is wrong with a quota, each with what would be right.
func (c Config) faults() error {
	var all []error
	fault := func(format string, args ...any) {
		all = append(all, fmt.Errorf("quota: config %q: "+format, append([]any{c.Name}, args...)...))
	}
	if c.Name == "" {
		fault("no name; give one of letters, digits and dashes")
	} else if len(c.Name) > 100 || strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == '{' || r == '}' || r == 0x7f }) {
		fault("the name has a blank, a brace or more than 100 bytes; use letters, digits and dashes")
	}
	if len(c.Windows) == 0 {
		fault("no window; give at least one limit and its length")
	}
	most := int64(0)
	for i, w := range c.Windows {
		if w.Limit < 1 || w.Limit > MaxLimit {
			fault("window %d: limit %d; it must be from 1 to %d", i+1, w.Limit, int64(MaxLimit))
			continue
		}
		most = max(most, w.Limit)
		switch {
		case w.Calendar == "" && (w.Per <= 0 || w.Per > maxPer || w.Per%time.Microsecond != 0):
			fault("window %d: length %s; it must be whole microseconds, more than 0 and at most ten years", i+1, w.Per)
		case w.Calendar == "" && w.Location != nil:
			fault("window %d: a zone without a calendar; set Calendar to %q, or take the zone away", i+1, calendarDay)
		case w.Calendar != "" && w.Calendar != calendarDay:
			fault("window %d: calendar %q; only %q is known", i+1, w.Calendar, calendarDay)
		case w.Calendar != "" && w.Per != 0:
			fault("window %d: both a calendar and a length; give one of them", i+1)
		case w.Calendar != "" && w.Location == nil:
			fault("window %d: a calendar without a zone; give its Location", i+1)
		}
	}
	if c.Reserve < 0 || (most > 0 && c.Reserve >= most) {
		fault("reserve %d; it must be 0 or more, and less than the largest limit", c.Reserve)
	}
	if c.Grace < 0 || c.Grace > maxPer {
		fault("grace %s; it must be from 0 (which is 30s) to ten years", c.Grace)
	}
	return errors.Join(all...)
}

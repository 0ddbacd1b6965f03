package scheduler

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the same zones on every host, also where no zoneinfo is installed
	"unicode"
)

// ErrZone is wrapped by every error about a time zone's name.
var ErrZone = errors.New("no such time zone")

var zones sync.Map // name → *time.Location; only names that loaded, so it is bounded by the database

// LoadZone finds a zone of the tz database by its name, such as
// "Asia/Dhaka"; "" is UTC. A name whose meaning differs from host to host
// ("Local", "localtime") is refused: replicas have to agree.
func LoadZone(name string) (*time.Location, error) {
	switch strings.ToLower(name) {
	case "", "utc":
		if name == "" || name == "UTC" {
			return time.UTC, nil
		}
	case "local", "localtime":
		return nil, fmt.Errorf("%w: %q differs from host to host; name the zone, such as Asia/Dhaka", ErrZone, name)
	}
	if loc, ok := loadZone(name); ok {
		return loc, nil
	}
	if near := NearZone(name); near != "" {
		return nil, fmt.Errorf("%w: %q; did you mean %q?", ErrZone, name, near)
	}
	return nil, fmt.Errorf("%w: %q; a name of the tz database is wanted, such as Asia/Dhaka or UTC", ErrZone, name)
}

// loadZone finds a zone by what the database itself calls it. Some hosts have
// more files beside it, such as right/ with its leap seconds, and find one by
// another way to write its path.
func loadZone(name string) (*time.Location, bool) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), true
	}
	top, _, _ := strings.Cut(name, "/")
	if name != path.Clean(name) || slices.Contains([]string{"posix", "right", "posixrules"}, top) {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, false
	}
	zones.Store(name, loc)
	return loc, true
}

// NearZone is the zone that was probably meant by a name that is none, or "": the
// right capitals, or the underscore that a blank stands for.
func NearZone(name string) string {
	if len(name) > 64 {
		return ""
	}
	var b strings.Builder
	first := true
	for _, r := range strings.ReplaceAll(strings.ToLower(name), " ", "_") {
		if first {
			r = unicode.ToUpper(r)
		}
		first = r == '/' || r == '_'
		b.WriteRune(r)
	}
	area, rest, _ := strings.Cut(b.String(), "/")
	for _, candidate := range []string{b.String(), strings.ToUpper(name), strings.ToUpper(area) + "/" + rest} {
		if _, ok := loadZone(candidate); ok && candidate != "" && candidate != name {
			return candidate
		}
	}
	return ""
}

// The range in which instants are answered: what RFC 3339 can write.
const (
	minUnix = -62135596800 // 0001-01-01T00:00:00Z
	maxUnix = 253402300799 // 9999-12-31T23:59:59Z
)

// forever is beyond every instant that a search can come to.
const forever = 1 << 60

// reach is more than any two clocks of the earth differ, in seconds. A date
// line that moved, with local mean time, comes to about 31 hours.
const reach = 48 * 3600

// span is a stretch of time in which a zone keeps one offset from UTC:
// instants start ≤ u < end, in Unix seconds. A wall clock there reads
// u + offset, called civil seconds below: the Unix seconds of that reading
// if it were UTC.
type span struct{ start, end, offset int64 }

func spanAt(loc *time.Location, u int64) span {
	t := time.Unix(u, 0).In(loc)
	_, offset := t.Zone()
	sp := span{start: -forever, end: forever, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		sp.start = start.Unix()
	}
	if !end.IsZero() {
		sp.end = end.Unix()
	}
	// Where a zone follows its rule for ever, Go's bounds also fall on the ends of UTC years, and the one of a
	// leap year comes a day too early. The offset holds through that day.
	if sp.end <= u {
		sp.end = u - floorMod(u, day) + day
	}
	return sp
}

// reached is the latest reading that the zone's clock has shown up to and
// including the instant u. It differs from the reading at u for as long as a
// clock that was put back shows times for the second time.
func reached(loc *time.Location, u int64) int64 {
	sp := spanAt(loc, u)
	most := u + sp.offset
	for sp.start > u-reach {
		sp = spanAt(loc, sp.start-1)
		most = max(most, sp.end-1+sp.offset)
	}
	return most
}

// arrival is the first instant at which the zone's clock reads civil or
// later: the time itself, its first showing where it is shown twice, and the
// end of the gap where it is never shown.
func arrival(loc *time.Location, civil int64) int64 {
	u := civil - reach
	for {
		sp := spanAt(loc, u)
		at := max(u, civil-sp.offset)
		if at < sp.end {
			return at
		}
		u = sp.end
	}
}

// skipped tells whether a whole date, given by its first civil second, was
// never on the zone's calendar.
func skipped(loc *time.Location, midnight int64) bool {
	for u := midnight - reach; u < midnight+day+reach; {
		sp := spanAt(loc, u)
		if max(u, sp.start)+sp.offset < midnight+day && sp.end+sp.offset > midnight {
			return false
		}
		u = sp.end
	}
	return true
}

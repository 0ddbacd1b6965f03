package scheduler

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// mostSteps bounds the months and zone spans of one search: 401 years of
// twelve months, and of at most five spans with a month begun in each.
const mostSteps = 401*12 + 401*5*2

// FuzzParse reads anything. What is read must fire, in order, there and back,
// within bounded steps; what is refused must say so with our own error.
func FuzzParse(f *testing.F) {
	for row := range strings.SplitSeq(strings.TrimSpace(expressions), "\n") {
		cols := strings.Split(row, "\t")
		f.Add(strings.ReplaceAll(cols[0], `\t`, "\t"), cols[1], int64(1709251200))
	}
	f.Add("*/10 2 8-14 3 */7", "America/New_York", int64(0))
	f.Add("0 0 29 2 */7", "America/New_York", int64(4102444800))
	f.Add("0 0 L,30 2,4 fri-mon/2", "Antarctica/Troll", int64(-2e9))
	f.Add("@every 1d12h", "Asia/Kathmandu", int64(1<<60))
	f.Fuzz(func(t *testing.T, expr, zone string, u int64) {
		loc, err := LoadZone(zone)
		if err != nil {
			if !errors.Is(err, ErrZone) {
				t.Fatalf("zone %q: %v", zone, err)
			}
			loc = time.UTC
		}
		s, err := Parse(expr, loc)
		if err != nil {
			var e *ExpressionError
			if !errors.As(err, &e) || e.Reason == "" || len(err.Error()) > 8*maxExpression {
				t.Fatalf("%q: a poor error: %v", expr, err)
			}
			return
		}
		again, err := Parse(s.String(), s.Location())
		if err != nil || again.fields != s.fields || again.every != s.every {
			t.Fatalf("%q reads as %q, which does not read back: %v", expr, s, err)
		}
		for _, low := range []int64{u, tail, 1301644800, minUnix, maxUnix} {
			at, steps, ok := s.next(low)
			if steps > mostSteps {
				t.Fatalf("%q from %d: %d steps", expr, low, steps)
			}
			if !ok {
				continue
			}
			if at < low {
				t.Fatalf("%q from %d: %d is before it", expr, low, at)
			}
			back, steps, ok := s.previous(at)
			if !ok || back != at || steps > mostSteps {
				t.Fatalf("%q: after %d comes %d, before which %d, %v in %d steps", expr, low, at, back, ok, steps)
			}
			if back, _, ok := s.previous(at - 1); ok && back >= low {
				t.Fatalf("%q: next from %d passed over %d", expr, low, back)
			}
		}
	})
}

// TestStepsAreBounded takes the searches that look farthest.
func TestStepsAreBounded(t *testing.T) {
	for _, zone := range []string{"UTC", "America/New_York", "Africa/Casablanca", "Pacific/Apia"} {
		loc, err := LoadZone(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, expr := range []string{"0 0 31 2 *", "* * 31 2 *", "*/10 2 8-14 3 */7", "0 0 29 2 */7", "0 0 29 2 */6"} {
			s := &Schedule{loc: loc}
			if _, reason := s.read(strings.Fields(expr)); reason != "" {
				t.Fatal(reason)
			}
			for _, low := range []int64{minUnix, 0, tail, maxUnix - 100} {
				if _, steps, _ := s.next(low); steps > mostSteps {
					t.Errorf("%q in %s from %d: %d steps", expr, zone, low, steps)
				}
				if _, steps, _ := s.previous(low); steps > mostSteps {
					t.Errorf("%q in %s back from %d: %d steps", expr, zone, low, steps)
				}
			}
		}
	}
}

func TestEveryZoneLoads(t *testing.T) {
	for name := range strings.FieldsSeq(zoneNames) {
		if _, err := LoadZone(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"Local", "LOCAL", "localtime", "Asia", "Asia/", "/Asia/Tokyo", "zone.tab", "asia\x00", "Mars/Base", "+05:30", "utc+3"} {
		if loc, err := LoadZone(name); !errors.Is(err, ErrZone) {
			t.Errorf("%q: %v, %v", name, loc, err)
		}
	}
}

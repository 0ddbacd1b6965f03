package scheduler

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

//go:embed testdata/zones.txt
var zoneNames string

// reading is one UTC minute and what a wall clock shows in it.
type reading struct {
	u, civil int64 // Unix seconds; the reading's own, as if it were UTC
	hour     int
	minute   int
	date     date
}

type date struct {
	year, day int
	month     time.Month
	weekday   time.Weekday
}

// readings walks the minutes of from ≤ u < to.
func readings(loc *time.Location, from, to int64) []reading {
	var out []reading
	for u := from - from%60; u < to; u += 60 {
		out = append(out, read(time.Unix(u, 0).In(loc)))
	}
	return out
}

func read(t time.Time) reading {
	y, m, d := t.Date()
	_, offset := t.Zone()
	return reading{u: t.Unix(), civil: t.Unix() + int64(offset), hour: t.Hour(), minute: t.Minute(), date: date{y, d, m, t.Weekday()}}
}

// sets is an expression as the test made it: its text, and what it means.
type sets struct {
	text                                   string
	minutes, hours, days, months, weekdays map[int]bool
	lastDay, both, follows                 bool
}

func (s *sets) onDate(d date) bool {
	lastDay := d.day == time.Date(d.year, d.month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	byDay, byWeekday := s.days[d.day] || s.lastDay && lastDay, s.weekdays[int(d.weekday)]
	return s.months[int(d.month)] && (byDay && byWeekday || !s.both && (byDay || byWeekday))
}

// slow answers by the rule's words: walk the minutes, read the clock. What
// follows the clock ticks whenever the reading matches. What is fixed ticks
// when the clock first passes the time, by ticking or by a jump, unless its
// whole date is never shown.
func (s *sets) slow(walk []reading, from, to int64) []int64 {
	var ticks []int64
	shown := map[date]bool{}
	for i, r := range walk {
		if i == 0 || r.date != walk[i-1].date {
			shown[r.date] = true
		}
	}
	passed := walk[0].civil
	for _, r := range walk {
		hit := false
		if s.follows {
			hit = s.minutes[r.minute] && s.hours[r.hour] && s.onDate(r.date)
		} else {
			for c := passed + 60; c <= r.civil; c += 60 {
				at := r
				if c != r.civil {
					at = read(time.Unix(c, 0).UTC())
				}
				if s.minutes[at.minute] && s.hours[at.hour] && s.onDate(at.date) && shown[at.date] {
					hit = true
				}
			}
		}
		passed = max(passed, r.civil)
		if hit && r.u >= from && r.u < to {
			ticks = append(ticks, r.u)
		}
	}
	return ticks
}

// changes finds the instants at which a zone's offset changes, 2000 to 2040.
var changes = func() func(name string) []int64 {
	var mu sync.Mutex
	known := map[string][]int64{}
	return func(name string) []int64 {
		mu.Lock()
		defer mu.Unlock()
		if c, ok := known[name]; ok {
			return c
		}
		loc, err := LoadZone(name)
		if err != nil {
			panic(err)
		}
		offset := func(u int64) int { _, o := time.Unix(u, 0).In(loc).Zone(); return o }
		found := []int64{}
		before := offset(946684800)
		for u := int64(946684800); u < 2240524800; u += 3 * day {
			low, high := u, u+3*day
			after := offset(high)
			if after == before {
				continue
			}
			was := before
			before = after
			for high-low > 1 {
				if mid := (low + high) / 2; offset(mid) == was {
					low = mid
				} else {
					high = mid
				}
			}
			found = append(found, high)
		}
		known[name] = found
		return found
	}
}()

type alphabet struct {
	min, max int
	names    []string
	busy     int // how often of ten the field is *
}

var alphabets = []alphabet{
	{max: 59, busy: 2},
	{max: 23, busy: 4},
	{min: 1, max: 31, busy: 7},
	{min: 1, max: 12, busy: 8, names: strings.Fields("- jan FEB mar APR may JUN jul Aug Sep oct NOV dec")},
	{max: 6, busy: 7, names: strings.Fields("sun MON tue WED thu Fri SAT")},
}

// drawField makes one field and its set. edge are values near the zone's
// change, so that times fall into gaps and overlaps often.
func drawField(t *rapid.T, a alphabet, edge []int) (text string, set map[int]bool) {
	set = map[int]bool{}
	fill := func(low, high, step int) {
		for v := low; v <= high; v += step {
			set[v] = true
		}
	}
	name := func(v int) string {
		if a.names != nil && rapid.Bool().Draw(t, "named") {
			return a.names[v]
		}
		return fmt.Sprint(v)
	}
	value := func() int {
		if len(edge) > 0 && rapid.Bool().Draw(t, "at the edge") {
			return rapid.SampledFrom(edge).Draw(t, "edge")
		}
		return rapid.IntRange(a.min, a.max).Draw(t, "value")
	}
	if rapid.IntRange(1, 10).Draw(t, "busy") <= a.busy {
		fill(a.min, a.max, 1)
		return rapid.SampledFrom([]string{"*", "?"}).Draw(t, "star"), set
	}
	var elements []string
	for range rapid.IntRange(1, 3).Draw(t, "elements") {
		step := rapid.IntRange(1, a.max+2).Draw(t, "step")
		switch low := value(); rapid.IntRange(0, 5).Draw(t, "form") {
		case 0:
			fill(a.min, a.max, step)
			elements = append(elements, fmt.Sprintf("*/%d", step))
		case 1:
			high := rapid.IntRange(low, a.max).Draw(t, "high")
			fill(low, high, 1)
			elements = append(elements, name(low)+"-"+name(high))
		case 2:
			high := rapid.IntRange(low, a.max).Draw(t, "high")
			fill(low, high, step)
			elements = append(elements, fmt.Sprintf("%s-%s/%d", name(low), name(high), step))
		case 3:
			fill(low, a.max, step)
			elements = append(elements, fmt.Sprintf("%s/%d", name(low), step))
		default:
			fill(low, low, 1)
			elements = append(elements, name(low))
		}
	}
	return strings.Join(elements, ","), set
}

func drawExpression(t *rapid.T, near []reading) *sets {
	var hours, minutes, days []int
	for _, r := range near {
		hours, minutes, days = append(hours, r.hour), append(minutes, r.minute, (r.minute+59)%60), append(days, r.date.day)
	}
	s := &sets{}
	var texts [5]string
	texts[0], s.minutes = drawField(t, alphabets[0], minutes)
	texts[1], s.hours = drawField(t, alphabets[1], hours)
	texts[2], s.days = drawField(t, alphabets[2], days)
	texts[3], s.months = drawField(t, alphabets[3], nil)
	texts[4], s.weekdays = drawField(t, alphabets[4], nil)
	star := func(i int) bool { return strings.HasPrefix(texts[i], "*") || strings.HasPrefix(texts[i], "?") }
	if rapid.IntRange(0, 9).Draw(t, "last day") == 0 {
		texts[2], s.lastDay = texts[2]+",L", true
	}
	s.both, s.follows = star(2) || star(4), star(0) || star(1)
	s.text = strings.Join(texts[:], " ")
	return s
}

// compare holds Next and Prev against the slow answer over from ≤ t < to.
func compare(t *rapid.T, e *sets, loc *time.Location, walk []reading, from, to int64) {
	s, err := Parse(e.text, loc)
	if err != nil {
		if strings.Contains(err.Error(), "never fires") && len(e.slow(walk, from, to)) == 0 {
			return
		}
		t.Fatal(err)
	}
	want := e.slow(walk, from, to)
	got, back := []int64{}, []int64{}
	for at := time.Unix(from, 0).Add(-time.Nanosecond); ; {
		next, ok := s.Next(at)
		if !ok || next.Unix() >= to {
			break
		}
		got, at = append(got, next.Unix()), next
	}
	for at := time.Unix(to, 0); ; {
		previous, ok := s.Prev(at)
		if !ok || previous.Unix() < from {
			break
		}
		back, at = append(back, previous.Unix()), previous
	}
	slices.Reverse(back)
	for name, ticks := range map[string][]int64{"Next": got, "Prev": back} {
		if !slices.Equal(ticks, want) {
			t.Fatalf("%s of %q in %s, %v to %v\ngot  %v\nwant %v", name, e.text, loc,
				time.Unix(from, 0).In(loc), time.Unix(to, 0).In(loc), written(ticks, loc), written(want, loc))
		}
	}
}

// probe asks at instants that are no ticks: in the middle of an overlap, say.
func probe(t *rapid.T, e *sets, loc *time.Location, walk []reading, from, to, centre int64) {
	s, err := Parse(e.text, loc)
	if err != nil {
		return
	}
	ticks := e.slow(walk, from, to)
	for range 8 {
		at := time.Unix(max(from, min(to-1, centre+rapid.Int64Range(-3*3600, 3*3600).Draw(t, "from the change"))), rapid.SampledFrom([]int64{0, 1}).Draw(t, "ns"))
		i := 0
		for i < len(ticks) && !time.Unix(ticks[i], 0).After(at) {
			i++
		}
		if i < len(ticks) {
			if next, ok := s.Next(at); !ok || next.Unix() != ticks[i] {
				t.Fatalf("%q after %v: got %v, want %v", e.text, at.In(loc), next, time.Unix(ticks[i], 0).In(loc))
			}
		}
		if i > 0 && time.Unix(ticks[i-1], 0).Equal(at) {
			i--
		}
		if i > 0 {
			if previous, ok := s.Prev(at); !ok || previous.Unix() != ticks[i-1] {
				t.Fatalf("%q before %v: got %v, want %v", e.text, at.In(loc), previous, time.Unix(ticks[i-1], 0).In(loc))
			}
		}
	}
}

func written(ticks []int64, loc *time.Location) []string {
	var out []string
	for _, u := range ticks[:min(len(ticks), 20)] {
		out = append(out, time.Unix(u, 0).In(loc).Format(time.RFC3339))
	}
	return out
}

// TestOracleAroundChanges compares Next and Prev with the slow answer in
// every zone of the database, some days around a change of its offset.
func TestOracleAroundChanges(t *testing.T) {
	t.Parallel()
	names := strings.Fields(zoneNames)
	turn := 0
	rapid.Check(t, func(t *rapid.T) {
		// A run of the property takes a few zones, so that a hundred runs meet every one.
		for range len(names)/100 + 1 {
			name := names[turn%len(names)]
			turn++
			aroundChange(t, name)
		}
	})
}

func aroundChange(t *rapid.T, name string) {
	loc, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	centre := rapid.Int64Range(946684800, 2208988800).Draw(t, "instant") / 60 * 60
	if c := changes(name); len(c) > 0 {
		centre = rapid.SampledFrom(c).Draw(t, "change")
	}
	from, to := centre-30*3600, centre+30*3600
	walk := readings(loc, from-30*3600, to+30*3600)
	near := []reading{read(time.Unix(centre-60, 0).In(loc)), read(time.Unix(centre, 0).In(loc))}
	for range 2 {
		e := drawExpression(t, near)
		compare(t, e, loc, walk, from, to)
		probe(t, e, loc, walk, from, to, centre)
	}
}

// TestOracleFarDates compares sparse expressions, at noon, with a walk over
// the dates of up to 120 years.
func TestOracleFarDates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpression(t, nil)
		fields := strings.Fields(e.text)
		e.text = "0 12 " + strings.Join(fields[2:], " ")
		year := rapid.IntRange(1900, 2150).Draw(t, "year")
		from := time.Date(year, time.January, 1, 12, 0, 0, 0, time.UTC)
		want, found := time.Time{}, false
		for d := from.AddDate(0, 0, 1); d.Year() < year+120 && !found; d = d.AddDate(0, 0, 1) {
			want, found = d, e.onDate(date{d.Year(), d.Day(), d.Month(), d.Weekday()})
		}
		s, err := Parse(e.text, nil)
		if err != nil {
			if found {
				t.Fatal(err)
			}
			return
		}
		if got, ok := s.Next(from); !ok || found && !got.Equal(want) || !found && got.Year() < year+120 {
			t.Fatalf("%q after %v: got %v, %v; want %v, %v", e.text, from, got, ok, want, found)
		}
	})
}

// TestOracleSkippedDates walks the weeks around dates that zones left out or
// had twice.
func TestOracleSkippedDates(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{
		"Pacific/Apia": "2011-12-30T10:00:00Z", "Pacific/Fakaofo": "2011-12-30T11:00:00Z",
		"Pacific/Kwajalein": "1993-08-21T12:00:00Z", "Pacific/Kiritimati": "1994-12-31T10:40:00Z",
		"Pacific/Kanton": "1994-12-31T11:00:00Z",
	} {
		centre, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		loc, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		from, to := centre.Unix()-3*day, centre.Unix()+3*day
		walk := readings(loc, from-2*day, to+2*day)
		rapid.Check(t, func(t *rapid.T) {
			compare(t, drawExpression(t, walk[:1]), loc, walk, from, to)
		})
	}
}

package scheduler

import (
	_ "embed"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/expressions.tsv
var expressions string

// TestExpressions holds every row of the table: expression, zone, instant,
// and the three instants that follow, or ERR.
func TestExpressions(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(expressions), "\n")[1:]
	for _, row := range rows {
		cols := strings.Split(row, "\t")
		expr := strings.NewReplacer(`\t`, "\t", `\ufeff`, "\ufeff", `\n`, "\n", `\u00a0`, "\u00a0").Replace(cols[0])
		t.Run(cols[0]+" in "+cols[1]+" from "+cols[2], func(t *testing.T) {
			from := instant(t, cols[2])
			got, err := NextInstants(expr, cols[1], from, len(strings.Fields(cols[3])))
			if cols[3] == "ERR" {
				var e *ExpressionError
				if !errors.As(err, &e) {
					t.Fatalf("got %v, %v; want an *ExpressionError", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Fields(cols[3])
			if !slices.Equal(got, want) {
				t.Fatalf("got  %v\nwant %v", got, want)
			}
			backAgain(t, expr, cols[1], from, got)
		})
	}
}

// backAgain walks got with Prev and Between.
func backAgain(t *testing.T, expr, zone string, from time.Time, got []string) {
	t.Helper()
	loc, err := LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(expr, loc)
	if err != nil {
		t.Fatal(err)
	}
	end := instant(t, got[len(got)-1]).Add(time.Nanosecond)
	at := end
	for i := len(got) - 1; i >= 0; i-- {
		var ok bool
		if at, ok = s.Prev(at); !ok || at.Format(time.RFC3339) != got[i] {
			t.Fatalf("Prev gives %v, %v; want %s", at, ok, got[i])
		}
	}
	if p, ok := s.Prev(at); ok && p.After(from) {
		t.Fatalf("Prev finds %v, which Next passed over", p)
	}
	var between []string
	s.Between(from.Add(time.Nanosecond), end, func(at time.Time) bool {
		between = append(between, at.Format(time.RFC3339))
		return true
	})
	if !slices.Equal(between, got) {
		t.Fatalf("Between gives %v; want %v", between, got)
	}
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ expr, says string }{
		{"", "five fields"},
		{" \t ", "five fields"},
		{"* * * *", "4 fields"},
		{"0 * * * * *", "6 fields"},
		{"0 0 * * * Asia/Tokyo", "in front as TZ=ZONE"},
		{",1 * * * *", "empty list element"},
		{"1, * * * *", "empty list element"},
		{"1,,2 * * * *", "empty list element"},
		{", * * * * *", "6 fields"},
		{", * * * *", "empty list element"},
		{"-5 * * * *", "not understood"},
		{"?-5 * * * *", "not understood"},
		{"5- * * * *", "not understood"},
		{"1-2-3 * * * *", "not understood"},
		{"1-+3 * * * *", "not understood"},
		{"** * * * *", "not understood"},
		{"*5 * * * *", "not understood"},
		{"1/2/3 * * * *", "step"},
		{"*/0 * * * *", "step"},
		{"*/ * * * *", "step"},
		{"*/-5 * * * *", "step"},
		{"*/+5 * * * *", "step"},
		{"/5 * * * *", "not understood"},
		{"1.5 * * * *", "not understood"},
		{"0x1 * * * *", "not understood"},
		{"1_0 * * * *", "not understood"},
		{"99999999999999999999 * * * *", "not understood"},
		{"60 * * * *", "0 to 59"},
		{"* 24 * * *", "0 to 23"},
		{"* * 0 * *", "1 to 31"},
		{"* * 32 * *", "1 to 31"},
		{"* * * 0 *", "1 to 12"},
		{"* * * 13 *", "1 to 12"},
		{"* * * * 8", "0 to 7"},
		{"jan * * * *", "not understood"},
		{"* * mon * *", "not understood"},
		{"* * * mon *", "not understood"},
		{"* * * January *", "not understood"},
		{"* * * * moo", "not understood"},
		{"50-10 * * * *", "50-59,0-10"},
		{"* 22-2 * * *", "22-23,0-2"},
		{"* * 28-3 * *", "28-31,1-3"},
		{"* * * nov-feb *", "11-12,1-2"},
		{"0 0 LW * *", "not understood"},
		{"0 0 L-3 * *", "not understood"},
		{"0 0 1-L * *", "not understood"},
		{"0 0 L/2 * *", "not understood"},
		{"0 0 15W * *", "not understood"},
		{"0 0 * * L", "not understood"},
		{"0 0 * * 5L", "not understood"},
		{"0 0 * * 5#3", "not understood"},
		{"L * * * *", "not understood"},
		{"H * * * *", "not understood"},
		{"0 0 30 2 *", "never fires"},
		{"0 0 31 2,4,6,9,11 *", "never fires"},
		{"0 0 30,31 2 */2", "never fires"},
		{"0\u00a00 * * *", "U+00A0"},
		{"0\u20070 * * *", "U+2007"},
		{"0 0 * * *\u3000", "U+3000"},
		{"0\x000 * * *", "U+0000"},
		{"0 0 * * \xff", "U+FFFD"},
		{"\ufeff@daily", "byte order mark"},
		{"@", "@every"},
		{"@daily 1", "@every"},
		{"@DAILY", "@every"},
		{"@every", "0 words"},
		{"@every1h", "@every"},
		{"@every 1h 30m", "2 words"},
		{"@every 1", "not a duration"},
		{"@every 1w", "not a duration"},
		{"@every 1d1d", "not a duration"},
		{"@every d", "not a duration"},
		{"@every 0", "whole number of seconds"},
		{"@every 0.5s", "whole number of seconds"},
		{"@every 999ms", "whole number of seconds"},
		{"@every 1500ms", "whole number of seconds"},
		{"@every -1h", "sign"},
		{"@every +1h", "sign"},
		{"@every 1d-1h", "sign"},
		{"@every 999999999999d", "not a duration"},
		{"@every 106751d24h", "not a duration"},
		{"TZ= 0 0 * * *", "empty"},
		{"TZ= Asia/Tokyo 0 0 * * *", "empty"},
		{"CRON_TZ= @daily", "empty"},
		{"TZ=Asia/Atlantis 0 0 * * *", "no such time zone"},
		{"TZ=Local 0 0 * * *", "differs from host to host"},
		{"TZ=../../etc/passwd 0 0 * * *", "no such time zone"},
		{"TZ=UTC TZ=UTC 0 0 * * *", "twice"},
		{"tz=UTC 0 0 * * *", "6 fields"},
		{"TZ = UTC 0 0 * * *", "8 fields"},
		{"0 0 * * * TZ=UTC", "6 fields"},
		{strings.Repeat("0,", 600) + "0 * * * *", "bytes"},
		// Always in the gap of the second Sunday of March, and it follows the clock.
		{"TZ=America/New_York */10 2 8-14 3 */7", "never fires"},
	} {
		s, err := Parse(c.expr, nil)
		var e *ExpressionError
		if !errors.As(err, &e) {
			t.Errorf("%q: got %v, %v; want an *ExpressionError", c.expr, s, err)
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: the error says %q, not %q", c.expr, err, c.says)
		}
		if never := strings.Contains(c.says, "never"); never != errors.Is(err, ErrNeverFires) {
			t.Errorf("%q: errors.Is(ErrNeverFires) is %v", c.expr, !never)
		}
	}
}

// TestSame holds pairs of expressions that mean the same.
func TestSame(t *testing.T) {
	for _, c := range [][2]string{
		{"? ? ? ? ?", "* * * * *"},
		{"0 0 ? * 1", "0 0 * * 1"},
		{"  0\t0  * *\v*\r\n", "0 0 * * *"},
		{"\tTZ=UTC \t@daily ", "0 0 * * *"},
		{"@midnight", "@daily"},
		{"@annually", "@yearly"},
		{"@hourly", "0 * * * *"},
		{"@weekly", "0 0 * * SUN"},
		{"@monthly", "0 0 1 * *"},
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 * * 5-7", "0 0 * * 0,5,6"},
		{"0 0 * * 0-7", "0 0 * * 0-6"},
		{"0 0 * * 7-2", "0 0 * * 0-2"},
		{"0 0 * * 7-7", "0 0 * * 0"},
		{"0 0 * * 1-7/2", "0 0 * * 0,1,3,5"},
		{"0 0 * * 7/2", "0 0 * * 0,2,4,6"},
		{"0 0 * * FRI-MON", "0 0 * * 5,6,0,1"},
		{"0 0 * * fri-mon/2", "0 0 * * 5,0"},
		{"0 0 * * Sat-Sun", "0 0 * * 6,7"},
		{"0 0 * * mon-SUN", "0 0 * * 0-6"},
		{"0 0 * * 2/2", "0 0 * * 2,4,6"},
		{"0 0 * DEC,jan Tue", "0 0 * 12,1 2"},
		{"05 00 * * *", "5 0 * * *"},
		{"*/100 * * * *", "0 * * * *"},
		{"3-59/15,7 * * * *", "3,7,18,33,48 * * * *"},
		{"50/5 * * * *", "50,55 * * * *"},
		{"0 0 l * *", "0 0 L * *"},
		{"0 0 L 4 *", "0 0 30 4 *"},
		{"0 0 L,15 6,9 *", "0 0 15,30 6,9 *"},
		{"@every 1d", "0 0 * * *"},
		{"@every 1h30m", "@every 5400s"},
		{"@every 1.5h", "@every 90m"},
		{"@every 2000ms", "@every 2s"},
		{"@every 1d12h", "@every 36h"},
		{"@every 0.5d", "@every 12h"},
		{" @every \t 1m ", "* * * * *"},
	} {
		from := time.Date(2024, 2, 27, 11, 30, 30, 5, time.UTC)
		a, err := NextInstants(c[0], "UTC", from, 40)
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := NextInstants(c[1], "UTC", from, 40)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Equal(a, b) {
			t.Errorf("%q gives %v\n%q gives %v", c[0], a[:4], c[1], b[:4])
		}
	}
}

func TestStringReadsBack(t *testing.T) {
	s, err := Parse(" TZ=Asia/Dhaka\t*/15  * * * MON-FRI ", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.String() != "*/15 * * * MON-FRI" || s.Location().String() != "Asia/Dhaka" {
		t.Fatalf("got %q in %v", s, s.Location())
	}
}

func TestPhaseMovesOnlyEvery(t *testing.T) {
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	every, _ := Parse("@every 10m", nil)
	for phase, want := range map[time.Duration]time.Duration{
		0: 10 * time.Minute, 90 * time.Second: 90 * time.Second, 21 * time.Minute: time.Minute, -time.Minute: 9 * time.Minute,
	} {
		if got, _ := every.WithPhase(phase).Next(from); got.Sub(from) != want {
			t.Errorf("phase %v: next after %v, want %v", phase, got.Sub(from), want)
		}
	}
	daily, _ := Parse("@daily", nil)
	if daily.WithPhase(time.Minute) != daily {
		t.Error("a phase changed @daily")
	}
}

func TestEndsOfTime(t *testing.T) {
	for _, expr := range []string{"0 0 1 1 *", "*/15 * * * *", "@every 1d", "0 0 29 2 */7"} {
		for _, zone := range []string{"UTC", "America/New_York", "Pacific/Apia", "Asia/Manila"} {
			loc, _ := LoadZone(zone)
			s, err := Parse(expr, loc)
			if err != nil {
				t.Fatal(err)
			}
			if at, ok := s.Next(time.Time{}); !ok || at.UTC().Year() > 50 {
				t.Errorf("%s in %s: after the zero time comes %v, %v", expr, zone, at, ok)
			}
			if at, ok := s.Next(time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)); ok {
				t.Errorf("%s in %s: %v after the end", expr, zone, at)
			}
			if at, ok := s.Prev(time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)); !ok || at.UTC().Year() < 9950 {
				t.Errorf("%s in %s: before the end comes %v, %v", expr, zone, at, ok)
			}
			if at, ok := s.Prev(time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)); ok {
				t.Errorf("%s in %s: %v before the start", expr, zone, at)
			}
		}
	}
}

// Where a zone's clock was ahead by a fraction of a minute, RFC 3339 writes the
// instant with the nearest offset that it can. It has no year of five digits.
func TestInstantsAreWrittenAsRFC3339Can(t *testing.T) {
	for _, c := range []struct {
		expr, zone, from string
		want             []string
	}{
		{"0 12 * * *", "Africa/Monrovia", "1970-01-01T00:00:00Z", []string{"1970-01-01T11:59:30-00:45", "1970-01-02T11:59:30-00:45"}},
		{"0 0 * * *", "Asia/Kolkata", "1900-01-01T00:00:00Z", []string{"1900-01-01T23:59:50+05:21"}},
		{"0 0 * * *", "Pacific/Kiritimati", "9999-12-29T23:30:00Z", []string{"9999-12-31T00:00:00+14:00"}},
		{"@every 1h", "Pacific/Kiritimati", "9999-12-31T08:30:00Z", []string{"9999-12-31T23:00:00+14:00"}},
	} {
		n := len(c.want)
		if c.from[0] == '9' {
			n++ // there is no more
		}
		got, err := NextInstants(c.expr, c.zone, instant(t, c.from), n)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s in %s: %v, want %v", c.expr, c.zone, got, c.want)
		}
	}
}

// Replicas have to agree: what only some hosts have beside the database's names,
// or read in another way, names no zone.
func TestZonesThatAreNotTheSameOnEveryHost(t *testing.T) {
	for _, name := range []string{
		"Local", "localtime", "posixrules", "posix/Asia/Dhaka", "right/America/New_York", "Asia//Dhaka", "./UTC", "Asia/./Dhaka", "Asia/Dhaka/", "/UTC", "../UTC",
	} {
		if _, err := LoadZone(name); !errors.Is(err, ErrZone) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, meant := range map[string]string{"america/new_york": "America/New_York", "utc": "UTC", "ASIA/DHAKA": "Asia/Dhaka", "america/new york": "America/New_York", "us/pacific": "US/Pacific"} {
		if _, err := Parse("TZ="+strings.ReplaceAll(name, " ", "_")+" 0 0 * * *", nil); err == nil || !strings.Contains(err.Error(), "did you mean "+strconv.Quote(meant)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNextInstantsRefuses(t *testing.T) {
	if _, err := NextInstants("@daily", "Asia/Atlantis", time.Time{}, 1); !errors.Is(err, ErrZone) {
		t.Errorf("a zone that is not: %v", err)
	}
	if _, err := NextInstants("@daily", "", time.Time{}, -1); err == nil {
		t.Error("-1 instants were given")
	}
}

// A zone that was read once is kept: to name it again costs no look at the database.
func TestAKnownZoneIsNotLookedForAgain(t *testing.T) {
	for _, name := range []string{"", "UTC", "Asia/Dhaka", "America/Argentina/Buenos_Aires"} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := LoadZone(name); err != nil {
				t.Error(err)
			}
		}); n > 2 { // of the key
			t.Errorf("%q: %.0f allocations", name, n)
		}
	}
}

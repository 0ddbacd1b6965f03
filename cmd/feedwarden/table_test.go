package main

import (
	"strings"
	"testing"
)

func grown(width int, rows ...string) string {
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, strings.Split(r, "|"))
	}
	return newGrid(cells[0], cells[1:], width).String()
}

// A terminal of 80 columns shows every job's whole ID, and why it waits.
func TestTableThatIsTooWideLosesNothingThatSaysSomething(t *testing.T) {
	t.Parallel()
	const header = "ID|FEED|QUEUE|STATE|ATTEMPTS|SNOOZES|NEXT|LAST ERROR"
	long := "a-feed-with-a-long-name-indeed@2026-11-30T14:04:40Z"
	for _, c := range []struct {
		name, want string
		rows       []string
	}{
		{"columns that say nothing go first", `
ID                        FEED     QUEUE      STATE
trending-bd@2026-11-30T1  feed-bd  scheduled  done
trending-br@2026-11-30T1  feed-br  scheduled  done
`, []string{"trending-bd@2026-11-30T1|feed-bd|scheduled|done|0|0|—|—", "trending-br@2026-11-30T1|feed-br|scheduled|done|0|0|—|—"}},
		{"what has no room stands below", `
ID                        FEED     QUEUE      STATE
trending-bd@2026-11-30T1  feed-bd  scheduled  retrying
    attempts 1  next 14:00:07
    last error fetch: http://127.0.0.1:1: connection re…
trending-br@2026-11-30T1  feed-br  scheduled  done
trending-gb@2026-11-30T1  feed-gb  scheduled  done
    snoozes 12
`, []string{
			"trending-bd@2026-11-30T1|feed-bd|scheduled|retrying|1|0|14:00:07|fetch: http://127.0.0.1:1: connection refused by what is there",
			"trending-br@2026-11-30T1|feed-br|scheduled|done|0|0|—|—", "trending-gb@2026-11-30T1|feed-gb|scheduled|done|0|12|—|—",
		}},
		{"a name that is longer than the others has a line of its own", `
ID               FEED  QUEUE      STATE
` + long + `
                 long  scheduled  done
news@2026-11-30  news  scheduled  done
`, []string{long + "|long|scheduled|done|0|0|—|—", "news@2026-11-30|news|scheduled|done|0|0|—|—"}},
	} {
		if got := grown(56, append([]string{header}, c.rows...)...); got != c.want[1:] {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want[1:])
		}
		if got := grown(0, append([]string{header}, c.rows...)...); strings.Contains(got, "…") || strings.Count(got, "\n") != len(c.rows)+1 {
			t.Errorf("%s, without a width:\n%s", c.name, got)
		}
	}
}

func TestTableCutsALongLastColumn(t *testing.T) {
	t.Parallel()
	for _, line := range strings.Split(strings.TrimRight(grown(60, "FEED|STATE|TROUBLE", "news|empty|"+strings.Repeat("long ", 30), "board|fresh|—"), "\n"), "\n") {
		if n := columns(line); n > 60 || strings.HasPrefix(line, "news") && n < 59 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// Letters that are two columns wide, and marks that have none, move no column.
func TestTableAlignsWideLettersAndMarks(t *testing.T) {
	t.Parallel()
	got := grown(80, "TITLE|ID", "動画 über|a", "cafe\u0301|b", "☕ plain ok|c", "ক্লিপ দেখুন|d")
	for _, line := range strings.Split(strings.TrimSpace(got), "\n") {
		id := strings.Fields(line)[len(strings.Fields(line))-1]
		if n := columns(strings.TrimSuffix(line, id)); n != 13 {
			t.Errorf("the ID is in column %d, not 13: %s", n, line)
		}
	}
	if got := clip("動画動画動画", 6); got != "動画…" {
		t.Errorf("clip: %q", got)
	}
}

func TestTextsOfOthersDoNotSteerATerminal(t *testing.T) {
	t.Parallel()
	if got := oneLine("a\x1b[31m\nb\u202egnp.exe\u2066c\u2028d\u009b"); got != "a [31m bgnp.exec d " {
		t.Errorf("%q", got)
	}
}

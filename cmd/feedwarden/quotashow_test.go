package main

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/demo"
	"feedwarden/quota"
	"feedwarden/web"
)

func TestQuotaShowTellsThePast(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	for _, id := range []string{"a", "b"} {
		p.run("", "quota", "charge", "q", "--cost", "60", "--id", id, "--label", "my-script")
	}
	if _, _, code := p.run("", "quota", "block", "q", "--for", "10m", "--reason", "maintenance"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	out, _, code := p.run("", "quota", "show", "q")
	q := objects(t, out)[0]
	history, _ := q["history"].([]any)
	if code != 0 || q["grants"] != 1.0 || q["units"] != 60.0 || q["refusals"] != 1.0 || q["blocks"] != 1.0 || q["block_reason"] != "maintenance" || len(history) != 96 {
		t.Errorf("exit %d %s", code, out)
	}
	share := q["history_labels"].([]any)[0].(map[string]any)
	if units := share["units"].([]any); share["label"] != "my-script" || len(units) != 96 || units[95].(float64)+units[94].(float64) != 60 {
		t.Errorf("%v", share)
	}
	if running := q["running"].(map[string]any); running["running"] != 0.0 || running["limit"] != nil {
		t.Errorf("%v", running)
	}
}

func TestOfTwoBlocksTheOneThatHoldsIsSaid(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	for _, name := range []string{"q", "host:example.org"} {
		var first any
		for i, block := range [][]string{{"2h", "maintenance"}, {"1m", "by hand"}} {
			out, errOut, code := p.run("", "quota", "block", name, "--for", block[0], "--reason", block[1])
			if code != exitDone {
				t.Fatalf("%s: exit %d %s", name, code, errOut)
			}
			b := objects(t, out)[0]
			if i == 0 {
				first = b["blocked_until"]
			}
			if b["name"] != name || b["blocked_until"] != first || b["reason"] != "maintenance" {
				t.Errorf("%s: block %d says %s", name, i+1, out)
			}
		}
		out, errOut, code := p.run("", "quota", "show", strings.Replace(name, "example.org", "Example.ORG", 1))
		if s := objects(t, out)[0]; code != exitDone || s["blocked_until"] != first || s["block_reason"] != "maintenance" || s["blocks"] != 2.0 {
			t.Errorf("%s: exit %d %s%s", name, code, out, errOut)
		}
		if _, errOut, code := p.run("", "quota", "unblock", name); code != exitDone {
			t.Errorf("%s: exit %d %s", name, code, errOut)
		}
		out, _, _ = p.run("", "quota", "show", name)
		if s := objects(t, out)[0]; s["blocked_until"] != nil || s["block_reason"] != "" {
			t.Errorf("%s: open, it says %s", name, out)
		}
	}
	for _, args := range [][]string{{"block", "q", "--for", "99999d"}, {"block", "host:", "--for", "1m"}, {"block", "host:https://example.org/", "--for", "1m"}, {"unblock", "host:"}, {"show", "host:"}} {
		if _, errOut, code := p.run("", append([]string{"quota"}, args...)...); code != exitUsage || errOut == "" {
			t.Errorf("%v: exit %d %s", args, code, errOut)
		}
	}
}

func TestAClosedQuotaIsSeenInEightyColumns(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	var out bytes.Buffer
	e := &env{out: &out, width: 80}
	rows := e.table("", quotaHeader...)
	err := rows.add(nil, quotaCells(quota.State{
		Name: "youtube", Now: now, NextRelease: now.Add(time.Hour), BlockedUntil: now.Add(90 * time.Minute),
		Windows: []quota.Use{{Limit: 10000, Used: 4200, Per: 24 * time.Hour}, {Limit: 300, Used: 120, Per: time.Minute}},
	})...)
	if err = errors.Join(err, rows.flush()); err != nil || !strings.Contains(out.String(), "13:30:00") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestQuotaFactsAreLines(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	limit := int64(16)
	points := make([]quota.Point, 96)
	points[0].Units, points[1].Units, points[95].Units, points[50].Refused = 30, 10, 320, 7
	inf := math.Inf(1)
	s := quota.State{
		Now: now, LongestWait: 90 * time.Second, BlockedUntil: now.Add(time.Minute), BlockReason: "quotaExceeded",
		Seen: quota.Seen{
			Grants: 10, Units: 360, Refunds: 1, Refunded: 20, Blocks: 2, SnoozeSum: 15, LatenessSum: 4 * time.Second,
			Snoozes:  []quota.Bucket{{UpTo: 0, Count: 4}, {UpTo: 1, Count: 7}, {UpTo: 2, Count: 7}, {UpTo: 3, Count: 7}, {UpTo: 5, Count: 9}, {UpTo: 10, Count: 9}, {UpTo: inf, Count: 10}},
			Lateness: []quota.Bucket{{UpTo: 0.01, Count: 1}, {UpTo: 0.1, Count: 1}, {UpTo: 1, Count: 3}, {UpTo: 5, Count: 4}, {UpTo: 30, Count: 4}, {UpTo: inf, Count: 4}},
		},
	}
	var out bytes.Buffer
	e := &env{out: &out, width: 80}
	if err := e.facts(quotaFacts(s, &web.Running{Running: 3, Limit: &limit, Waiting: 2}, points)); err != nil {
		t.Fatal(err)
	}
	want := `RUNNING       3, 16 at most; 2 wait for that
LONGEST WAIT  1m30s
UNITS         360 granted, 20 given back in 1 refund
BLOCKED       until 12:01:00: quotaExceeded; 2 times so far
SNOOZES       never: 4, 1: 3, to 5: 2, more than 10: 1; 1.50 a grant
LATENESS      to 10ms: 1, to 1s: 2, to 5s: 1; 1s on average
GRANTED 24H   ▁··············································█ up to 320 units
REFUSED 24H   ·························█······················ up to 7 asked
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}

	// Nothing yet.
	out.Reset()
	fresh := quota.State{Now: now, Seen: quota.Seen{Snoozes: []quota.Bucket{{UpTo: 0}, {UpTo: inf}}, Lateness: []quota.Bucket{{UpTo: 0.01}, {UpTo: inf}}}}
	if err := e.facts(quotaFacts(fresh, &web.Running{}, make([]quota.Point, 96))); err != nil {
		t.Fatal(err)
	}
	want = `RUNNING       0, no limit; 0 wait for that
LONGEST WAIT  —
UNITS         0 granted, 0 given back in 0 refunds
BLOCKED       0 times so far
SNOOZES       —
LATENESS      —
GRANTED 24H   none
REFUSED 24H   none
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

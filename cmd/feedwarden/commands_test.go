package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/demo"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestExitCodesOfWrongCalls(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"nosuch"}, exitUsage, "nosuch"},
		{[]string{"serv"}, exitUsage, `did you mean "serve"?`},
		{[]string{"quota", "charge", "q", "--csot", "1"}, exitUsage, "Try: feedwarden quota charge --help\n"},
		{[]string{"completion", "--help"}, exitDone, "    bash:  source <(feedwarden completion bash)\n"},
		{[]string{"quota", "charge", "q"}, exitUsage, "--cost"},
		{[]string{"quota", "charge", "q", "--cost", "0", "--id", "x"}, exitUsage, "cost"},
		{[]string{"quota", "charge", "q", "--cost", "0x10", "--id", "x"}, exitUsage, "cost"},
		{[]string{"quota", "charge", "q", "--cost", "1e3", "--id", "x"}, exitUsage, "cost"},
		{[]string{"quota", "charge", "q", "--cost= 5 ", "--id", "x"}, exitUsage, "cost"},
		{[]string{"quota", "charge", "q", "--cost=-1", "--id", "x"}, exitUsage, "cost"},
		{[]string{"quota", "charge", "q", "--cost", "9007199254740992", "--id", "x"}, exitUsage, "cost"},
		{[]string{"quota", "charge", "q", "--cost", "101", "--id", "x"}, exitUsage, "never"},
		{[]string{"quota", "show", "nosuch"}, exitUsage, `"nosuch": no such quota: the config has q`},
		{[]string{"schedules", "pause", "othe"}, exitUsage, `did you mean "other"?`},
		{[]string{"schedules", "trigger", "news"}, exitUsage, "feed news has no schedule"},
		{[]string{"enqueue", "nosuch"}, exitUsage, "nosuch"},
		{[]string{"enqueue", "news", "--in", "5"}, exitUsage, "in"},
		{[]string{"enqueue", "news", "--in", "5s", "--at", "2026-01-01T00:00:00Z"}, exitUsage, "in"},
		{[]string{"enqueue", "news", "--id", "a b"}, exitUsage, "id"},
		{[]string{"enqueue", "news", "news", "--id", "x"}, exitUsage, "one feed"},
		{[]string{"enqueue", "news", "--priority", "urgent"}, exitUsage, "urgent"},
		{[]string{"jobs", "get", "nosuch"}, exitFailed, "nosuch"},
		{[]string{"jobs", "list", "--state", "sleepy"}, exitUsage, "sleepy"},
		{[]string{"feeds", "get", "nosuch"}, exitUsage, "nosuch"},
		{[]string{"feeds", "get", "news"}, exitFailed, "no version yet"},
		{[]string{"proxies", "list", "nosuch"}, exitUsage, "nosuch"},
		{[]string{"proxies", "import", "local", "/nonexistent"}, exitUsage, "/nonexistent"},
		{[]string{"proxies", "import", "local", "--format", "csv", "-"}, exitUsage, "user-first"},
		{[]string{"proxies", "import", "local", "https://example.org/list?key=k"}, exitUsage, "web address"},
		{[]string{"proxies", "take", "local"}, exitRefused, "no endpoint"},
		{[]string{"proxies", "check", "local"}, 0, "0 endpoints checked"},
		{[]string{"proxies", "check", "local", "http://nosuch.example:80"}, exitFailed, "unknown endpoint"},
		{[]string{"schedules", "next", "0 0 31 2 *"}, exitUsage, "never"},
		{[]string{"schedules", "next", "* * *"}, exitUsage, "five"},
		{[]string{"schedules", "next", "* * * * *", "--timezone", "Mars/Olympus"}, exitUsage, "Mars/Olympus"},
		{[]string{"schedules", "next", "* * * * *", "--timezone", "asia/dhaka"}, exitUsage, `--timezone: no such time zone: "asia/dhaka"; did you mean "Asia/Dhaka"?`},
	} {
		out, errOut, code := p.run("", c.args...)
		if code != c.code || !contains(errOut+out, c.says) {
			t.Errorf("%v: exit %d, want %d with %q: %s%s", c.args, code, c.code, c.says, out, errOut)
		}
	}
}

const commandsConfig = `
redis: {url: "REDIS"}
fetch: {allow_private: true}
quotas:
  q: {windows: [{limit: 100, per: 1h}]}
pools:
  local: {allow_private: true}
feeds:
  news: {source: syndication, url: FEED}
  other: {source: syndication, url: FEED, schedule: "@every 1h"}
`

func TestMissingConfigIsAWrongCallForAllButTheFewThatNeedNone(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "feedwarden.yaml")
	for _, args := range [][]string{{"check"}, {"serve"}, {"feeds", "list"}, {"enqueue", "x"}, {"schedules", "list"}} {
		_, errOut, code := command(t, "", append([]string{"--config", nowhere}, args...)...)
		if code != exitUsage || !contains(errOut, nowhere) {
			t.Errorf("%v: exit %d %s", args, code, errOut)
		}
	}
	for _, args := range [][]string{{"version"}, {"schedules", "next", "@daily"}, {"completion", "bash"}, {"--help"}} {
		if out, errOut, code := command(t, "", append([]string{"--config", nowhere}, args...)...); code != exitDone || out == "" {
			t.Errorf("%v: exit %d %s%s", args, code, out, errOut)
		}
	}
}

func TestHelpIsAlsoACommand(t *testing.T) {
	t.Parallel()
	for asked, same := range map[string]string{"help": "--help", "help quota charge": "quota charge --help"} {
		got, _, code := command(t, "", strings.Fields(asked)...)
		if want, _, _ := command(t, "", strings.Fields(same)...); code != exitDone || got != want {
			t.Errorf("feedwarden %s: exit %d, %s", asked, code, got)
		}
	}
}

func TestConfigFaultsAreAllSaidAtOnceWithTheirPlaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feedwarden.yaml")
	text := `quotas:
  youtube:
    windows: [{limit: 10, per: 1m}]
feeds:
  a: {source: syndication, url: "https://example.org/", quotta: x}
  b: {source: syndication, url: "https://example.org/", quota: yutube}
  c: {source: syndication, url: "https://example.org/", quota: youtube, cost: 11}
  d: {source: syndication, url: "https://example.org/", schedule: "0 0 31 2 *"}
  e: {source: syndication, url: "https://example.org/", ttl: [1]}
  e: {source: syndication, url: "https://example.org/"}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errOut, code := command(t, "", "--config", path, "check")
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{":5:", "quotta", ":6:", "yutube", ":7:", "11", ":8:", "never fires", ":9:", ":10:"} {
		if !contains(errOut, want) {
			t.Errorf("check does not say %q:\n%s", want, errOut)
		}
	}
}

func TestEnqueueReadsManyLinesAndABadOneDoesNotStopTheRest(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	in := `{"feed":"news","id":"first"}
not json
{"feed":"nosuch"}

{"feed":"other","priority":"scheduled","in":"1h","id":"later"}
{"feed":"news","colour":"red"}
` + `{"feed":"news","params":{"k":"` + strings.Repeat("x", 70<<10) + `"}}
{"feed":"news","id":"last"}`
	out, _, code := p.run(in, "enqueue", "-")
	lines := objects(t, out)
	if code != exitFailed || len(lines) != 7 {
		t.Fatalf("exit %d, %d lines: %s", code, len(lines), out)
	}
	for i, want := range []string{"pending", "", "", "scheduled", "", "", "pending"} {
		got, bad := fmt.Sprint(lines[i]["state"]), lines[i]["error"] != nil
		if bad != (want == "") || (!bad && got != want) {
			t.Errorf("line %d: %v", i, lines[i])
		}
	}
	for _, key := range []string{"id", "feed", "queue", "state"} {
		if lines[0][key] == nil {
			t.Errorf("a job's line has no %s: %v", key, lines[0])
		}
	}
	out, _, code = p.run("", "jobs", "get", "later")
	j := objects(t, out)[0]
	if code != 0 || j["queue"] != "scheduled" || j["tick"] != nil || j["next_at"] == nil {
		t.Errorf("%v", j)
	}
	if out, _, code := p.run("", "jobs", "cancel", "later"); code != 0 || objects(t, out)[0]["state"] != "cancelled" {
		t.Errorf("cancel: %d %s", code, out)
	}
}

func TestEnqueueIsRefusedWith75WhenTheQueueIsFull(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig + "queues: {interactive: {limit: 1}}\n")
	if _, _, code := p.run("", "enqueue", "news"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	out, _, code := p.run("", "enqueue", "news")
	if l := objects(t, out)[0]; code != exitRefused || l["error"] == nil || l["retry_after_ms"].(float64) <= 0 {
		t.Errorf("exit %d %s", code, out)
	}
}

func TestChargeAndRefundShareTheBudgetWithScripts(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	charge := func(cost, id string, more ...string) (map[string]any, int) {
		t.Helper()
		out, _, code := p.run("", append([]string{"quota", "charge", "q", "--cost", cost, "--id", id}, more...)...)
		return objects(t, out)[0], code
	}
	for range 2 {
		if d, code := charge("60", "a"); code != 0 || d["granted"] != true || d["retry_after_ms"] != 0.0 || d["position"] != 0.0 {
			t.Fatalf("exit %d %v", code, d)
		}
	}
	d, code := charge("60", "b", "--no-line")
	if code != exitRefused || d["granted"] != false || d["position"] != 0.0 || d["retry_after_ms"].(float64) <= 0 {
		t.Errorf("exit %d %v", code, d)
	}
	if d, _ = charge("60", "b"); d["position"] != 1.0 {
		t.Errorf("%v", d)
	}
	w := d["windows"].([]any)[0].(map[string]any)
	if w["limit"] != 100.0 || w["per_ms"] != 3600000.0 || w["used"] != 60.0 {
		t.Errorf("%v", w)
	}
	for _, want := range []float64{60, 0} {
		out, _, code := p.run("", "quota", "refund", "q", "--id", "a")
		if code != 0 || objects(t, out)[0]["restored"] != want {
			t.Errorf("refund: %d %s", code, out)
		}
	}
	if d, code := charge("60", "b"); code != 0 || d["granted"] != true {
		t.Errorf("the first in line is not granted what was given back: %v", d)
	}
}

func TestProxiesImportTellsOfEachBadLineAndQuotesNoSecret(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	in := "http://u:canary-secret@127.0.0.1:8080\nftp://1.2.3.4:1\nhttp://user:canary%off@h:80\n127.0.0.1:8081\n127.0.0.1:8081\n"
	out, errOut, code := p.run(in, "proxies", "import", "local", "-")
	lines := objects(t, out)
	if code != exitFailed || len(lines) != 3 || lines[0]["line"] != 2.0 || lines[1]["line"] != 3.0 {
		t.Fatalf("exit %d %s", code, out)
	}
	if l := lines[2]; l["accepted"] != 2.0 || l["duplicates"] != 1.0 || l["rejected"] != 2.0 {
		t.Errorf("%v", l)
	}
	list, _, _ := p.run("", "proxies", "list", "local")
	if contains(out+errOut+list, "canary") {
		t.Errorf("a secret is shown: %s%s%s", out, errOut, list)
	}
	seen := map[any]bool{}
	for range 2 {
		out, _, code := p.run("", "proxies", "take", "local")
		o := objects(t, out)[0]
		if code != 0 || o["url"] == "" || o["count"] != 1.0 {
			t.Errorf("take: %d %s", code, out)
		}
		seen[o["id"]] = true
	}
	if len(seen) != 2 {
		t.Errorf("two takes of two gave %v", seen)
	}
}

func TestListsWithTheUserFirstAreReadWhereThatIsSaid(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(strings.Replace(commandsConfig, "pools:\n", "pools:\n  first: {list_format: user-first, allow_private: true}\n", 1))
	const list = "ann:canary-secret:127.0.0.1:8080\n"
	out, errOut, code := p.run(list, "proxies", "import", "local", "-")
	if code != exitFailed || !contains(out, "user-first") || contains(out+errOut, "canary") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	for _, args := range [][]string{{"proxies", "import", "local", "--format", "user-first", "-"}, {"proxies", "import", "first", "-"}} {
		if out, errOut, code := p.run(list, args...); code != 0 || objects(t, out)[0]["accepted"] != 1.0 {
			t.Errorf("%v: exit %d %s%s", args, code, out, errOut)
		}
		if out, _, _ := p.run("", "proxies", "take", args[2]); objects(t, out)[0]["url"] != "http://ann:canary-secret@127.0.0.1:8080" {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// A URL that take gave does for an ID, and no command but take says its password.
func TestEndpointsAreNamedByTheURLThatTakeGave(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	if _, errOut, code := p.run("127.0.0.1:8080:ann:canary%secret\nhttp://canary-key@127.0.0.1:8081\n", "proxies", "import", "local", "-"); code != 0 {
		t.Fatal(errOut)
	}
	for range 2 {
		out, _, _ := p.run("", "proxies", "take", "local")
		o := objects(t, out)[0]
		given, _ := o["url"].(string)
		for _, c := range []struct {
			args  []string
			state string
		}{
			{[]string{"report", "local", given, "connect"}, "quarantined"},
			{[]string{"restore", "local", given}, "probation"},
			{[]string{"quarantine", "local", given, "--for", "1m"}, "quarantined"},
			{[]string{"disable", "local", given}, "disabled"},
			{[]string{"restore", "local", given}, "probation"},
			{[]string{"remove", "local", given}, ""},
		} {
			out, errOut, code := p.run("", append([]string{"proxies"}, c.args...)...)
			if code != 0 || contains(out+errOut, "canary") {
				t.Fatalf("%s: exit %d %s%s", c.args[0], code, out, errOut)
			}
			if got := objects(t, out)[0]; got["id"] != o["id"] || c.state != "" && got["state"] != c.state {
				t.Errorf("%s: %v", c.args[0], got)
			}
		}
		for _, args := range [][]string{{"report", "local", given, "ok"}, {"restore", "local", given}, {"remove", "local", given}, {"check", "local", given}} {
			if out, errOut, code := p.run("", append([]string{"proxies"}, args...)...); code != exitFailed || contains(out+errOut, "canary") {
				t.Errorf("%s after its removal: exit %d %s%s", args[0], code, out, errOut)
			}
		}
	}
}

func TestSchedulesNextPrintsInstantsInTheSchedulesZone(t *testing.T) {
	t.Parallel()
	out, _, code := command(t, "", "schedules", "next", "0 2 * * *", "--timezone", "America/New_York", "--from", "2024-03-09T12:00:00-05:00", "-n", "3")
	want := "2024-03-10T03:00:00-04:00\n2024-03-11T02:00:00-04:00\n2024-03-12T02:00:00-04:00\n"
	if code != 0 || strings.ReplaceAll(out, `"`, "") != want {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, _, _ := command(t, "", "schedules", "next", "CRON_TZ=Asia/Tokyo @daily", "--timezone", "UTC", "--from", "2024-03-01T00:00:00Z", "-n", "1", "--json"); out != "\"2024-03-02T00:00:00+09:00\"\n" {
		t.Errorf("%q", out)
	}
}

func TestCheckFindsAListThatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feedwarden.yaml")
	text := "pools:\n  p: {list: missing.txt}\nfeeds:\n  a: {source: syndication, url: \"https://example.org/\", pool: p}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := command(t, "", "--config", path, "check"); code != exitUsage || !contains(errOut, ":2:13: pools.p.list") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestCheckReadsTheRedisURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://u:50%zzpw@h:6379/0", "redis://u:pw@h:6379/0?zzz=1", "ftp://h"} {
		path := filepath.Join(t.TempDir(), "feedwarden.yaml")
		text := "redis: {url: \"" + url + "\"}\nfeeds:\n  a: {source: syndication, url: \"https://example.org/\"}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"check"}, {"feeds", "list"}} {
			if _, errOut, code := command(t, "", append([]string{"--config", path}, args...)...); code != exitUsage || contains(errOut, "pw@") {
				t.Errorf("%s %v: exit %d %s", url, args, code, errOut)
			}
		}
	}
}

func TestHostIsClosedAndOpenedByHandForFeedsWithoutAQuota(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(`
redis: {url: "REDIS"}
fetch: {allow_private: true}
feeds:
  news: {source: syndication, url: FEED}
`)
	host := strings.Split(strings.TrimPrefix(p.upstream.FeedURL(), "http://"), "/")[0]
	out, errOut, code := p.run("", "quota", "block", "host:"+host, "--for", "1h", "--reason", "they asked us to wait")
	if code != 0 || !contains(out, `"name":"host:`+host) {
		t.Fatalf("block: %d %s%s", code, out, errOut)
	}
	p.start("worker")
	if out, errOut, code = p.run("", "enqueue", "news", "--id", "waits"); code != 0 {
		t.Fatalf("enqueue: %d %s%s", code, out, errOut)
	}
	job := func(state, says string) {
		t.Helper()
		eventually(t, 30*time.Second, func() string {
			out, errOut, _ := p.run("", "jobs", "get", "waits")
			if !contains(out, `"state":"`+state+`"`) || !contains(out, says) {
				return out + errOut
			}
			return ""
		})
	}
	job("snoozed", "they asked us to wait")
	if out, errOut, code = p.run("", "quota", "unblock", "host:"+host); code != 0 {
		t.Fatalf("unblock: %d %s%s", code, out, errOut)
	}
	job("done", "")
}

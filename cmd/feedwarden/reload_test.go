package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"feedwarden/internal/demo"
)

// reloadConfig has one feed that stays; LIMIT and MORE are filled in.
const reloadConfig = `
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
worker: {concurrency: CONCURRENCY, shutdown: 3s}
fetch: {allow_private: true, timeout: 60s}
quotas:
  api:
    windows: [{limit: LIMIT, per: 1h}]
feeds:
  steady: {source: syndication, url: FEED, schedule: "@every 1s", overlap: allow}
MORE
`

type reloadParts struct{ limit, concurrency, more string }

func (r reloadParts) text() string {
	return strings.NewReplacer("LIMIT", r.limit, "CONCURRENCY", r.concurrency, "MORE", r.more).Replace(reloadConfig)
}

const (
	oldFeed = `  old: {source: syndication, url: FEED, schedule: "@every 1s", overlap: allow, quota: api}`
	newFeed = `  new: {source: syndication, url: FEED, schedule: "@every 1s", overlap: allow, quota: api}`
)

// served is what a web server shows of a config.
type served struct {
	schedules map[string]int64 // name → ticks that became jobs
	limit     int64
	planned   map[string]bool // names with ticks to come
}

func look(t *testing.T, url string) served {
	t.Helper()
	var list struct {
		Schedules []struct {
			Name       string
			Dispatched int64
		}
		Ahead []struct{ Schedule string }
	}
	get(t, url+"/v1/schedules?ahead=3s", &list)
	s := served{schedules: map[string]int64{}, planned: map[string]bool{}}
	for _, tick := range list.Ahead {
		s.planned[tick.Schedule] = true
	}
	for _, v := range list.Schedules {
		s.schedules[v.Name] = v.Dispatched
	}
	var q struct{ Windows []struct{ Limit int64 } }
	get(t, url+"/v1/quotas/api", &q)
	if len(q.Windows) == 1 {
		s.limit = q.Windows[0].Limit
	}
	return s
}

// shows waits until the config with these schedules and this limit works:
// each schedule's ticks go on from what they were.
func shows(t *testing.T, url string, limit int64, names ...string) {
	t.Helper()
	var first *served
	eventually(t, 30*time.Second, func() string {
		s := look(t, url)
		if len(s.schedules) != len(names) || len(s.planned) != len(names) || s.limit != limit {
			return fmt.Sprintf("%+v", s)
		}
		if first == nil {
			first = &s
		}
		for _, n := range names {
			if now, ok := s.schedules[n]; !ok || now < first.schedules[n]+2 || !s.planned[n] {
				return fmt.Sprintf("%s: %+v, at first %+v", n, s, *first)
			}
			if status, _ := get(t, url+"/v1/feeds/"+n, nil); status != http.StatusOK {
				return fmt.Sprintf("%s: %d", n, status)
			}
		}
		return ""
	})
}

func TestChangedConfigHoldsWithoutARestart(t *testing.T) {
	t.Parallel()
	for name, processes := range map[string][]string{"serve": {"serve"}, "roles": {"web", "scheduler", "worker"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, demo.Options{Limit: 1000})
			p.write(reloadParts{"5000", "8", oldFeed}.text())
			var all []*process
			for _, role := range processes {
				all = append(all, p.start(role))
			}
			url := all[0].url()
			shows(t, url, 5000, "steady", "old")

			// By SIGHUP.
			p.write(reloadParts{"7000", "8", newFeed}.text())
			for _, q := range all {
				_ = q.cmd.Process.Signal(syscall.SIGHUP)
			}
			shows(t, url, 7000, "steady", "new")
			if status, _ := get(t, url+"/v1/feeds/old", nil); status != http.StatusNotFound {
				t.Errorf("the feed that was taken out answers %d", status)
			}

			// A broken file changes nothing, and is told once, with all its faults.
			p.write(reloadParts{"-1", "8", strings.Replace(oldFeed, "@every 1s", "61 * * * *", 1)}.text())
			for _, q := range all {
				told(t, q, `config not taken up`)
				if n := len(regexp.MustCompile(`config not taken up.*limit.*61 \* \* \* \*`).FindAllString(q.err.String(), -1)); n != 1 {
					t.Errorf("%s tells of both faults %d times, want once", q.name, n)
				}
			}
			shows(t, url, 7000, "steady", "new")

			// By the file's time; what needs a restart is named.
			p.write(reloadParts{"9000", "9", oldFeed + "\n" + newFeed}.text())
			shows(t, url, 9000, "steady", "old", "new")
			for _, q := range all {
				told(t, q, `needs a restart.*worker\.concurrency`)
			}

			everyTickOnce(t, p)
			noTickLost(t, p, "steady")
			for _, q := range all {
				if code := q.terminate(); code != 0 {
					t.Errorf("exit %d", code)
				}
			}
		})
	}
}

// noTickLost holds the jobs of an @every 1s against the seconds that passed
// between its first and its last. A list can miss a job that is on its way
// from one state to the next; it is there in another list.
func noTickLost(t *testing.T, p *place, name string) {
	t.Helper()
	ticks := map[int64]bool{}
	var end int64
	eventually(t, 30*time.Second, func() string {
		out, errOut, code := p.run("", "jobs", "list", "--limit", "1000", "--feed", name)
		if code != 0 {
			return errOut
		}
		for _, j := range objects(t, out) {
			if at, err := time.Parse(time.RFC3339, fmt.Sprint(j["tick"])); err == nil {
				ticks[at.Unix()] = true
			}
		}
		all := slices.Sorted(maps.Keys(ticks))
		if len(all) < 5 {
			return fmt.Sprintf("%d ticks", len(all))
		}
		if end == 0 {
			end = all[len(all)-1]
		}
		for at := all[0]; at < end; at++ {
			if !ticks[at] {
				return fmt.Sprintf("%s: no job of %s", name, time.Unix(at, 0).UTC())
			}
		}
		return ""
	})
}

func told(t *testing.T, p *process, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	eventually(t, 20*time.Second, func() string {
		if !re.MatchString(p.err.String()) {
			return "no line of the log is " + pattern
		}
		return ""
	})
}

func TestWatchNoticesAFileThatIsReplaced(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/feedwarden.yaml"
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(path, "one")
	w := newWatch(path)
	defer w.close()
	put(path+".new", "other")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if why := w.wait(t.Context()); why != "the file changed" {
		t.Errorf("%q", why)
	}
	w.hup <- syscall.SIGHUP
	if why := w.wait(t.Context()); why != "SIGHUP" {
		t.Errorf("%q", why)
	}
}

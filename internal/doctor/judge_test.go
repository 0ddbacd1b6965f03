package doctor

import (
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/roster"
	"feedwarden/quota"
	"feedwarden/scheduler"
)

// Each row is a reading and what is to be said of it; the thresholds are at
// both sides.
func TestJudgements(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	info := func(pairs ...string) serverFacts {
		f := serverFacts{info: map[string]string{"redis_version": "7.0.15", "role": "master", "aof_enabled": "1", "maxmemory_policy": "noeviction"}, config: map[string]string{"save": ""}}
		for i := 0; i < len(pairs); i += 2 {
			f.info[pairs[i]] = pairs[i+1]
		}
		return f
	}
	process := roster.Process{Roles: []string{"worker", "scheduler"}, Config: "c", Version: "v", Redis: "r"}
	with := func(change func(*roster.Process)) roster.Process { p := process; change(&p); return p }
	processes := func(want bool, all ...roster.Process) func(*notes) {
		return func(n *notes) { n.judgeProcesses(all, 0, want, "c", "v") }
	}
	for name, tc := range map[string]struct {
		judge func(*notes)
		want  Severity
		says  string
	}{
		"old version":      {func(n *notes) { n.judgeServer("", info("redis_version", "6.0.16")) }, Broken, "6.2"},
		"odd version":      {func(n *notes) { n.judgeVersion("", "x") }, Unknown, "version"},
		"a replica":        {func(n *notes) { n.judgeServer("", info("role", "slave", "master_host", "h", "master_port", "1")) }, Broken, "replica of h:1"},
		"AOF cannot write": {func(n *notes) { n.judgeServer("", info("aof_last_write_status", "err")) }, Broken, "append-only"},
		"snapshot failed": {func(n *notes) {
			f := info("aof_enabled", "0", "rdb_last_bgsave_status", "err")
			f.config["save"] = "60 1"
			n.judgeServer("", f)
		}, Broken, "snapshot"},
		"snapshots alone":    {func(n *notes) { f := info("aof_enabled", "0"); f.config["save"] = "60 1"; n.judgeServer("", f) }, Warning, "save 60 1"},
		"memory nearly full": {func(n *notes) { n.judgeServer("", info("used_memory", "91", "maxmemory", "100")) }, Warning, "91 %"},
		"all is well":        {func(n *notes) { n.judgeServer("", info("used_memory", "90", "maxmemory", "100")) }, OK, "append-only"},

		"clock fits":         {func(n *notes) { n.judgeClock(-900*time.Millisecond, time.Millisecond) }, OK, "apart"},
		"clock a little off": {func(n *notes) { n.judgeClock(3*time.Second, time.Millisecond) }, Warning, "apart"},
		"clock off":          {func(n *notes) { n.judgeClock(-6*time.Second, time.Millisecond) }, Broken, "no jobs"},
		"slow answer":        {func(n *notes) { n.judgeClock(2*time.Second, 4*time.Second) }, OK, "0s apart"},

		"queue has room":   {func(n *notes) { n.judgeQueue(queueFacts{name: "q", size: 80, limit: 100}) }, OK, "80 jobs of at most 100"},
		"queue is filling": {func(n *notes) { n.judgeQueue(queueFacts{name: "q", size: 81, limit: 100}) }, Warning, "nearly full"},
		"queue is full":    {func(n *notes) { n.judgeQueue(queueFacts{name: "q", size: 100, limit: 100}) }, Broken, "refuses"},
		"queue stands":     {func(n *notes) { n.judgeQueue(queueFacts{name: "q", size: 1, waits: true, latency: time.Hour}) }, Warning, "waited for 1h0m0s"},
		"archive fills":    {func(n *notes) { n.judgeQueue(queueFacts{name: "q", archived: 9000}) }, Warning, "drops the oldest"},

		"quota open":    {func(n *notes) { n.judgeQuota(quota.State{Name: "y", Remaining: 5}) }, OK, "5 units"},
		"quota blocked": {func(n *notes) { n.judgeQuota(quota.State{Name: "y", BlockedUntil: now, BlockReason: "by hand"}) }, Warning, "by hand"},
		"quota used up": {func(n *notes) {
			n.judgeQuota(quota.State{Name: "y", Now: now, Scheduled: quota.Line{Waiting: 3}, Waiters: []quota.Waiter{{Promised: now.Add(9 * time.Hour)}}})
		}, Warning, "used up: 3 wait"},
		"line that moves": {func(n *notes) {
			n.judgeQuota(quota.State{Name: "y", Now: now, Scheduled: quota.Line{Waiting: 3}, Waiters: []quota.Waiter{{Promised: now.Add(time.Minute)}}})
		}, OK, "3 wait"},
		"line is old": {func(n *notes) { n.judgeQuota(quota.State{Name: "y", LongestWait: 2 * time.Hour}) }, Warning, "2h0m0s"},

		"leases without a worker": {func(n *notes) { n.judgeRunning(quota.RunningState{Name: "quota:y", Running: 2}, 0) }, Warning, "no worker runs"},
		"leases with a worker":    {func(n *notes) { n.judgeRunning(quota.RunningState{Name: "quota:y", Running: 2}, 1) }, OK, "2 run"},
		"running line is old": {func(n *notes) {
			n.judgeRunning(quota.RunningState{Name: "quota:y", Running: 2, Waiting: 1, LongestWait: time.Hour}, 1)
		}, Warning, "waited"},

		"pool without endpoints": {func(n *notes) { n.judgePool(allocation.State{Name: "p"}) }, Broken, "no endpoint"},
		"pool all parked":        {func(n *notes) { n.judgePool(allocation.State{Name: "p", Total: 3}) }, Broken, "none of 3"},
		"pool nearly empty":      {func(n *notes) { n.judgePool(allocation.State{Name: "p", Total: 30, Eligible: 2}) }, Warning, "2 of 30"},
		"pool of one":            {func(n *notes) { n.judgePool(allocation.State{Name: "p", Total: 1, Eligible: 1}) }, OK, "1 of 1"},
		"wrong passwords":        {func(n *notes) { n.judgePool(allocation.State{Name: "p", Total: 4, Eligible: 3, AuthFailed: 1}) }, Warning, "refuse our user"},

		"tick late": {func(n *notes) {
			n.judgeSchedules([]scheduler.State{{Name: "s", Due: ago(2 * time.Minute), Hold: "full"}}, now)
		}, Warning, "2m0s"},
		"tick just due": {func(n *notes) { n.judgeSchedules([]scheduler.State{{Name: "s", Due: ago(time.Second)}}, now) }, OK, "none behind"},
		"feed stale": {func(n *notes) {
			n.judgeFeeds([]feedFacts{{name: "f", age: time.Hour, ttl: time.Minute, fault: "fetch: 500"}})
		}, Warning, "last error: fetch: 500"},
		"feed empty": {func(n *notes) { n.judgeFeeds([]feedFacts{{name: "f", empty: true}}) }, Warning, "never"},
		"feed new": {func(n *notes) {
			n.judgeFeeds([]feedFacts{{name: "f", empty: true, first: now}, {name: "g", fresh: true}})
		}, OK, "1 wait for their first tick"},
		"feed new, failed": {func(n *notes) { n.judgeFeeds([]feedFacts{{name: "f", empty: true, first: now, fault: "x"}}) }, Warning, "last error: x"},
		"feed fresh":       {func(n *notes) { n.judgeFeeds([]feedFacts{{name: "f", fresh: true}}) }, OK, "none stale"},
		"no worker":        {processes(false), Broken, "no worker"},
		"no scheduler":     {processes(true, with(func(p *roster.Process) { p.Roles = []string{"worker"} })), Broken, "no scheduler"},
		"another config":   {processes(true, with(func(p *roster.Process) { p.Config = "d" })), Warning, "another config"},
		"another version":  {processes(true, with(func(p *roster.Process) { p.Version = "w" })), Warning, "version w"},
		"two Redis":        {processes(true, process, with(func(p *roster.Process) { p.Redis = "other" })), Broken, "2 different"},
		"it refuses":       {processes(true, with(func(p *roster.Process) { p.Refused = "lost" })), Broken, "lost"},
		"they run":         {processes(true, process), OK, "1 run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &notes{}
			tc.judge(n)
			worst, text := OK, ""
			rank := map[Severity]int{OK: 0, Unknown: 1, Warning: 2, Broken: 3}
			for _, f := range n.all {
				if rank[f.Severity] > rank[worst] {
					worst = f.Severity
				}
				text += f.What + "\n"
				if (f.Severity == Warning || f.Severity == Broken) && f.Do == "" {
					t.Errorf("%+v says nothing of what to do", f)
				}
			}
			if worst != tc.want || !strings.Contains(text, tc.says) {
				t.Errorf("%s: %s, want %s and %q", worst, text, tc.want, tc.says)
			}
		})
	}
}

package doctor

import (
	"fmt"
	"strings"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/roster"
	"feedwarden/quota"
	"feedwarden/scheduler"
)

const (
	// asynqArchive is how many archived tasks asynq 0.26 keeps of a queue; then the oldest go.
	asynqArchive = 10_000
	tooLong      = 10 * time.Minute // for a place in a line of those who run
	lineLong     = time.Hour
	tickLate     = time.Minute
)

// queueFacts is how full a queue is.
type queueFacts struct {
	name           string
	size, archived int
	limit          int64
	waits          bool // pending jobs
	latency        time.Duration
}

func (n *notes) judgeQueue(q queueFacts) {
	text := counted(q.size, "job")
	if q.limit > 0 {
		text += fmt.Sprintf(" of at most %d", q.limit)
	}
	switch {
	case q.limit > 0 && int64(q.size) >= q.limit:
		n.add("queue", q.name, Broken, "start more workers, raise queues."+q.name+".limit, or cancel jobs (feedwarden jobs cancel)", "%s: it refuses new ones", text)
	case q.limit > 0 && float64(q.size) > 0.8*float64(q.limit):
		n.add("queue", q.name, Warning, "start more workers, or raise queues."+q.name+".limit", "%s: it is nearly full", text)
	case q.waits && q.latency > tooLong:
		n.add("queue", q.name, Warning, "see whether workers run; start more", "%s, and the first has waited for %s", text, q.latency.Round(time.Second))
	default:
		n.add("queue", q.name, OK, "", "%s", text)
	}
	if q.archived >= asynqArchive*9/10 {
		n.add("queue.archive", q.name, Warning, "look at them in /monitor/, and delete them there", "%s: asynq keeps %d and drops the oldest", counted(q.archived, "archived task"), asynqArchive)
	}
}

func (n *notes) judgeQuota(s quota.State) {
	switch {
	case !s.BlockedUntil.IsZero():
		n.add("quota", s.Name, Warning, "wait, or feedwarden quota unblock "+s.Name, "closed until %s: %s", s.BlockedUntil.Format(time.RFC3339), s.BlockReason)
	case len(s.Waiters) > 0 && s.Waiters[0].Promised.Sub(s.Now) > lineLong:
		n.add("quota", s.Name, Warning, "feedwarden plan says which schedules ask for more than it gives",
			"used up: %d wait in its line, and the first gets its units at %s", s.Scheduled.Waiting+s.Interactive.Waiting, s.Waiters[0].Promised.Format(time.RFC3339))
	case s.LongestWait > lineLong:
		n.add("quota", s.Name, Warning, "feedwarden plan says which schedules ask for more than it gives",
			"%d wait in its line, the longest for %s", s.Scheduled.Waiting+s.Interactive.Waiting, s.LongestWait.Round(time.Second))
	default:
		n.add("quota", s.Name, OK, "", "%d units left, %d wait", s.Remaining, s.Scheduled.Waiting+s.Interactive.Waiting)
	}
}

// judgeRunning says whether leases of a running limit are stuck.
func (n *notes) judgeRunning(s quota.RunningState, workers int) {
	switch {
	case s.Running > 0 && workers == 0:
		n.add("running", s.Name, Warning, "start a worker; the leases end by themselves", "no worker runs, and leases are held: %d; the next ends at %s", s.Running, s.NextExpiry.Format(time.RFC3339))
	case s.Waiting > 0 && s.LongestWait > tooLong:
		n.add("running", s.Name, Warning, "raise the limit, or see what the jobs that run wait for (feedwarden jobs list --state running)",
			"%d of %d run, and the first in line has waited for %s", s.Running, s.Limit, s.LongestWait.Round(time.Second))
	case !s.BlockedUntil.IsZero():
		n.add("running", s.Name, Warning, "wait, or feedwarden quota unblock "+strings.TrimPrefix(s.Name, "quota:"), "closed until %s: %s", s.BlockedUntil.Format(time.RFC3339), s.BlockReason)
	case s.Running > 0 || s.Waiting > 0:
		n.add("running", s.Name, OK, "", "%d run, %d wait", s.Running, s.Waiting)
	}
}

func (n *notes) judgePool(s allocation.State) {
	see := "feedwarden proxies list " + s.Name
	switch {
	case s.Total == 0:
		n.add("pool", s.Name, Broken, "feedwarden proxies import "+s.Name+" FILE, or set pools."+s.Name+".list", "it has no endpoint")
	case s.Eligible == 0:
		n.add("pool", s.Name, Broken, see+" says why; add endpoints", "none of %d endpoints can be taken: jobs of its feeds sleep", s.Total)
	case s.Eligible < 2 && s.Total > 1 || s.Eligible*10 < s.Total:
		n.add("pool", s.Name, Warning, see+" says why; add endpoints", "only %d of %d endpoints can be taken", s.Eligible, s.Total)
	default:
		n.add("pool", s.Name, OK, "", "%d of %d endpoints can be taken", s.Eligible, s.Total)
	}
	if s.AuthFailed > 0 {
		n.add("pool.auth", s.Name, Warning, "correct their passwords in the list, then feedwarden proxies restore "+s.Name+" ID", "%d endpoints refuse our user or password", s.AuthFailed)
	}
}

// judgeSchedules tells of the schedules that are behind, and counts the rest.
func (n *notes) judgeSchedules(all []scheduler.State, now time.Time) {
	late := 0
	for _, s := range all {
		if s.Due == nil || now.Sub(*s.Due) < tickLate {
			continue
		}
		late++
		do, hold := "see whether a scheduler runs, and its log", s.Hold
		switch s.Hold {
		case "overlap":
			do = "see what the last tick's job waits for (feedwarden jobs list --feed " + s.Feed + ")"
		case "full":
			do = "its queue is full: start more workers"
		case "":
			hold = "nobody says why"
		}
		n.add("schedule", s.Name, Warning, do, "a tick has waited for %s to become a job: %s", now.Sub(*s.Due).Round(time.Second), hold)
	}
	if late == 0 && len(all) > 0 {
		n.add("schedule", "", OK, "", "%s, none behind", counted(len(all), "schedule"))
	}
}

// feedFacts is how old a feed is.
type feedFacts struct {
	name     string
	fresh    bool // or not fetched by itself
	empty    bool
	age, ttl time.Duration
	fault    string
	first    time.Time // its first tick, where that is still to come
}

func (n *notes) judgeFeeds(all []feedFacts) {
	bad, young, first := 0, 0, time.Time{}
	for _, f := range all {
		if f.fresh {
			continue
		}
		if f.empty && f.fault == "" && !f.first.IsZero() {
			if young++; first.IsZero() || f.first.Before(first) {
				first = f.first
			}
			continue
		}
		bad++
		what := fmt.Sprintf("%s old, and its ttl is %s", f.age.Round(time.Second), f.ttl)
		if f.empty {
			what = "it has never been fetched"
		}
		if f.fault != "" {
			what += "; last error: " + f.fault
		}
		n.add("feed", f.name, Warning, "feedwarden jobs list --feed "+f.name+" says what its job waits for", "%s", what)
	}
	what := fmt.Sprintf("%d feeds", len(all))
	if bad == 0 {
		what += ", none stale"
	}
	if young > 0 {
		what += fmt.Sprintf("; %d wait for their first tick, at %s the next", young, first.Format(time.RFC3339))
	}
	if bad == 0 || young > 0 {
		n.add("feed", "", OK, "", "%s", what)
	}
}

// judgeProcesses compares what runs with the config and with each other.
func (n *notes) judgeProcesses(all []roster.Process, workers int, wantScheduler bool, config, version string) {
	count, redis := map[string]int{}, map[string]bool{}
	for _, p := range all {
		who := fmt.Sprintf("%s on %s, pid %d", strings.Join(p.Roles, "+"), p.Host, p.PID)
		for _, r := range p.Roles {
			count[r]++
		}
		if p.Redis != "" {
			redis[p.Redis] = true
		}
		if p.Refused != "" {
			n.add("process.redis", who, Broken, "see redis.primary", "it writes nothing to Redis: %s", p.Refused)
		}
		if p.Config != config {
			n.add("process.config", who, Warning, "send it SIGHUP, or restart it, with this file; paths count too", "it runs another config than this one")
		}
		if p.Version != version {
			n.add("process.version", who, Warning, "finish the upgrade", "it is version %s, this is %s", p.Version, version)
		}
	}
	if len(redis) > 1 {
		n.add("process.redis", "", Broken, "see that all processes have the same redis.url, and that a failover has ended", "the processes work with %d different Redis servers", len(redis))
	}
	if count["worker"] = max(count["worker"], workers); count["worker"] == 0 {
		n.add("worker", "", Broken, "start feedwarden worker (or serve)", "no worker runs: no job is done")
	} else {
		n.add("worker", "", OK, "", "%d run", count["worker"])
	}
	switch {
	case count["scheduler"] > 0:
		n.add("scheduler", "", OK, "", "%d run", count["scheduler"])
	case wantScheduler:
		n.add("scheduler", "", Broken, "start feedwarden scheduler (or serve)", "no scheduler runs: no tick becomes a job")
	}
}

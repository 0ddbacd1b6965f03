package web

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"feedwarden/internal/units"
	"feedwarden/jobs"
)

// metricsAge is how old a reading may be: several scrapers cost Redis one.
const metricsAge = 2 * time.Second

// newMetrics is the handler of /metrics, with a registry of its own. What comes
// from Redis is the same on every web server: take it from one of them, or with max().
func newMetrics(shots *snapshots, version string, redis func() RedisIdentity) (http.Handler, error) {
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{shots: shots, version: version, redis: redis},
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("web: metrics: %w", err)
		}
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4}), nil
}

// collector turns a snapshot into metrics. Labels are names of the config and
// words of ours, so their number is bounded by the config.
type collector struct {
	shots   *snapshots
	version string
	redis   func() RedisIdentity // nil: it is not known
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("feedwarden_"+name, help, labels, nil)
}

var (
	buildInfo = desc("build_info", "The version that runs; always 1.", "version", "goversion")
	redisUp   = desc("redis_up", "1 when Redis answered the last reading, else 0. All that follows is absent while it is 0.")
	unread    = desc("unread_parts", "Parts of the last reading that failed; the log says which.")

	redisInfo    = desc("redis_info", "The Redis that this process works with; always 1.", "mode", "server", "version", "run_id", "role")
	redisChanges = desc("redis_primary_changes_total", "How often the primary's run ID has changed since this process began.")
	redisRefused = desc("redis_writes_refused", "1 while this process writes nothing to Redis, since it is a replica or lacks what was written before, else 0.")
	processes    = desc("processes", "Processes that run, by role; one with several roles counts in each.", "role")

	feedAge     = desc("feed_age_seconds", "Time since a feed's newest version was fetched or confirmed. Absent while it has none.", "feed")
	feedTTL     = desc("feed_ttl_seconds", "The age up to which a feed is fresh; 0 is for ever.", "feed")
	feedVersion = desc("feed_version", "The number of a feed's newest version; 0 while it has none.", "feed")
	feedItems   = desc("feed_items", "Items in a feed's newest version.", "feed")
	feedState   = desc("feed_state", "1 for the state that a feed is in, 0 for the others.", "feed", "state")
	feedFailing = desc("feed_failing", "1 when a feed's last fetch brought nothing, else 0.", "feed")

	sinkDeliveries = desc("sink_deliveries_total", "Versions that arrived at a sink.", "feed", "sink")
	sinkFailures   = desc("sink_failures_total", "Tries of deliveries that failed.", "feed", "sink")
	sinkLost       = desc("sink_lost_total", "Versions that a sink did not get and that are not tried again.", "feed", "sink")
	sinkFailing    = desc("sink_failing", "1 while a sink has not got its version, and nothing newer, since a try failed; else 0.", "feed", "sink")
	sinkBehind     = desc("sink_behind_versions", "How many versions the newest is ahead of the newest that arrived at a sink.", "feed", "sink")

	quotaLimit     = desc("quota_limit_units", "Units that a window allows.", "quota", "window")
	quotaUsed      = desc("quota_used_units", "Units that a window counts now.", "quota", "window")
	quotaRemaining = desc("quota_remaining_units", "Units that all windows of a quota have left.", "quota")
	quotaReserve   = desc("quota_reserve_units", "The last units of a quota, kept for interactive charges.", "quota")
	quotaWaiting   = desc("quota_waiting", "Waiters in a quota's line.", "quota", "priority")
	quotaLongest   = desc("quota_longest_wait_seconds", "How long ago the longest waiting first asked.", "quota")
	quotaBlocked   = desc("quota_blocked", "1 while a quota is closed for everybody, else 0.", "quota")
	quotaGrants    = desc("quota_grants_total", "Charges granted.", "quota")
	quotaRefusals  = desc("quota_refusals_total", "Charges refused.", "quota")
	quotaRefunds   = desc("quota_refunds_total", "Charges given back.", "quota")
	quotaUnits     = desc("quota_granted_units_total", "Units granted.", "quota")
	quotaBack      = desc("quota_refunded_units_total", "Units given back.", "quota")
	quotaBlocks    = desc("quota_blocks_total", "How often a quota was closed for everybody.", "quota")
	quotaRelease   = desc("quota_next_release_timestamp_seconds", "When a window of a quota next counts less. Absent while none counts anything.", "quota")
	quotaSnoozes   = desc("quota_snoozes", "Charges granted, by how often each was refused before.", "quota")
	quotaLateness  = desc("quota_lateness_seconds", "Waiters granted, by how long after its promised instant each came back.", "quota")
	quotaRunning   = desc("quota_running", "Jobs of a quota that run now.", "quota")
	quotaAtMost    = desc("quota_running_limit", "How many jobs of a quota may run at a time. Absent where there is no limit.", "quota")
	quotaRunWaits  = desc("quota_running_waiting", "Jobs that wait until fewer jobs of a quota run.", "quota")

	poolEndpoints = desc("pool_endpoints", "Endpoints of a pool by state; their sum is all of them.", "pool", "state")

	scheduleLateness = desc("schedule_lateness_seconds", "How late a schedule's last tick became a job. Absent while none has.", "schedule")
	scheduleOverdue  = desc("schedule_overdue_seconds", "How long a schedule's oldest tick has waited to become a job; 0 while none waits.", "schedule")
	scheduleNext     = desc("schedule_next_fire_timestamp_seconds", "When a schedule's next tick is due, jitter and phase included. Absent in a pause without end.", "schedule")
	schedulePaused   = desc("schedule_paused", "1 while a schedule is paused, else 0.", "schedule")
	scheduleTicks    = desc("schedule_ticks_total", "Ticks of a schedule, by what became of them: dispatched, skipped, missed.", "schedule", "outcome")

	queueJobs = desc("queue_jobs", "Jobs in a queue, by asynq's state; a snoozed job is in retry.", "queue", "state")
	jobEvents = desc("job_events_total", "What has happened to jobs: how they ended, snoozes, retries, what was recovered and set aside.", "event")
)

// jobEventNames bound the label: the counters in Redis may be a newer binary's.
var jobEventNames = []string{
	string(jobs.Done), string(jobs.Failed), string(jobs.Expired), string(jobs.Cancelled),
	string(jobs.Snoozed), string(jobs.Retrying), "recovered", "set_aside",
}

var allMetrics = []*prometheus.Desc{
	buildInfo, redisUp, unread,
	feedAge, feedTTL, feedVersion, feedItems, feedState, feedFailing,
	sinkDeliveries, sinkFailures, sinkLost, sinkFailing, sinkBehind,
	quotaLimit, quotaUsed, quotaRemaining, quotaReserve, quotaWaiting, quotaLongest, quotaBlocked, quotaGrants, quotaRefusals, quotaRefunds,
	quotaUnits, quotaBack, quotaBlocks, quotaRelease, quotaSnoozes, quotaLateness, quotaRunning, quotaAtMost, quotaRunWaits,
	poolEndpoints, queueJobs, jobEvents,
	redisInfo, redisChanges, redisRefused, processes, scheduleLateness, scheduleOverdue, scheduleNext, schedulePaused, scheduleTicks,
}

// Describe names every metric that there can be.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range allMetrics {
		ch <- d
	}
}

// Collect reads Redis, or a reading that is at most two seconds old.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(buildInfo, 1, c.version, runtime.Version())
	if c.redis != nil {
		id := c.redis()
		gauge(redisInfo, 1, id.Mode, id.Server, id.Version, id.RunID, id.Role)
		counter(redisChanges, id.Changes)
		gauge(redisRefused, oneIf(id.Refused != ""))
	}
	s, err := c.shots.all.get(context.Background(), metricsAge)
	if err != nil || s.RedisErr != nil {
		gauge(redisUp, 0)
		return
	}
	gauge(redisUp, 1)
	gauge(unread, float64(len(s.faults())))
	for _, f := range s.Feeds {
		collectFeed(gauge, f)
		collectSinks(gauge, counter, f)
	}
	for _, q := range s.Quotas {
		if q.Err == nil {
			collectQuota(gauge, counter, q.View)
			ch <- constHistogram(quotaSnoozes, q.View.Snoozes, q.Name)
			ch <- constHistogram(quotaLateness, q.View.Lateness, q.Name)
		}
	}
	for _, p := range s.Pools {
		if p.Err == nil {
			gauge(poolEndpoints, float64(p.View.Eligible), p.Name, "eligible")
			gauge(poolEndpoints, float64(p.View.Quarantined), p.Name, "quarantined")
			gauge(poolEndpoints, float64(p.View.AuthFailed), p.Name, "auth_failed")
			gauge(poolEndpoints, float64(p.View.Disabled), p.Name, "disabled")
			gauge(poolEndpoints, float64(p.View.Candidates), p.Name, "candidate")
		}
	}
	for _, q := range s.Queues {
		if q.Err == nil {
			gauge(queueJobs, float64(q.View.Pending), q.Name, "pending")
			gauge(queueJobs, float64(q.View.Active), q.Name, "active")
			gauge(queueJobs, float64(q.View.Scheduled), q.Name, "scheduled")
			gauge(queueJobs, float64(q.View.Retry), q.Name, "retry")
			gauge(queueJobs, float64(q.View.Archived), q.Name, "archived")
			gauge(queueJobs, float64(q.View.Completed), q.Name, "completed")
		}
	}
	for _, v := range s.Schedules {
		collectSchedule(gauge, counter, v, s.At)
	}
	if s.ProcessesErr == nil {
		count := map[string]int{}
		for _, p := range s.Processes {
			for _, role := range p.Roles {
				count[role]++
			}
		}
		for _, role := range []string{"web", "scheduler", "worker"} {
			gauge(processes, float64(count[role]), role)
		}
	}
	if s.CountersErr == nil {
		for _, name := range jobEventNames {
			counter(jobEvents, s.Counters[name], name)
		}
	}
}

type gaugeFunc func(d *prometheus.Desc, v float64, labels ...string)

type counterFunc func(d *prometheus.Desc, v int64, labels ...string)

func collectFeed(gauge gaugeFunc, f FeedView) {
	gauge(feedTTL, float64(f.TTLMS)/1000, f.Name)
	gauge(feedItems, float64(f.Items), f.Name)
	if f.Version == nil {
		gauge(feedVersion, 0, f.Name)
	} else {
		gauge(feedVersion, float64(*f.Version), f.Name)
		gauge(feedAge, float64(f.AgeMS)/1000, f.Name)
	}
	for _, state := range []string{"fresh", "stale", "updating", "empty"} {
		gauge(feedState, oneIf(f.State == state), f.Name, state)
	}
	gauge(feedFailing, oneIf(f.LastError != ""), f.Name)
}

func collectQuota(gauge gaugeFunc, counter counterFunc, q Quota) {
	seen := map[string]int{}
	for _, w := range q.Windows {
		name := windowName(w)
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s#%d", name, seen[name]) // two windows of one length
		}
		gauge(quotaLimit, float64(w.Limit), q.Name, name)
		gauge(quotaUsed, float64(w.Used), q.Name, name)
	}
	gauge(quotaRemaining, float64(q.Remaining), q.Name)
	gauge(quotaReserve, float64(q.Reserve), q.Name)
	gauge(quotaWaiting, float64(q.Line.Scheduled), q.Name, "scheduled")
	gauge(quotaWaiting, float64(q.Line.Interactive), q.Name, "interactive")
	gauge(quotaLongest, float64(q.Line.LongestWaitMS)/1000, q.Name)
	gauge(quotaBlocked, oneIf(q.BlockedUntil != nil), q.Name)
	counter(quotaGrants, q.Grants, q.Name)
	counter(quotaRefusals, q.Refusals, q.Name)
	counter(quotaRefunds, q.Refunds, q.Name)
	counter(quotaUnits, q.Units, q.Name)
	counter(quotaBack, q.RefundedUnits, q.Name)
	counter(quotaBlocks, q.Blocks, q.Name)
	if q.NextReleaseAt != nil {
		gauge(quotaRelease, float64(q.NextReleaseAt.UnixMicro())/1e6, q.Name)
	}
	if r := q.Running; r != nil {
		gauge(quotaRunning, float64(r.Running), q.Name)
		gauge(quotaRunWaits, float64(r.Waiting), q.Name)
		if r.Limit != nil {
			gauge(quotaAtMost, float64(*r.Limit), q.Name)
		}
	}
}

func collectSchedule(gauge gaugeFunc, counter counterFunc, v ScheduleView, now time.Time) {
	due := time.Duration(0)
	if v.DueAt != nil {
		due = max(now.Sub(*v.DueAt), 0)
	}
	gauge(scheduleOverdue, due.Seconds(), v.Name)
	if v.LastAt != nil {
		gauge(scheduleLateness, float64(v.LatenessMS)/1000, v.Name)
	}
	if v.NextFireAt != nil {
		gauge(scheduleNext, float64(v.NextFireAt.UnixMilli())/1000, v.Name)
	}
	gauge(schedulePaused, oneIf(v.State == "paused"), v.Name)
	counter(scheduleTicks, v.Dispatched, v.Name, "dispatched")
	counter(scheduleTicks, v.Skipped, v.Name, "skipped")
	counter(scheduleTicks, v.Missed, v.Name, "missed")
}

func constHistogram(d *prometheus.Desc, h Histogram, labels ...string) prometheus.Metric {
	buckets := map[float64]uint64{}
	for _, b := range h.Buckets {
		if b.UpTo != nil { // the last one goes without saying
			buckets[*b.UpTo] = uint64(b.Count)
		}
	}
	return prometheus.MustNewConstHistogram(d, uint64(h.Count), h.Sum, buckets, labels...)
}

// windowName is a window as the config writes it: 24h, 1m, day.
func windowName(w Used) string {
	if w.Calendar != "" {
		return w.Calendar
	}
	return units.FormatDuration(time.Duration(w.PerMS) * time.Millisecond)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

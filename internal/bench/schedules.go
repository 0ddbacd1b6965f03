package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"feedwarden/internal/luarun"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
	"feedwarden/scheduler"
)

// lateness is a row of the schedules' table: how long after its instant each
// tick was enqueued (or, of bare robfig, called).
type lateness struct {
	name, shape, aim string
	n                int
	p50, p99         time.Duration
	cpu              time.Duration // this process's, from the load to the last tick
	bytes            float64       // of heap a schedule, its config aside
}

type latenesses struct {
	n    int
	rows []lateness
}

func (l latenesses) print() {
	fmt.Printf("\nSchedules: each is due once; %d at once or spread over a minute, and what is marked at its own size\n", l.n)
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "late p50\tp99\tCPU\tB a schedule\tschedules\tdue\t\taim or size\t")
	for _, r := range l.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%d\t%s\t%s\t%s\t\n", r.p50.Round(100*time.Microsecond), r.p99.Round(100*time.Microsecond),
			r.cpu.Round(10*time.Millisecond), r.bytes, r.n, r.shape, r.name, r.aim)
	}
	_ = w.Flush()
}

type scheduleBench struct {
	ctx context.Context //nolint:containedctx // the benchmark's own, for its rows
	srv *server
	n   int
}

// benchSchedules measures lateness beside asynq's own Scheduler and bare
// robfig/cron. Those two cannot name a second of a minute in five fields, so
// their ticks come by a seconds field or by @every, at the same rate.
func benchSchedules(ctx context.Context, srv *server, n int) (latenesses, error) {
	b := &scheduleBench{ctx: ctx, srv: srv, n: n}
	out := latenesses{n: n}
	for _, f := range []func() (lateness, error){
		func() (lateness, error) { return b.bareCron(true) },
		func() (lateness, error) { return b.asynqScheduler(n, 0) },
		func() (lateness, error) { return b.feedwarden("feedwarden into asynq", true, b.asynqQueue) },
		func() (lateness, error) { return b.feedwarden("feedwarden, its whole way to a job", true, b.jobsQueue) },
		func() (lateness, error) { return b.bareCron(false) },
		func() (lateness, error) { return b.asynqScheduler(n/4, 15*time.Second) },
		func() (lateness, error) { return b.feedwarden("feedwarden into asynq", false, b.asynqQueue) },
	} {
		r, err := f()
		if err != nil {
			return out, err
		}
		out.rows = append(out.rows, r)
	}
	return out, nil
}

// record collects the lateness of ticks that are due within a time.
type record struct {
	from, to atomic.Int64 // Unix ns; due instants outside are not counted
	next     atomic.Int64
	late     []time.Duration
	failed   atomic.Pointer[error]
}

func newRecord(n int) *record { return &record{late: make([]time.Duration, n)} }

func (r *record) expect(from, to time.Time) { r.from.Store(from.UnixNano()); r.to.Store(to.UnixNano()) }

func (r *record) done(due time.Time, err error) {
	at := time.Now()
	if err != nil {
		r.failed.CompareAndSwap(nil, &err)
		return
	}
	if ns := due.UnixNano(); ns < r.from.Load() || ns >= r.to.Load() {
		return
	}
	if i := r.next.Add(1) - 1; i < int64(len(r.late)) {
		r.late[i] = at.Sub(due)
	}
}

// wait is until all have come.
func (r *record) wait(ctx context.Context, deadline time.Time) error {
	for r.next.Load() < int64(len(r.late)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			err := errors.New("no tick failed")
			if p := r.failed.Load(); p != nil {
				err = *p
			}
			return fmt.Errorf("%d of %d ticks came in time: %w", r.next.Load(), len(r.late), err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func (r *record) row(name, shape string, cpu time.Duration, bytes float64) lateness {
	slices.Sort(r.late)
	return lateness{name: name, shape: shape, n: len(r.late), p50: r.late[len(r.late)/2], p99: r.late[len(r.late)*99/100], cpu: cpu, bytes: bytes}
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func cpuUsed() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func shape(atOnce bool, over time.Duration) string {
	if atOnce {
		return "at once"
	}
	return "over " + over.String()
}

// settleTime is how long the slowest may be behind before a row gives up.
const settleTime = time.Minute

// bareCron is robfig/cron with jobs that only look at the clock.
func (b *scheduleBench) bareCron(atOnce bool) (lateness, error) {
	over := 15 * time.Second // of its minute: the rest would be the same
	n := b.n
	if !atOnce {
		n /= 4
	}
	r := newRecord(n)
	before := heap()
	c := cron.New(cron.WithSeconds(), cron.WithLocation(time.UTC))
	lead := 4 * time.Second
	from := time.Now().Add(lead).Truncate(time.Second)
	to := from.Add(over)
	if atOnce {
		to = from.Add(time.Second)
	}
	r.expect(from, to)
	for i := range b.n {
		sec := from.Second()
		if !atOnce {
			sec = (sec + i%60) % 60
		}
		if _, err := c.AddFunc(strconv.Itoa(sec)+" * * * * *", func() {
			now := time.Now()
			due := now.Add(-time.Duration(((now.Second()-sec)+60)%60)*time.Second - time.Duration(now.Nanosecond()))
			r.done(due, nil)
		}); err != nil {
			return lateness{}, err
		}
	}
	c.Start()
	defer c.Stop()
	time.Sleep(lead / 4) // it sorts them all first
	bytes := (heap() - before) / float64(b.n)
	if late := time.Since(from); late > 0 {
		return lateness{}, fmt.Errorf("robfig/cron was %s late with %d entries", late, b.n)
	}
	used := cpuUsed()
	if err := r.wait(b.ctx, to.Add(settleTime)); err != nil {
		return lateness{}, fmt.Errorf("robfig/cron: %w", err)
	}
	row := r.row("bare robfig/cron, no enqueue", shape(atOnce, time.Minute), cpuUsed()-used, bytes)
	row.n = b.n
	if !atOnce {
		row.aim = "its first 15s"
	}
	return row, nil
}

// fresh is an empty Redis and a client of it that does not give up while many
// wait for a connection.
func (b *scheduleBench) fresh() (*redis.Client, error) {
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: b.srv.sock, PoolSize: 80, PoolTimeout: settleTime})
	return rdb, rdb.FlushAll(b.ctx).Err()
}

// asynqScheduler is asynq's own: n entries due at once, or spread.
func (b *scheduleBench) asynqScheduler(n int, over time.Duration) (lateness, error) {
	rdb, err := b.fresh()
	if err != nil {
		return lateness{}, err
	}
	defer rdb.Close()
	r := newRecord(n)
	var start time.Time
	first := 10 * time.Second // from its start to the first tick; the last comes before the first comes again
	if over > 0 {
		first = over + time.Second
	}
	due := func(i int) time.Duration {
		return first + time.Duration(i)*time.Second%max(over, time.Second)
	}
	tasks := make([]*asynq.Task, n)
	for i := range tasks {
		tasks[i] = asynq.NewTask(jobs.TaskType, []byte(strconv.Itoa(i)))
	}
	before := heap()
	s := asynq.NewSchedulerFromRedisClient(rdb, &asynq.SchedulerOpts{
		LogLevel: asynq.FatalLevel,
		PostEnqueueFunc: func(info *asynq.TaskInfo, err error) {
			if err != nil {
				r.done(time.Time{}, err)
				return
			}
			i, _ := strconv.Atoi(string(info.Payload))
			r.done(start.Add(due(i)), nil)
		},
	})
	for i, t := range tasks {
		if _, err := s.Register("@every "+due(i).String(), t, asynq.Queue(jobs.QueueScheduled)); err != nil {
			return lateness{}, err
		}
	}
	for time.Now().Nanosecond() > int(100*time.Millisecond) {
		time.Sleep(time.Millisecond) // it counts from the whole second of its start
	}
	start = time.Now().Truncate(time.Second)
	r.expect(start, start.Add(first+max(over, time.Second)))
	if err := s.Start(); err != nil {
		return lateness{}, err
	}
	defer s.Shutdown()
	bytes := (heap() - before) / float64(n)
	used := cpuUsed()
	if err := r.wait(b.ctx, start.Add(first+over+2*settleTime)); err != nil {
		return lateness{}, fmt.Errorf("asynq.Scheduler: %w", err)
	}
	row := r.row("asynq.Scheduler", shape(over == 0, over), cpuUsed()-used, bytes)
	if over > 0 {
		row.aim = "its size for the same rate"
	}
	return row, nil
}

// timed notes when an Enqueuer has done with a tick.
type timed struct {
	scheduler.Enqueuer
	r *record
}

func (t timed) EnqueueTick(ctx context.Context, tick scheduler.Tick) error {
	err := t.Enqueuer.EnqueueTick(ctx, tick)
	t.r.done(tick.FireAt, err)
	return err
}

// asynqOnly makes asynq tasks under the ticks' IDs.
type asynqOnly struct{ c *asynq.Client }

func (q asynqOnly) EnqueueTick(ctx context.Context, t scheduler.Tick) error {
	_, err := q.c.EnqueueContext(ctx, asynq.NewTask(jobs.TaskType, []byte(`{"feed":"`+t.Feed+`"}`)),
		asynq.TaskID(t.ID()), asynq.Queue(jobs.QueueScheduled), asynq.Retention(time.Hour))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil
	}
	return err
}

func (q asynqOnly) Busy(context.Context, string) (string, bool, error) { return "", false, nil }

func (b *scheduleBench) asynqQueue(rdb *redis.Client, _ []scheduler.Entry) (scheduler.Enqueuer, error) {
	return asynqOnly{asynq.NewClientFromRedisClient(rdb)}, nil
}

// wholeWay is what a process of Feedwarden does.
type wholeWay struct{ *jobs.Client }

func (q wholeWay) EnqueueTick(ctx context.Context, t scheduler.Tick) error {
	return q.Client.EnqueueTick(ctx, t.Feed, t.ID(), t.Instant)
}

func (b *scheduleBench) jobsQueue(rdb *redis.Client, entries []scheduler.Entry) (scheduler.Enqueuer, error) {
	cfg := jobs.Config{}
	for i := range entries {
		entries[i].Overlap = scheduler.OverlapSkip
		cfg.Feeds = append(cfg.Feeds, jobs.Feed{Name: entries[i].Name, Source: source.Config{Kind: "syndication", URL: "https://example.org/"}})
	}
	c, err := jobs.NewClient(cfg, rdb, feed.New(rdb, luarun.NewDesk(rdb)), nil, slog.New(slog.DiscardHandler))
	return wholeWay{c}, err
}

// feedwarden runs one dispatcher.
func (b *scheduleBench) feedwarden(name string, atOnce bool, queue func(*redis.Client, []scheduler.Entry) (scheduler.Enqueuer, error)) (lateness, error) {
	rdb, err := b.fresh()
	if err != nil {
		return lateness{}, err
	}
	defer rdb.Close()
	const lead = 20 * time.Second // for the load
	from := time.Now().Truncate(time.Second).Add(lead)
	phase := from.Sub(from.Truncate(time.Minute))
	entries := make([]scheduler.Entry, b.n)
	for i := range entries {
		entries[i] = scheduler.Entry{Name: fmt.Sprintf("feed-%06d", i), Expression: "@every 1m", Overlap: scheduler.OverlapAllow, Phase: phase}
		if !atOnce {
			entries[i].Phase = (phase + scheduler.PhaseOf(time.Minute, i, b.n)) % time.Minute
		}
	}
	enq, err := queue(rdb, entries)
	if err != nil {
		return lateness{}, err
	}
	r := newRecord(b.n)
	to := from.Add(time.Minute)
	r.expect(from, to)
	before := heap()
	d, err := scheduler.NewDispatcher(rdb, entries, timed{enq, r}, scheduler.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return lateness{}, err
	}
	// From here on nobody but the dispatcher has the config, so the heap's growth is what it needs above that.
	ctx, cancel := context.WithCancel(b.ctx)
	var run sync.WaitGroup
	run.Go(func() { _ = d.Run(ctx) }) // it fails only where it runs already
	defer run.Wait()
	defer cancel()
	loaded := func() bool { return rdb.DBSize(ctx).Val() >= int64(b.n) }
	for !loaded() {
		if time.Now().After(from) {
			return lateness{}, fmt.Errorf("%d schedules were not taken up within %s", b.n, lead)
		}
		time.Sleep(20 * time.Millisecond)
	}
	bytes := (heap() - before) / float64(b.n)
	time.Sleep(time.Until(from.Add(-time.Second)))
	used := cpuUsed()
	if err := r.wait(ctx, to.Add(settleTime)); err != nil {
		return lateness{}, fmt.Errorf("%s: %w", name, err)
	}
	row := r.row(name, shape(atOnce, time.Minute), cpuUsed()-used, bytes)
	row.aim = "p99 ≤ 100ms, ≤ 150 B"
	if atOnce {
		row.aim = "p99 ≤ 4s, ≤ 150 B"
	}
	return row, nil
}

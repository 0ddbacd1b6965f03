package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"

	"go.uber.org/fx"

	"feedwarden/allocation"
	"feedwarden/internal/config"
	"feedwarden/internal/roster"
	"feedwarden/jobs"
	"feedwarden/jobs/probe"
	"feedwarden/quota"
	"feedwarden/scheduler"
)

const (
	// pollEvery is how often a process looks whether its config file changed.
	pollEvery = 2 * time.Second
	// stillFor is how long a changed file must stay as it is: an editor may be writing it.
	stillFor = 200 * time.Millisecond
)

// watch notices that a config is to be read again: SIGHUP came, or the file
// changed. It is made before the file is read for the first time.
type watch struct {
	path string
	seen stamp
	hup  chan os.Signal
}

func newWatch(path string) *watch {
	w := &watch{path: path, seen: stampOf(path), hup: make(chan os.Signal, 1)}
	signal.Notify(w.hup, syscall.SIGHUP)
	return w
}

func (w *watch) close() { signal.Stop(w.hup) }

// stamp tells one state of a file from another; the zero one is of no file.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// wait answers why the config is to be read again; "" when ctx ends.
func (w *watch) wait(ctx context.Context) string {
	pause := pollEvery
	last := w.seen
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ""
		case <-w.hup:
			timer.Stop()
			w.seen = stampOf(w.path)
			return "SIGHUP"
		case <-timer.C:
		}
		now := stampOf(w.path)
		switch {
		case now == w.seen || now == stamp{}: // a file that is away for a moment is being replaced
			pause = pollEvery
		case now != last:
			pause = stillFor
		default:
			w.seen = now
			return "the file changed"
		}
		last = now
	}
}

// reloader puts a changed config to work. What it brings for feeds, schedules,
// quotas and pools holds from then on; the rest waits for a restart.
type reloader struct {
	watch   *watch
	running settings // what the process started with
	now     settings // what holds
	log     *slog.Logger
	stop    context.CancelFunc

	quotas   *quota.Limiter
	pools    *allocation.Pools
	lists    *lists
	webLists *probe.Lists
	catalog  *jobs.Catalog
	jobs     *jobs.Client
	schedule *scheduler.Dispatcher
	forecast *forecaster
	beacon   *roster.Beacon
}

func newReloader(lc fx.Lifecycle, s settings, q *quota.Limiter, p *allocation.Pools, l *lists, w *probe.Lists, c *jobs.Catalog, j *jobs.Client, d *scheduler.Dispatcher, f *forecaster, b *roster.Beacon, log *slog.Logger) *reloader {
	r := &reloader{watch: s.watch, running: s, now: s, log: log, quotas: q, pools: p, lists: l, webLists: w, catalog: c, jobs: j, schedule: d, forecast: f, beacon: b}
	if r.watch == nil {
		return r
	}
	done := make(chan struct{})
	lc.Append(fx.StartStopHook(
		func(start context.Context) {
			// The hook's own context ends with the start.
			ctx, cancel := context.WithCancel(context.WithoutCancel(start))
			r.stop = cancel
			go func() {
				defer close(done)
				for why := r.watch.wait(ctx); why != ""; why = r.watch.wait(ctx) {
					r.reload(ctx, why)
				}
			}()
		},
		func() { r.stop(); <-done },
	))
	return r
}

// reload reads the file and takes it up, or says all that is wrong with it.
func (r *reloader) reload(ctx context.Context, why string) {
	log := r.log.With("file", r.watch.path, "because", why)
	f, err := config.Load(r.watch.path, os.LookupEnv)
	if err == nil {
		err = r.take(ctx, translate(f), log)
	}
	if err != nil {
		log.Error("config not taken up; the old one stays", "error", err)
		return
	}
	for _, w := range f.Warnings {
		log.Warn("config warning", "warning", w.String())
	}
}

// take checks all of a config before it changes anything.
func (r *reloader) take(ctx context.Context, s settings, log *slog.Logger) error {
	if err := fits(s); err != nil {
		return err
	}
	// Quotas and pools before the feeds that they are for, a feed before its schedule.
	if err := r.quotas.Reload(s.quotas); err != nil {
		return err
	}
	if err := r.pools.Reload(s.pools); err != nil {
		return err
	}
	r.lists.set(s.lists)
	r.webLists.Reload(s.probe.Lists)
	if err := r.catalog.Reload(s.jobs.Feeds); err != nil {
		return err
	}
	if err := r.schedule.Reload(s.entries); err != nil {
		return err
	}
	r.forecast.set(s.plan)
	c := compare(r.now.jobs.Feeds, s.jobs.Feeds, func(f jobs.Feed) string { return f.Name })
	e := compare(r.now.entries, s.entries, func(e scheduler.Entry) string { return e.Name })
	q := compare(r.now.quotas, s.quotas, func(q quota.Config) string { return q.Name })
	p := compare(r.now.pools, s.pools, func(p allocation.Config) string { return p.Name })
	r.now = s
	r.beacon.SetConfig(s.digest())
	if p != (change{}) {
		for _, pool := range r.pools.Names() {
			fitPool(ctx, r.pools, pool, log)
		}
	}
	for _, q := range s.quotas {
		// A limit may have been raised: those who wait need not wait for what they were promised.
		if err := r.jobs.WakeLine(ctx, q.Name); err != nil {
			log.Warn("could not wake the line of a quota", "quota", q.Name, "error", err)
		}
	}
	if err := r.jobs.WakeMoved(ctx); err != nil {
		log.Warn("could not wake the jobs whose feeds have another quota", "error", err)
	}
	log.Info("config taken up", "feeds", c, "schedules", e, "quotas", q, "pools", p)
	if keys := needRestart(r.running, s); len(keys) > 0 {
		log.Warn("needs a restart: these keys have changed and do not hold yet", "keys", keys)
	}
	return nil
}

// fits says what the packages would refuse; each check is a constructor that
// does no I/O.
func fits(s settings) error {
	_, q := quota.New(nil, s.quotas)
	_, c := jobs.NewCatalog(s.jobs.Feeds)
	_, d := scheduler.NewDispatcher(nil, s.entries, nil)
	_, p := allocation.New(nil, s.pools)
	return errors.Join(q, p, c, d)
}

// change counts what a reload did to one kind of thing.
type change struct{ added, removed, changed int }

// LogValue is the counts in one group.
func (c change) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("added", c.added), slog.Int("removed", c.removed), slog.Int("changed", c.changed))
}

func compare[T any](old, now []T, name func(T) string) (c change) {
	before := make(map[string]T, len(old))
	for _, o := range old {
		before[name(o)] = o
	}
	for _, n := range now {
		o, ok := before[name(n)]
		switch {
		case !ok:
			c.added++
		case !reflect.DeepEqual(o, n):
			c.changed++
		}
		delete(before, name(n))
	}
	c.removed = len(before)
	return c
}

// needRestart names the keys whose new values wait for a restart.
func needRestart(running, s settings) []string {
	var keys []string
	for _, k := range []struct {
		key      string
		old, now any
	}{
		{"redis.url", running.redis.URL, s.redis.URL},
		{"redis.data", running.redis.Data, s.redis.Data},
		{"web.listen", running.web.Listen, s.web.Listen},
		{"web.tokens", running.web.Tokens, s.web.Tokens},
		{"web.hosts", running.web.Hosts, s.web.Hosts},
		{"web.insecure", running.web.Insecure, s.web.Insecure},
		{"web.base_path", running.web.BasePath, s.web.BasePath},
		{"web.tls", running.web.TLS, s.web.TLS},
		{"worker.concurrency", running.jobs.Concurrency, s.jobs.Concurrency},
		{"worker.interactive_slots", running.jobs.InteractiveSlots, s.jobs.InteractiveSlots},
		{"worker.shutdown", running.jobs.Shutdown, s.jobs.Shutdown},
		{"queues", running.jobs.QueueLimits, s.jobs.QueueLimits},
		{"fetch", running.fetch, s.fetch},
		{"fetch.per_host", running.jobs.PerHost, s.jobs.PerHost},
		{"fetch.per_source", running.jobs.PerSource, s.jobs.PerSource},
		{"web.judge", running.probe.Judge, s.probe.Judge},
	} {
		if !reflect.DeepEqual(k.old, k.now) {
			keys = append(keys, k.key)
		}
	}
	return slices.Clip(keys)
}

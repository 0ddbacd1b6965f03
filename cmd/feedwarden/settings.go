package main

import (
	"strings"
	"sync"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/config"
	"feedwarden/internal/redisconn"
	"feedwarden/jobs"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/probe"
	"feedwarden/jobs/sink"
	"feedwarden/quota"
	"feedwarden/scheduler"
	"feedwarden/scheduler/plan"
	"feedwarden/web"
)

// settings is the config file as the packages want it: only this file knows both.
type settings struct {
	redis   redisconn.Config
	quotas  []quota.Config
	pools   []allocation.Config
	lists   map[string]string // pool → file of its endpoints
	probe   probe.Config
	jobs    jobs.Config
	fetch   fetch.Config
	entries []scheduler.Entry
	web     web.Config
	plan    plan.Config   // what the schedules ask of the quotas
	digest  func() string // of the config
	watch   *watch        // for changes of the file; nil: none are taken up
}

func translate(f *config.File) settings {
	return settings{
		redis:   redisconn.Config{URL: f.Redis.URL.Reveal(), Data: f.Redis.Data},
		quotas:  quotas(f),
		pools:   pools(f),
		lists:   listPaths(f),
		probe:   probeConfig(f),
		jobs:    jobsConfig(f),
		entries: entries(f),
		plan:    planConfig(f),
		fetch: fetch.Config{
			UserAgent: f.Fetch.UserAgent, Timeout: f.Fetch.Timeout, HeaderTimeout: f.Fetch.Timeout, MaxBody: f.Fetch.MaxBody,
			AllowPrivate: f.Fetch.AllowPrivate, AllowHosts: f.Fetch.AllowHosts,
		},
		web:    webConfig(f),
		digest: sync.OnceValue(func() string { return digest(f) }),
	}
}

func quotas(f *config.File) []quota.Config {
	out := make([]quota.Config, 0, len(f.Quotas))
	for _, q := range f.Quotas {
		c := quota.Config{Name: q.Name, Reserve: q.Reserve, Grace: q.Grace}
		for _, w := range q.Windows {
			c.Windows = append(c.Windows, quota.Window{Limit: w.Limit, Per: w.Per, Calendar: w.Calendar, Location: w.Location})
		}
		out = append(out, c)
	}
	return out
}

func pools(f *config.File) []allocation.Config {
	out := make([]allocation.Config, 0, len(f.Pools))
	for _, p := range f.Pools {
		out = append(out, allocation.Config{
			Name: p.Name, Policy: p.Policy, Alone: p.Alone, Start: p.Start, Cap: p.Cap, Lease: p.Lease, Gateway: p.Gateway, Format: p.ListFormat,
			Quarantine:   allocation.QuarantineConfig{Base: p.Quarantine.Base, Max: p.Quarantine.Max, BlameTargetAbove: p.Quarantine.BlameTargetAbove},
			AllowPrivate: p.AllowPrivate, Require: required(p.Require),
		})
	}
	return out
}

func required(r *config.Require) *allocation.Require {
	if r == nil {
		return nil
	}
	return &allocation.Require{HTTPS: r.HTTPS, MaxLatency: r.MaxLatency, Anonymous: r.Anonymous}
}

func listPaths(f *config.File) map[string]string {
	out := map[string]string{}
	for _, p := range f.Pools {
		if p.List != "" {
			out[p.Name] = p.List
		}
	}
	return out
}

func jobsConfig(f *config.File) jobs.Config {
	running := map[string]int64{}
	for _, q := range f.Quotas {
		running[q.Name] = int64(q.Running)
	}
	c := jobs.Config{
		QueueLimits: map[string]int64{}, Concurrency: f.Worker.Concurrency, InteractiveSlots: f.Worker.InteractiveSlots,
		Shutdown: f.Worker.Shutdown, FetchTimeout: f.Fetch.Timeout,
		PerHost: jobs.PerHost{Delay: f.Fetch.PerHost.Delay, Running: int64(f.Fetch.PerHost.Running)}, PerSource: map[string]int64{},
	}
	for kind, n := range f.Fetch.PerSource {
		c.PerSource[kind] = int64(n)
	}
	for name, q := range f.Queues {
		c.QueueLimits[name] = q.Limit
	}
	for _, e := range f.Feeds {
		var sinks []sink.Config
		for _, s := range e.Sinks {
			sinks = append(sinks, s.Config())
		}
		c.Feeds = append(c.Feeds, jobs.Feed{
			Name:   e.Name,
			Source: e.SourceConfig(), Robots: f.Fetch.Robots && e.Source == "html",
			Quota: e.Quota, Cost: e.Cost, QuotaRunning: running[e.Quota], Pool: e.Pool, Attempts: e.Attempts, MaxSnooze: e.MaxSnooze, Expires: e.Expires,
			History: e.History, TTL: e.TTL, Schedule: e.Schedule, Timezone: e.Timezone, Sinks: sinks,
		})
	}
	return c
}

func entries(f *config.File) []scheduler.Entry {
	var out []scheduler.Entry
	for _, e := range f.Feeds {
		if e.Schedule == "" {
			continue
		}
		out = append(out, scheduler.Entry{
			Name: e.Name, Expression: e.Schedule, Timezone: e.Timezone, Feed: e.Name, Jitter: e.Jitter,
			Phase:   scheduler.PhaseOf(e.Spread, e.Index, e.Of),
			CatchUp: scheduler.CatchUp{Policy: e.CatchUp.Policy, Within: e.CatchUp.Within}, Overlap: e.Overlap,
		})
	}
	return append(out, upkeepEntries(f)...)
}

// planConfig is what is planned of a file: its scheduled feeds. Hours are those of
// the host's zone, where a quota has none of its own.
func planConfig(f *config.File) plan.Config {
	c := plan.Config{Quotas: quotas(f), Zone: time.Local}
	ticks := map[string]scheduler.Entry{}
	for _, e := range entries(f) {
		ticks[e.Name] = e
	}
	for _, e := range f.Feeds {
		tick, scheduled := ticks[e.Name]
		if !scheduled {
			continue
		}
		c.Feeds = append(c.Feeds, plan.Feed{
			Name: e.Name, Group: e.Entry, Index: e.Index, Of: e.Of, Tick: tick, Quota: e.Quota, Cost: e.Cost, Pages: e.Pages,
			TTL: e.TTL, TTLAssumed: !e.TTLGiven, MaxSnooze: e.MaxSnooze, Expires: e.Expires,
		})
	}
	return c
}

func webConfig(f *config.File) web.Config {
	c := web.Config{
		Listen: f.Web.Listen, Hosts: f.Web.Hosts, Insecure: f.Web.Insecure, Version: version(),
		BasePath: f.Web.BasePath, TLS: web.TLS{Cert: f.Web.TLS.Cert, Key: f.Web.TLS.Key},
	}
	for _, t := range f.Web.Tokens {
		c.Tokens = append(c.Tokens, web.Token{Name: t.Name, Token: t.Token.Reveal(), Role: web.Role(strings.ToLower(t.Role))})
	}
	return c
}

package main

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"feedwarden/allocation"
	"feedwarden/internal/config"
	"feedwarden/jobs"
	"feedwarden/jobs/probe"
	"feedwarden/scheduler"
)

// Schedules of upkeep stand among those of feeds. A feed's name has no colon.
const (
	checkSchedule = "check:" // and the pool
	listSchedule  = "list:"
)

// upkeepEntries are the schedules of checks and of lists at web addresses. One
// that was missed is made up for once.
func upkeepEntries(f *config.File) []scheduler.Entry {
	var out []scheduler.Entry
	add := func(name string, every time.Duration) {
		out = append(out, scheduler.Entry{
			Name: name, Expression: "@every " + every.String(), Jitter: every / 10, Overlap: scheduler.OverlapAllow,
			CatchUp: scheduler.CatchUp{Policy: scheduler.CatchUpLatest, Within: every},
		})
	}
	for _, p := range f.Pools {
		if p.Require != nil {
			add(checkSchedule+p.Name, p.Require.Every)
		}
		if p.ListURL.Reveal() != "" {
			add(listSchedule+p.Name, p.ListEvery)
		}
	}
	return out
}

// upkeepOf is what a schedule's name asks for.
func upkeepOf(schedule string) (kind, pool string, ok bool) {
	if pool, ok := strings.CutPrefix(schedule, checkSchedule); ok {
		return jobs.CheckProxies, pool, true
	}
	if pool, ok := strings.CutPrefix(schedule, listSchedule); ok {
		return jobs.FetchList, pool, true
	}
	return "", "", false
}

func probeConfig(f *config.File) probe.Config {
	c := probe.Config{Judge: f.Web.Judge, UserAgent: f.Fetch.UserAgent, Lists: map[string]probe.List{}}
	if c.Judge == "" {
		c.Judge, c.Own = ownJudge(f.Web), true
	}
	for _, p := range f.Pools {
		if raw := p.ListURL.Reveal(); raw != "" {
			c.Lists[p.Name] = probe.List{URL: raw, Every: p.ListEvery}
		}
	}
	return c
}

// ownJudge is the judge of a web role on this machine: "" where its port is not
// known, or where it does TLS: its certificate is for a name, which web.judge says.
func ownJudge(w config.WebConfig) string {
	host, port, err := net.SplitHostPort(w.Listen)
	if err != nil || port == "0" || w.TLS.Cert != "" {
		return ""
	}
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + probe.Path
}

// upkeep is what a process needs for the pools' upkeep besides Redis.
var upkeep = fx.Module("upkeep", fx.Provide(
	func(lc fx.Lifecycle, s settings) *probe.Checker {
		c := probe.NewChecker(s.probe)
		lc.Append(fx.StopHook(c.Close))
		return c
	},
	func(lc fx.Lifecycle, s settings, rdb redis.UniversalClient, p *allocation.Pools, log *slog.Logger) *probe.Lists {
		l := probe.NewLists(s.probe.Lists, s.fetch, rdb, p, log)
		lc.Append(fx.StopHook(l.Close))
		return l
	},
))

// newKeeper does upkeep in the worker role.
func newKeeper(lc fx.Lifecycle, c *probe.Checker, l *probe.Lists, p *allocation.Pools, rdb redis.UniversalClient, log *slog.Logger) *jobs.Keeper {
	k := jobs.NewKeeper(rdb, log,
		jobs.Chore{Type: jobs.CheckProxies, Do: func(ctx context.Context, pool string) error { return checkPool(ctx, c, p, pool, log) }},
		jobs.Chore{Type: jobs.FetchList, Do: func(ctx context.Context, pool string) error { return fetchList(ctx, l, p, rdb, pool, log) }},
	)
	lc.Append(fx.Hook{OnStart: k.Start, OnStop: k.Stop})
	return k
}

func checkPool(ctx context.Context, c *probe.Checker, p *allocation.Pools, pool string, log *slog.Logger) error {
	started := time.Now()
	plan, err := c.Plan(ctx, p, pool)
	if err != nil {
		return err
	}
	sum, err := c.Run(ctx, p, plan, func(r probe.Result) {
		if r.Err != nil {
			log.Warn("an endpoint could not be checked", "pool", pool, "endpoint", r.ID, "error", r.Err)
		}
	})
	if err != nil {
		return err
	}
	log.Info("pool checked", "pool", pool, "checked", sum.Checked, "ok", sum.OK, "failed", sum.Failed, "states", sum.States, "took", time.Since(started).Round(time.Millisecond))
	return nil
}

func fetchList(ctx context.Context, l *probe.Lists, p *allocation.Pools, rdb redis.UniversalClient, pool string, log *slog.Logger) error {
	res, err := l.Refresh(ctx, pool)
	if err != nil {
		return err
	}
	log.Info("proxy list fetched", "pool", pool, "unchanged", res.Unchanged, "accepted", res.Accepted, "duplicates", res.Duplicates, "rejected", res.Rejected, "retired", res.Retired)
	return checkNew(ctx, p, rdb, pool, res.Accepted)
}

// checkNew asks for a check where a list brought candidates.
func checkNew(ctx context.Context, p *allocation.Pools, rdb redis.UniversalClient, pool string, accepted int) error {
	if c, ok := p.Config(pool); !ok || c.Require == nil || accepted == 0 {
		return nil
	}
	return jobs.Upkeep(ctx, rdb, jobs.CheckProxies, pool)
}

// asker asks, as a process starts, for what its pools lack: a first fetch of a
// list, a check of candidates that nobody has checked.
type asker struct{}

func newAsker(lc fx.Lifecycle, _ *importer, l *probe.Lists, p *allocation.Pools, rdb redis.UniversalClient) *asker {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		for _, pool := range l.Names() {
			due, err := l.Due(ctx, pool, time.Now())
			if err == nil && due {
				err = jobs.Upkeep(ctx, rdb, jobs.FetchList, pool)
			}
			if err != nil {
				return err
			}
		}
		for _, pool := range p.Names() {
			st, err := p.State(ctx, pool)
			if err == nil {
				err = checkNew(ctx, p, rdb, pool, st.Candidates)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return &asker{}
}

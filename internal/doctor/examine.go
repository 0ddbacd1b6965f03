package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/internal/roster"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
	"feedwarden/scheduler"
)

// World is what is examined, through whom, and what the config says of it.
type World struct {
	Redis  redis.UniversalClient
	Memory bool                                                               // it is a miniredis: it has no settings to check
	Alarm  func(context.Context) (string, error)                              // why nothing is written; ""
	Clock  func(context.Context) (offset, roundTrip time.Duration, err error) // Redis's clock less ours

	Queues    map[string]int64 // name → limit, 0 none
	Quotas    *quota.Limiter
	Running   []string // names of running limits
	Leases    *quota.Leases
	Pools     *allocation.Pools
	Feeds     []jobs.Feed
	Store     *feed.Store
	Schedules func(context.Context) ([]scheduler.State, error)

	Config, Version string // as this process has them
}

// Examine looks at everything; what cannot be read is a finding.
func (w World) Examine(ctx context.Context) []Finding {
	n := &notes{}
	w.redis(ctx, n)
	workers, ticking := w.queues(n), false
	if all, err := roster.List(ctx, w.Redis); err != nil {
		n.failed("process", "", err)
	} else {
		ticking = slices.ContainsFunc(all, func(p roster.Process) bool { return slices.Contains(p.Roles, "scheduler") })
		scheduled := slices.ContainsFunc(w.Feeds, func(f jobs.Feed) bool { return f.Schedule != "" })
		n.judgeProcesses(all, workers, scheduled, w.Config, w.Version)
	}
	for _, name := range w.Quotas.Names() {
		if s, err := w.Quotas.State(ctx, name); err != nil {
			n.failed("quota", name, err)
		} else {
			n.judgeQuota(s)
		}
	}
	for _, name := range w.Running {
		if s, err := w.Leases.State(ctx, name); err != nil {
			n.failed("running", name, err)
		} else {
			n.judgeRunning(s, workers)
		}
	}
	w.pools(ctx, n, workers)
	first := map[string]time.Time{} // by feed
	if all, err := w.Schedules(ctx); err != nil {
		n.failed("schedule", "", err)
	} else {
		n.judgeSchedules(all, time.Now())
		for _, s := range all {
			if ticking && s.Last == nil && s.Due == nil && s.NextFire != nil {
				first[s.Feed] = *s.NextFire
			}
		}
	}
	w.feeds(ctx, n, first)
	return n.all
}

func (w World) redis(ctx context.Context, n *notes) {
	if why, err := w.Alarm(ctx); err != nil {
		n.failed("redis.primary", "", err)
	} else if why != "" {
		n.add("redis.primary", "", Broken, "bring back a server that has it, or bear the loss: feedwarden doctor --accept-primary", "nothing is written: %s", why)
	} else {
		n.add("redis.primary", "", OK, "", "no process misses anything it had written")
	}
	switch rdb := w.Redis.(type) {
	case *redis.ClusterClient:
		var mu sync.Mutex
		facts := map[string]serverFacts{}
		if err := rdb.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			f := readServer(ctx, node)
			mu.Lock()
			defer mu.Unlock()
			facts[node.Options().Addr] = f
			return nil
		}); err != nil {
			n.failed("redis", "", err)
		}
		for _, at := range slices.Sorted(maps.Keys(facts)) {
			n.judgeServer(at, facts[at])
		}
	default:
		if w.Memory {
			n.add("redis.persistence", "", Warning, "install redis-server, or set redis.url", "an embedded miniredis: nothing outlives its process")
		} else {
			n.judgeServer("", readServer(ctx, w.Redis))
		}
	}
	if off, trip, err := w.Clock(ctx); err != nil {
		n.failed("clock", "", err)
	} else {
		n.judgeClock(off, trip)
	}
}

// queues tells of the queues, and how many asynq servers take jobs.
func (w World) queues(n *notes) (workers int) {
	inspector := asynq.NewInspectorFromRedisClient(w.Redis)
	if servers, err := inspector.Servers(); err != nil {
		n.failed("worker", "", err)
	} else {
		hosts := map[string]bool{}
		for _, s := range servers {
			if _, ok := s.Queues[jobs.QueueScheduled]; ok && s.Status == "active" {
				hosts[fmt.Sprintf("%s/%d", s.Host, s.PID)] = true
			}
		}
		workers = len(hosts)
	}
	known, err := inspector.Queues()
	if err != nil {
		n.failed("queue", "", err)
		return workers
	}
	for _, name := range slices.Sorted(maps.Keys(w.Queues)) {
		q := queueFacts{name: name, limit: w.Queues[name]}
		if slices.Contains(known, name) {
			info, err := inspector.GetQueueInfo(name)
			if err != nil {
				n.failed("queue", name, err)
				continue
			}
			q.size, q.archived = info.Pending+info.Active+info.Scheduled+info.Retry, info.Archived
			q.waits, q.latency = info.Pending > 0, info.Latency
		}
		n.judgeQueue(q)
	}
	return workers
}

func (w World) pools(ctx context.Context, n *notes, workers int) {
	for _, name := range w.Pools.Names() {
		s, err := w.Pools.State(ctx, name)
		if err != nil {
			n.failed("pool", name, err)
			continue
		}
		n.judgePool(s)
		if s.Policy != "least-busy" || workers > 0 {
			continue
		}
		page, err := w.Pools.ListPage(ctx, name, allocation.Page{Limit: 1000})
		if err != nil {
			n.failed("pool.leases", name, err)
			continue
		}
		held := int64(0)
		for _, e := range page.Endpoints {
			held += e.InFlight
		}
		if held > 0 {
			n.add("pool.leases", name, Warning, "they end by themselves, within pools."+name+".lease", "no worker runs, and leases are held: %d", held)
		}
	}
}

// feeds tells of those that are not fresh; first has when those that never had a
// tick get one.
func (w World) feeds(ctx context.Context, n *notes, first map[string]time.Time) {
	names := make([]string, 0, len(w.Feeds))
	for _, f := range w.Feeds {
		names = append(names, feed.Key(f.Name, nil))
	}
	heads, err := w.Store.Heads(ctx, names)
	if err != nil {
		n.failed("feed", "", err)
		return
	}
	now := time.Now()
	all := make([]feedFacts, len(w.Feeds))
	for i, f := range w.Feeds {
		h := heads[i]
		state := h.State(now, f.TTL)
		all[i] = feedFacts{name: f.Name, empty: h.Empty(), age: h.Age(now), ttl: f.TTL, fault: h.LastError, first: first[f.Name]}
		all[i].fresh = f.Schedule == "" || state != "stale" && !h.Empty()
	}
	slices.SortFunc(all, func(a, b feedFacts) int { return cmp.Compare(a.name, b.name) })
	n.judgeFeeds(all)
}

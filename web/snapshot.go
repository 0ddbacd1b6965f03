package web

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sync/errgroup"

	"feedwarden/allocation"
	"feedwarden/internal/roster"
	"feedwarden/jobs"
)

// snapshot is all that the dashboard and the metrics show, as of one moment.
// Each part has its own error: one that cannot be read does not hide the rest.
type snapshot struct {
	At       time.Time // by our clock
	RedisErr error     // set: nothing else is

	Feeds    []FeedView
	FeedsErr error

	Quotas []part[Quota]
	Pools  []part[Pool]
	Queues []part[queueSize]

	Schedules    []ScheduleView
	SchedulesErr error

	Processes    []roster.Process
	ProcessesErr error

	Counters    map[string]int64
	CountersErr error
}

// part is one named thing, or why it could not be read.
type part[T any] struct {
	Name string
	View T
	Err  error
}

// queueSize is how many tasks a queue holds, by asynq's states.
type queueSize struct {
	Pending, Active, Scheduled, Retry, Archived, Completed int
}

// snapshots reads snapshots.
type snapshots struct {
	server    *Server
	inspector *asynq.Inspector
	all       cached[*snapshot]
	recent    cached[[]jobs.Job]
	outlook   cached[*outlook]
	ahead     cached[*lanes]

	mu      sync.Mutex
	exitsOf map[string]*cached[[]allocation.ExitGroup] // by pool, so bounded by the config
}

const snapshotWithin = 5 * time.Second

func newSnapshots(s *Server) *snapshots {
	n := &snapshots{server: s, inspector: asynq.NewInspectorFromRedisClient(s.p.Redis), exitsOf: map[string]*cached[[]allocation.ExitGroup]{}}
	n.all = cached[*snapshot]{load: n.read, within: snapshotWithin}
	n.recent = cached[[]jobs.Job]{load: n.jobs, within: snapshotWithin}
	n.outlook = cached[*outlook]{load: n.readOutlook, within: 2 * snapshotWithin}
	n.ahead = cached[*lanes]{load: n.readLanes, within: 2 * snapshotWithin}
	return n
}

// feeds are the feeds with their next ticks. Schedules that cannot be read cost
// the ticks alone.
func (n *snapshots) feeds(ctx context.Context) ([]FeedView, error) {
	views, err := FeedViews(ctx, n.server.p.Jobs, n.server.p.Feeds)
	if err != nil {
		return nil, err
	}
	schedules, err := n.server.schedules(ctx)
	if err != nil {
		n.server.log.Warn("schedules could not be read", "error", err)
	}
	return WithTicks(views, schedules), nil
}

func (n *snapshots) jobs(ctx context.Context) ([]jobs.Job, error) {
	return n.server.p.Jobs.List(ctx, jobs.Filter{Limit: overviewJobs})
}

// read never fails: what failed stands within.
func (n *snapshots) read(ctx context.Context) (*snapshot, error) {
	s, p := &snapshot{At: time.Now()}, n.server.p
	if s.RedisErr = p.Redis.Ping(ctx).Err(); s.RedisErr != nil {
		return s, nil //nolint:nilerr // it stands within
	}
	var g errgroup.Group
	in := func(f func()) {
		g.Go(func() error { f(); return nil })
	}
	in(func() {
		s.Schedules, s.SchedulesErr = n.server.schedules(ctx)
		if s.Feeds, s.FeedsErr = FeedViews(ctx, p.Jobs, p.Feeds); s.FeedsErr == nil {
			WithTicks(s.Feeds, s.Schedules)
		}
	})
	in(func() {
		s.Quotas = each(p.Quotas.Names(), func(name string) (Quota, error) { return n.server.quota(ctx, name) })
	})
	in(func() {
		s.Pools = each(p.Pools.Names(), func(name string) (Pool, error) {
			st, err := p.Pools.State(ctx, name)
			return PoolView(st), err
		})
	})
	in(func() {
		s.Queues = each([]string{jobs.QueueInteractive, jobs.QueueScheduled, jobs.QueueSinks}, n.queue)
		s.Counters, s.CountersErr = p.Jobs.Counters(ctx)
		s.Processes, s.ProcessesErr = roster.List(ctx, p.Redis)
	})
	_ = g.Wait() // nothing in it fails
	for _, err := range s.faults() {
		n.server.log.Warn("could not be read", "error", err)
	}
	return s, nil
}

func each[T any](names []string, read func(string) (T, error)) []part[T] {
	out := make([]part[T], len(names))
	for i, name := range names {
		out[i].Name = name
		out[i].View, out[i].Err = read(name)
	}
	return out
}

// queue counts a queue; one that asynq does not know, since nobody has used it
// yet or somebody deleted it, is empty. asynq says so with an error that only
// its own packages can name, so its list is asked.
func (n *snapshots) queue(name string) (queueSize, error) {
	q, err := n.inspector.GetQueueInfo(name)
	if err != nil {
		if known, lerr := n.inspector.Queues(); lerr == nil && !slices.Contains(known, name) {
			return queueSize{}, nil
		}
		return queueSize{}, fmt.Errorf("web: queue %s: %w", name, err)
	}
	return queueSize{Pending: q.Pending, Active: q.Active, Scheduled: q.Scheduled, Retry: q.Retry, Archived: q.Archived, Completed: q.Completed}, nil
}

// faults are what could not be read.
func (s *snapshot) faults() []error {
	all := []error{s.FeedsErr, s.SchedulesErr, s.CountersErr, s.ProcessesErr}
	for _, q := range s.Quotas {
		all = append(all, q.Err)
	}
	for _, p := range s.Pools {
		all = append(all, p.Err)
	}
	for _, q := range s.Queues {
		all = append(all, q.Err)
	}
	out := all[:0]
	for _, err := range all {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

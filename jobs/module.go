package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/quota"
)

// Module provides *Client and *feed.Store: what asks for jobs and reads feeds;
// and the *Catalog, one for the client and the worker.
var Module = fx.Module("jobs", fx.Provide(
	luarun.NewDesk,
	feed.New,
	func(l *quota.Limiter) Limiter { return l },
	func(cfg Config) (*Catalog, error) { return NewCatalog(cfg.Feeds) },
	newClient,
))

// WorkerModule provides and runs the *Worker: what does jobs.
var WorkerModule = fx.Module("worker",
	fx.Provide(
		func(p *allocation.Pools) Allocator { return p },
		fx.Private,
	),
	fx.Provide(
		newFetcher,
		newHandler,
		newWorker,
	),
)

// newFetcher closes idle connections with the process.
func newFetcher(lc fx.Lifecycle, cfg fetch.Config) *fetch.Client {
	c := fetch.New(cfg)
	lc.Append(fx.Hook{OnStop: func(context.Context) error { c.Close(); return nil }})
	return c
}

func newWorker(lc fx.Lifecycle, cfg Config, h *Handler, rdb redis.UniversalClient, log *slog.Logger) *Worker {
	w := NewWorker(cfg, h, rdb, log)
	lc.Append(fx.Hook{OnStart: w.Start, OnStop: w.Stop})
	return w
}

// StopTimeout is how long a process needs to stop a worker in good order.
func StopTimeout(cfg Config) time.Duration { return cfg.Shutdown + stopMargin + 10*time.Second }

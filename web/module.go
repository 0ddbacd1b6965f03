package web

import (
	"context"
	"log/slog"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"feedwarden/allocation"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
)

// Module provides the *Server, which starts and stops with the process, and
// ends it when it cannot serve any more.
var Module = fx.Module("web", fx.Provide(provide))

type needs struct {
	fx.In

	Lifecycle  fx.Lifecycle
	Shutdowner fx.Shutdowner
	Config     Config
	Redis      redis.UniversalClient
	Asynq      asynq.RedisConnOpt
	Jobs       *jobs.Client
	Feeds      *feed.Store
	Quotas     *quota.Limiter
	Leases     *quota.Leases `optional:"true"`
	Pools      *allocation.Pools
	Schedules  Schedules            `optional:"true"`
	Forecast   Forecaster           `optional:"true"`
	Ready      Readiness            `optional:"true"`
	Identity   func() RedisIdentity `optional:"true"`
	Log        *slog.Logger
}

func provide(n needs) (*Server, error) {
	s, err := New(n.Config, Parts{
		Redis: n.Redis, Asynq: n.Asynq, Jobs: n.Jobs, Feeds: n.Feeds, Quotas: n.Quotas, Leases: n.Leases, Pools: n.Pools,
		Schedules: n.Schedules, Forecast: n.Forecast, Ready: n.Ready, Identity: n.Identity, Log: n.Log,
	})
	if err != nil {
		return nil, err
	}
	n.Lifecycle.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			if err := s.Start(ctx); err != nil {
				return err
			}
			go s.watch(n.Shutdowner)
			return nil
		},
		OnStop: s.Stop,
	})
	return s, nil
}

// watch ends the process when the server ends by itself.
func (s *Server) watch(down fx.Shutdowner) {
	if err := <-s.Died(); err != nil {
		s.log.Error("the web server ended by itself", "error", err)
		if err := down.Shutdown(fx.ExitCode(1)); err != nil {
			s.log.Error("the process could not be ended", "error", err)
		}
	}
}

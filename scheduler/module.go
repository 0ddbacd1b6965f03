package scheduler

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
)

// Config is what the module needs besides its neighbours.
type Config struct {
	Entries []Entry
}

// Module provides a *Dispatcher, and a *Runner that runs it. A process that
// only lists, pauses and triggers asks for the first; one in the scheduler's
// role invokes the second. It needs a Config, a redis.UniversalClient and a
// *slog.Logger, and for the Runner an Enqueuer.
var Module = fx.Module("scheduler", fx.Provide(provideDispatcher, provideRunner))

type parts struct {
	fx.In

	Config   Config
	Redis    redis.UniversalClient
	Logger   *slog.Logger
	Enqueuer Enqueuer `optional:"true"`
}

func provideDispatcher(p parts) (*Dispatcher, error) {
	return NewDispatcher(p.Redis, p.Config.Entries, p.Enqueuer, WithLogger(p.Logger))
}

// Runner is a Dispatcher that runs from the application's start to its stop.
type Runner struct {
	*Dispatcher
	cancel context.CancelFunc
	done   chan struct{}
}

func provideRunner(lc fx.Lifecycle, d *Dispatcher, stop fx.Shutdowner) *Runner {
	r := &Runner{Dispatcher: d}
	lc.Append(fx.Hook{
		OnStart: func(start context.Context) error {
			// The hook's own context ends with the start.
			ctx, cancel := context.WithCancel(context.WithoutCancel(start))
			r.cancel, r.done = cancel, make(chan struct{})
			go func() {
				defer close(r.done)
				if err := d.Run(ctx); err != nil {
					d.log.Error("scheduler ended", "error", err)
					_ = stop.Shutdown(fx.ExitCode(1)) // it fails only where the application stops already
				}
			}()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			r.cancel()
			select {
			case <-r.done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	return r
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"feedwarden/allocation"
	"feedwarden/internal/redisconn"
	"feedwarden/internal/roster"
	"feedwarden/jobs"
	"feedwarden/quota"
	"feedwarden/scheduler"
	"feedwarden/web"
)

// roles are what one process does.
type roles struct{ web, scheduler, worker bool }

var allRoles = roles{true, true, true}

// base is what every process has: Redis, the quotas, the pools, the jobs' client.
func base(s settings, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.Supply(s.redis, s.quotas, s.pools, s.jobs, s.fetch, scheduler.Config{Entries: s.entries}, s.web, log),
		fx.Provide(func() settings { return s }),
		fx.WithLogger(func() fxevent.Logger { return quietFx{log} }),
		redisconn.Module,
		quota.Module,
		allocation.Module,
		jobs.Module,
	)
}

// graph is a process that runs roles.
func graph(s settings, log *slog.Logger, r roles) fx.Option {
	s.redis.Guard = redisconn.GuardAlways
	opts := []fx.Option{
		base(s, log),
		fx.StartTimeout(90 * time.Second),
		fx.StopTimeout(jobs.StopTimeout(s.jobs)),
		scheduler.Module,
		upkeep,
		fx.Provide(newSchedules, enqueuer, newBeacon, func() roles { return r }),
	}
	// One Invoke: what runs. Its order is that of the start; the stop is the other way round.
	var run any
	if r.worker {
		opts = append(opts, jobs.WorkerModule, fx.Provide(newKeeper))
	}
	if r.web {
		opts = append(opts, web.Module, fx.Provide(
			func(s *schedules) web.Schedules { return s },
			func(f *forecaster) web.Forecaster { return f },
		))
	}
	if r.web {
		opts = append(opts, fx.Provide(readiness, identity))
	}
	switch r {
	case allRoles:
		run = func(*asker, *jobs.Worker, *jobs.Keeper, *scheduler.Runner, *web.Server, *reloader, *roster.Beacon) {}
	case roles{web: true}:
		run = func(*web.Server, *reloader, *roster.Beacon) {}
	case roles{worker: true}:
		run = func(*asker, *jobs.Worker, *jobs.Keeper, *reloader, *roster.Beacon) {}
	case roles{scheduler: true}:
		run = func(*asker, *scheduler.Runner, *reloader, *roster.Beacon) {}
	default:
		return fx.Error(fmt.Errorf("no such roles: %+v", r))
	}
	opts = append(opts, fx.Provide(newLists, newImporter, newAsker, newForecaster, newReloader), fx.Invoke(run))
	return fx.Options(opts...)
}

// runApp starts a graph, waits for a signal or for a part that dies, and stops
// it in good order.
func runApp(ctx context.Context, app *fx.App) error {
	if err := app.Err(); err != nil {
		return plain(err)
	}
	startCtx, cancel := context.WithTimeout(ctx, app.StartTimeout())
	err := app.Start(startCtx)
	cancel()
	if err != nil {
		return plain(err)
	}
	code := 0
	select {
	case <-ctx.Done():
	case sig := <-app.Wait():
		code = sig.ExitCode
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer cancel()
	if err := app.Stop(stopCtx); err != nil {
		return plain(err)
	}
	if code != 0 {
		return &exitError{code: code, err: errors.New("a part of the process ended by itself; the log says why")}
	}
	return nil
}

// plain takes fx's wrapping off an error: a person wants the cause.
func plain(err error) error {
	for {
		var next error
		switch e := err.(type) { //nolint:errorlint // walks the chain itself
		case interface{ Unwrap() error }:
			next = e.Unwrap()
		}
		if next == nil || !fromFx(err, next) {
			return err
		}
		err = next
	}
}

// fromFx says that err only adds fx's words about constructors to next.
func fromFx(err, next error) bool {
	text := err.Error()
	for _, mark := range []string{"could not build arguments", "received non-nil error", "missing dependencies", "failed to build", "OnStart hook"} {
		if len(text) > len(next.Error()) && strings.Contains(text[:len(text)-len(next.Error())], mark) {
			return true
		}
	}
	return false
}

// quietFx sends what fx has to say through our log, at debug unless it failed.
type quietFx struct{ log *slog.Logger }

func (q quietFx) LogEvent(e fxevent.Event) {
	l := &fxevent.SlogLogger{Logger: q.log}
	l.UseLogLevel(slog.LevelDebug)
	l.UseErrorLevel(slog.LevelDebug)
	l.LogEvent(e)
}

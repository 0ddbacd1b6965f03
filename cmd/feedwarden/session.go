package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"feedwarden/allocation"
	"feedwarden/internal/redisconn"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/probe"
	"feedwarden/quota"
	"feedwarden/scheduler"
)

// session is what a command that looks or acts has: the parts, on a Redis that
// is open until the command ends.
type session struct {
	*env
	ctx       context.Context
	settings  settings
	rdb       redis.UniversalClient
	conn      *redisconn.Conn
	jobs      *jobs.Client
	feeds     *feed.Store
	quotas    *quota.Limiter
	leases    *quota.Leases
	pools     *allocation.Pools
	schedules *schedules
	checker   *probe.Checker
	lists     *probe.Lists
}

// named says which quotas there are to who named another.
func (s *session) named(err error) error {
	if !errors.Is(err, quota.ErrUnknownQuota) {
		return err
	}
	if names := s.quotas.Names(); len(names) > 0 {
		return fmt.Errorf("%w: the config has %s", err, strings.Join(names, ", "))
	}
	return fmt.Errorf("%w: the config has none", err)
}

// scheduled finds a schedule's feed, whose name it bears.
func (s *session) scheduled(name string) error {
	f, err := s.jobs.Feed(name)
	if err == nil && f.Schedule == "" {
		return usageError("feed %s has no schedule", name)
	}
	return err
}

// with opens a session for f. A command's own log is quiet: warnings and worse.
func (e *env) with(f func(*session) error) error { return e.guarded(redisconn.GuardStart, f) }

func (e *env) guarded(guard redisconn.Guard, f func(*session) error) error {
	file, err := e.load()
	if err != nil {
		return err
	}
	s := &session{env: e, ctx: e.ctx, settings: translate(file)}
	s.settings.redis.Guard = guard
	log := quieter(e.log)
	app := fx.New(
		base(s.settings, log),
		fx.StartTimeout(90*time.Second), fx.StopTimeout(15*time.Second),
		scheduler.Module, upkeep, fx.Provide(newSchedules, enqueuer),
		fx.Populate(&s.rdb, &s.conn, &s.jobs, &s.feeds, &s.quotas, &s.leases, &s.pools, &s.schedules, &s.checker, &s.lists),
	)
	if err := app.Err(); err != nil {
		return plain(err)
	}
	startCtx, cancel := context.WithTimeout(e.ctx, app.StartTimeout())
	err = app.Start(startCtx)
	cancel()
	if err != nil {
		return plain(err)
	}
	err = s.named(f(s))
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), app.StopTimeout())
	defer cancel()
	if serr := app.Stop(stopCtx); err == nil && serr != nil {
		return plain(serr)
	}
	return err
}

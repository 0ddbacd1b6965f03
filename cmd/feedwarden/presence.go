package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"feedwarden/internal/config"
	"feedwarden/internal/redisconn"
	"feedwarden/internal/roster"
	"feedwarden/jobs"
	"feedwarden/web"
)

// digest tells one config from another. Secrets have no part in it.
func digest(f *config.File) string {
	sum := sha256.Sum256([]byte(f.Effective()))
	return hex.EncodeToString(sum[:6])
}

func (r roles) names() []string {
	var out []string
	for _, one := range []struct {
		has  bool
		name string
	}{{r.web, "web"}, {r.scheduler, "scheduler"}, {r.worker, "worker"}} {
		if one.has {
			out = append(out, one.name)
		}
	}
	return out
}

// newBeacon tells Redis of this process while it runs.
func newBeacon(lc fx.Lifecycle, s settings, r roles, conn *redisconn.Conn, rdb redis.UniversalClient, log *slog.Logger) *roster.Beacon {
	b := roster.New(rdb, r.names(), version(), s.digest(), func() (string, string) {
		id := conn.Identity()
		return id.RunID, id.Refused
	}, log)
	lc.Append(fx.Hook{OnStart: b.Start, OnStop: b.Stop})
	return b
}

// identity shows the web role which Redis this process works with.
func identity(conn *redisconn.Conn) func() web.RedisIdentity {
	return func() web.RedisIdentity {
		id := conn.Identity()
		return web.RedisIdentity{
			Mode: id.Mode, Server: id.Server, Version: id.Version, RunID: id.RunID, Role: id.Role, Since: id.Since, Changes: id.Changes, Refused: id.Refused,
		}
	}
}

type readyParts struct {
	fx.In

	Conn   *redisconn.Conn
	Worker *jobs.Worker `optional:"true"`
}

// readiness: Redis may be written to, and a worker takes jobs.
func readiness(p readyParts) web.Readiness {
	return func(ctx context.Context) error {
		if err := p.Conn.Refusal(); err != nil {
			return err
		}
		if p.Worker != nil {
			return p.Worker.Ready(ctx)
		}
		return nil
	}
}

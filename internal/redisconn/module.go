package redisconn

import (
	"context"
	"log/slog"

	"go.uber.org/fx"
)

// Module provides the process's Redis from a Config: *Conn, its shared client
// (redis.UniversalClient) and asynq's option (asynq.RedisConnOpt). Whoever takes one of them starts after the connection
// and stops before it.
var Module = fx.Module("redisconn",
	fx.Provide(
		provide,
		(*Conn).Client,
		(*Conn).Asynq,
	),
)

type params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	Logger    *slog.Logger `optional:"true"` // used when the Config has none
}

func provide(p params) (*Conn, error) {
	if p.Config.Logger == nil {
		p.Config.Logger = p.Logger
	}
	conn, err := New(p.Config)
	if err != nil {
		return nil, err
	}
	p.Lifecycle.Append(fx.Hook{
		OnStart: conn.Start,
		OnStop:  func(context.Context) error { return conn.Close() },
	})
	return conn, nil
}

package redisconn

import (
	"context"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
)

func TestModuleOpensFirstAndClosesLast(t *testing.T) {
	t.Parallel()
	if err := fx.ValidateApp(Module, fx.NopLogger, fx.Supply(Config{}), fx.Invoke(func(*Conn) {})); err != nil {
		t.Fatal(err)
	}
	var conn *Conn
	app := fxtest.New(t,
		Module,
		fx.Supply(Config{URL: "embedded", Data: t.TempDir()}),
		fx.Invoke(func(lc fx.Lifecycle, rdb redis.UniversalClient, opt asynq.RedisConnOpt, c *Conn) {
			conn = c
			check := func(ctx context.Context) error { return rdb.Set(ctx, "a", "1", 0).Err() }
			lc.Append(fx.Hook{OnStart: check, OnStop: check})
		}),
	)
	app.RequireStart()
	app.RequireStop()
	if err := conn.Start(t.Context()); err == nil {
		t.Error("the connection is open after stop")
	}
}

func TestModuleFailsWithTheReason(t *testing.T) {
	t.Parallel()
	app := fx.New(Module, fx.NopLogger,
		fx.Supply(Config{URL: "redis://127.0.0.1:1"}), fx.Invoke(func(redis.UniversalClient) {}))
	if err := app.Start(t.Context()); err == nil {
		t.Error("started without a Redis")
	}
	_ = app.Stop(context.Background())
}

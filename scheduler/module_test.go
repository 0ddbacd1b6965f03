package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"
)

func parents(rdb redis.UniversalClient, entries ...Entry) fx.Option {
	return fx.Options(fx.NopLogger, Module, fx.Supply(Config{Entries: entries}, quiet()),
		fx.Provide(func() redis.UniversalClient { return rdb }))
}

func TestModuleRunsAndStops(t *testing.T) {
	rdb, q := freshRedis(t), newQueue()
	before := goleak.IgnoreCurrent()
	app := fxtest.New(t, parents(rdb, Entry{Name: "feed", Expression: "@every 1s"}),
		fx.Provide(func() Enqueuer { return q }), fx.Invoke(func(*Runner) {}))
	app.RequireStart()
	eventually(t, "a job", func() bool { return len(q.has("feed")) > 0 })
	app.RequireStop()
	goleak.VerifyNone(t, before)
}

func TestModuleWithoutRunner(t *testing.T) {
	rdb := freshRedis(t)
	var d *Dispatcher
	app := fxtest.New(t, parents(rdb, Entry{Name: "feed", Expression: "@daily"}), fx.Populate(&d))
	app.RequireStart()
	if s := listed(t, d, "feed"); s.State != StateActive || s.Next == nil || s.Last != nil {
		t.Errorf("%+v", s)
	}
	app.RequireStop()
}

func TestDeadLoopStopsTheApplication(t *testing.T) {
	// Without an Enqueuer, Run ends at once.
	app := fxtest.New(t, parents(freshRedis(t), Entry{Name: "feed", Expression: "@daily"}), fx.Invoke(func(*Runner) {}))
	app.RequireStart()
	select {
	case s := <-app.Wait():
		if s.ExitCode != 1 {
			t.Errorf("exit code %d", s.ExitCode)
		}
	case <-time.After(10 * time.Second):
		t.Error("the application goes on")
	}
	app.RequireStop()
}

func TestModuleTellsFaults(t *testing.T) {
	app := fx.New(parents(nil, Entry{Name: "feed", Expression: "0 0 31 2 *"}), fx.Invoke(func(*Dispatcher) {}))
	if err := app.Err(); !errors.Is(err, ErrNeverFires) {
		t.Error(err)
	}
}

func TestRunTwice(t *testing.T) {
	d := newDispatcher(t, freshRedis(t), newClock(t, "2026-11-30T08:00:30Z"), newQueue(), Entry{Name: "feed", Expression: "@daily"})
	stop := start(t, d)
	if err := d.Run(t.Context()); !errors.Is(err, ErrRunning) {
		t.Error(err)
	}
	stop()
	start(t, d)
}

// TestStopsWhileRedisIsAway has no server at all.
func TestStopsWhileRedisIsAway(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: t.TempDir() + "/none.sock", MaxRetries: -1})
	defer rdb.Close()
	d, err := NewDispatcher(rdb, []Entry{{Name: "feed", Expression: "@daily"}}, newQueue(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	eventually(t, "it fails", func() bool { return d.Stats().Faults > 1 })
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Run does not end")
	}
}

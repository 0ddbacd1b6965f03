package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
)

func TestModuleStartsAndStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var s *Server
	app := fx.New(fx.NopLogger, Module, fx.Supply(w.jobs, w.store, w.quotas, w.pools, Config{Listen: "127.0.0.1:0"}, w.server.log),
		fx.Provide(
			func() redis.UniversalClient { return w.rdb },
			func() asynq.RedisConnOpt { return asynq.RedisClientOpt{Network: "unix", Addr: w.redis.Socket()} },
		), fx.Populate(&s))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + s.Addr().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAServerThatEndsByItselfEndsTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	done := make(chan int, 1)
	go w.server.watch(shutdown(func(code int) { done <- code }))
	if err := w.server.listener.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Error("the process goes on")
	}
}

type shutdown func(int)

func (f shutdown) Shutdown(...fx.ShutdownOption) error { f(1); return nil }

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/fx"

	"feedwarden/internal/config"
	"feedwarden/internal/testredis"
)

var everyRole = map[string]roles{"serve": allRoles, "web": {web: true}, "worker": {worker: true}, "scheduler": {scheduler: true}}

func TestEachProcessesGraphIsWhole(t *testing.T) {
	t.Parallel()
	for name, r := range everyRole {
		if err := fx.ValidateApp(graph(settings{}, slog.New(slog.DiscardHandler), r)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEachProcessStartsAndStopsAgainstRedis(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t)
	for name, r := range everyRole {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := loadSettings(t, `
redis: {url: "unix://`+srv.Socket()+`"}
web: {listen: "127.0.0.1:0"}
feeds:
  news: {source: syndication, url: "http://127.0.0.1:1/", schedule: "@every 1h"}
`)
			app := fx.New(graph(s, slog.New(slog.DiscardHandler), r))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := app.Start(ctx); err != nil {
				t.Fatal(err)
			}
			if err := app.Stop(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUnreachableRedisIsOneClearError(t *testing.T) {
	t.Parallel()
	p := filepath.Join(t.TempDir(), "feedwarden.yaml")
	if err := os.WriteFile(p, []byte(`redis: {url: "redis://user:canary-pass@127.0.0.1:1/0"}
feeds: {news: {source: syndication, url: "http://127.0.0.1:1/"}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve"}, {"worker"}, {"feeds", "list"}} {
		_, errOut, code := command(t, "", append([]string{"--config", p}, args...)...)
		if code != exitFailed || !contains(errOut, "127.0.0.1:1") || contains(errOut, "canary") || contains(errOut, "fx.") || contains(errOut, "OnStart") {
			t.Errorf("%v: exit %d, %s", args, code, errOut)
		}
	}
}

func loadSettings(t *testing.T, text string) settings {
	t.Helper()
	p := filepath.Join(t.TempDir(), "feedwarden.yaml")
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(p, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return translate(f)
}

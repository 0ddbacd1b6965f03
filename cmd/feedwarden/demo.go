package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"go.uber.org/fx"

	"feedwarden/internal/config"
	"feedwarden/internal/demo"
	"feedwarden/internal/units"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
	"feedwarden/web"
)

type demoCmd struct {
	Listen string `help:"Address of the dashboard and API. Default: 127.0.0.1:8080, or a free port where that is taken." placeholder:"ADDR"`
	For    string `help:"End by itself after this time; until Ctrl-C by default." placeholder:"DUR"`
}

// The upstream allows so many units in its window. The demo's quota has the
// same limit in a longer window: the wire delays some requests and
// hurries others, and a quota counts when it grants.
const (
	demoLimit    = 30
	demoUpstream = 20 * time.Second
	demoWindow   = 24 * time.Second
	demoFresh    = 20 * time.Second // from here on every feed is to be fresh
)

//go:embed demo.yaml.tmpl
var demoConfig string

func (c *demoCmd) Run(e *env) error {
	ctx := e.ctx
	if c.For != "" {
		d, err := units.ParseDuration(c.For)
		if err != nil || d <= 0 {
			return usageError("--for %s: a duration such as 30s is wanted", c.For)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	listen, err := demoAddress(c.Listen)
	if err != nil {
		return err
	}
	world, err := demo.StartWorld(context.WithoutCancel(ctx), demo.Options{
		Limit: demoLimit, Window: demoUpstream, Slack: -1, Period: 10 * time.Second, User: "demo", Password: "proxy-pass",
	})
	if err != nil {
		return err
	}
	defer world.Close()
	dir, err := os.MkdirTemp("", "feedwarden-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := writeDemo(dir, listen, world)
	if err != nil {
		return err
	}
	file, err := config.Load(path, os.LookupEnv)
	if err != nil {
		return fmt.Errorf("the demo's own config: %w", err)
	}
	return runDemo(ctx, e, translate(file), path, world)
}

// demoAddress is where the demo listens; the usual port may be taken.
func demoAddress(asked string) (string, error) {
	if asked != "" {
		host, _, err := net.SplitHostPort(asked)
		if err != nil {
			return "", usageError("--listen %s: an address such as 127.0.0.1:8080 is wanted", asked)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return "", usageError("--listen %s: the demo asks for no token, so it listens on this machine alone, such as 127.0.0.1:8090", asked)
		}
		return asked, nil
	}
	const usual = "127.0.0.1:8080"
	l, err := net.Listen("tcp", usual) //nolint:noctx // a probe that does not wait
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // the same
		if err != nil {
			return "", err
		}
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// writeDemo writes the demo's config and proxy list, so that other commands
// can be tried on it while it runs.
func writeDemo(dir, listen string, world *demo.World) (string, error) {
	var list strings.Builder
	for _, u := range world.ProxyURLs() {
		fmt.Fprintln(&list, u.String())
	}
	if err := os.WriteFile(filepath.Join(dir, "proxies.txt"), []byte(list.String()), 0o600); err != nil {
		return "", err
	}
	t, err := template.New("demo").Parse(demoConfig)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"Listen": listen, "BaseURL": world.Upstream.BaseURL(), "FeedURL": world.Upstream.FeedURL(),
		"Limit": demoLimit, "Window": units.FormatDuration(demoWindow),
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "feedwarden.yaml")
	return path, os.WriteFile(path, b.Bytes(), 0o600)
}

func runDemo(ctx context.Context, e *env, s settings, path string, world *demo.World) error {
	begun := time.Now()
	var (
		client *jobs.Client
		store  *feed.Store
		limits *quota.Limiter
		server *web.Server
	)
	log := slog.New(newDemoLog(e.out, e.colour, e.width))
	app := fx.New(graph(s, log, allRoles), fx.Populate(&client, &store, &limits, &server))
	if err := app.Err(); err != nil {
		return plain(err)
	}
	startCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StartTimeout())
	err := app.Start(startCtx)
	cancel()
	if err != nil {
		return plain(err)
	}
	url := "http://" + server.Addr().String()
	fmt.Fprintf(e.out, `
Feedwarden demo: eight trending feeds and one RSS feed; two http proxies and a
socks5 proxy; %d units per %s for the eight, which is the upstream's own limit
and a second for the wire. All of it runs in this process. Ctrl-C ends it.

  dashboard   %s/
  a feed      %s/v1/feeds/trending-bd
  asynqmon    %s/monitor/
  metrics     %s/metrics
  its config  %s
  try also    %s --config %s feeds list

`, demoLimit, units.FormatDuration(demoWindow), url, url, url, url, path, program(), path)
	stopReminding := remind(ctx, e.out, "dashboard "+url+"/")
	defer stopReminding()
	watch := watchDemo(ctx, client, store, begun)
	var died error
	select {
	case <-ctx.Done():
	case sig := <-app.Wait():
		if sig.ExitCode != 0 {
			died = &exitError{sig.ExitCode, errors.New("a part of the demo ended by itself; the lines above say why")}
		}
	}
	summary := demoSummary(context.WithoutCancel(ctx), client, store, limits, world, begun, <-watch)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer cancel()
	if err := app.Stop(stopCtx); err != nil {
		return plain(err)
	}
	fmt.Fprint(e.out, summary)
	return died
}

// program is how this program is called in another terminal.
func program() string {
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") {
		return "go run ./cmd/feedwarden"
	}
	return os.Args[0]
}

// remind says every fifteen seconds what has long scrolled away.
func remind(ctx context.Context, w io.Writer, text string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(15 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintf(w, "%s  %s\n", time.Now().Format("15:04:05.000"), text)
			}
		}
	}()
	return cancel
}

// watchDemo looks every half second, from second 20 on, for feeds that are not
// fresh. Its answer comes when ctx ends.
func watchDemo(ctx context.Context, client *jobs.Client, store *feed.Store, begun time.Time) <-chan int {
	out := make(chan int, 1)
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		stale := 0
		for {
			select {
			case <-ctx.Done():
				out <- stale
				return
			case <-tick.C:
			}
			if time.Since(begun) < demoFresh {
				continue
			}
			for _, f := range client.Feeds() {
				if h, err := store.Head(ctx, f.Name); err == nil && h.State(time.Now(), f.TTL) != "fresh" {
					stale++
				}
			}
		}
	}()
	return out
}

// demoSummary tells what the run came to; the upstream's count is its own.
func demoSummary(ctx context.Context, client *jobs.Client, store *feed.Store, limits *quota.Limiter, world *demo.World, begun time.Time, stale int) string {
	var b strings.Builder
	up := world.Upstream.Stats()
	fmt.Fprintf(&b, "\nAfter %s:\n", span(time.Since(begun)))
	fresh, feeds := 0, client.Feeds()
	for _, f := range feeds {
		if h, err := store.Head(ctx, f.Name); err == nil && h.State(time.Now(), f.TTL) == "fresh" {
			fresh++
		}
	}
	fmt.Fprintf(&b, "  feeds      %d of %d fresh", fresh, len(feeds))
	if time.Since(begun) > demoFresh {
		fmt.Fprintf(&b, "; seen not fresh after second %d: %d times", int(demoFresh.Seconds()), stale)
	}
	fmt.Fprintln(&b)
	if st, err := limits.State(ctx, "youtube"); err == nil {
		fmt.Fprintf(&b, "  quota      %d granted, %d refused; every refusal snoozed until its own instant\n", st.Grants, st.Refusals)
	}
	if n, err := client.Counters(ctx); err == nil {
		fmt.Fprintf(&b, "  jobs       %d done, %d snoozes, %d failed\n", n[string(jobs.Done)], n[string(jobs.Snoozed)], n[string(jobs.Failed)])
	}
	fmt.Fprintf(&b, "  upstream   by its own count %d requests, at most %d of %d units in any %s;\n             quotaExceeded said %d times\n",
		up.API, up.Peak, up.Limit, units.FormatDuration(up.Window), up.Refused)
	fmt.Fprintf(&b, "  proxies    %s\n", shares(up.ByVia))
	return b.String()
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"feedwarden/internal/faultkit"
)

// Options shape a world. Zero fields take the defaults named beside them.
type Options struct {
	Seed uint64
	// Limit is how many units a key has in any Window: 60 in 20 s.
	Limit  int64
	Window time.Duration
	// Slack shortens the window on the upstream's side, so that requests which
	// the wire has delayed or hurried are not refused: a tenth of the window,
	// a second at most. Negative: none.
	Slack time.Duration
	// Cost is what a request of the API takes: 1.
	Cost int64
	// Period is how often the charts change: a minute.
	Period time.Duration
	// Delay is how long the upstream takes for an answer.
	Delay time.Duration
	// User and Password, when set, are asked for by the second http proxy and
	// by the socks5 proxy.
	User, Password string
	// Now is the upstream's clock; nil is time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Limit <= 0 {
		o.Limit = 60
	}
	if o.Window <= 0 {
		o.Window = 20 * time.Second
	}
	if o.Slack == 0 {
		o.Slack = min(o.Window/10, time.Second)
	}
	o.Slack = min(max(o.Slack, 0), o.Window/2)
	if o.Cost <= 0 {
		o.Cost = 1
	}
	if o.Period <= 0 {
		o.Period = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// World is an upstream and the proxies to it.
type World struct {
	Upstream *Upstream
	HTTP     []*faultkit.Proxy
	SOCKS    *faultkit.Proxy

	stop func() bool
}

// StartWorld starts all parts on free ports of 127.0.0.1. They end with ctx or
// by Close.
func StartWorld(ctx context.Context, o Options) (*World, error) {
	w := &World{}
	if err := w.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("demo: start: %w", err), w.Close())
	}
	w.stop = context.AfterFunc(ctx, func() { _ = w.closeParts() })
	return w, nil
}

func (w *World) start(ctx context.Context, o Options) (err error) {
	exits := faultkit.NewExits()
	if w.Upstream, err = startUpstream(ctx, o, exits); err != nil {
		return err
	}
	for i, login := range []faultkit.Options{{}, {User: o.User, Password: o.Password}} {
		login.Name, login.Exits = fmt.Sprintf("http-%d", i+1), exits
		p, err := faultkit.Start(ctx, "http", login)
		if err != nil {
			return err
		}
		w.HTTP = append(w.HTTP, p)
	}
	w.SOCKS, err = faultkit.Start(ctx, "socks5", faultkit.Options{Name: "socks5-1", User: o.User, Password: o.Password, Exits: exits})
	return err
}

// ProxyURLs are the proxies' URLs, with user and password where one is asked
// for.
func (w *World) ProxyURLs() []*url.URL {
	var out []*url.URL
	for _, p := range w.HTTP {
		out = append(out, p.URL())
	}
	return append(out, w.SOCKS.URL())
}

// Close ends all parts and waits for them. It can be called twice.
func (w *World) Close() error {
	if w.stop != nil {
		w.stop()
	}
	return w.closeParts()
}

func (w *World) closeParts() error {
	var errs []error
	for _, p := range w.HTTP {
		errs = append(errs, p.Close())
	}
	if w.SOCKS != nil {
		errs = append(errs, w.SOCKS.Close())
	}
	if w.Upstream != nil {
		errs = append(errs, w.Upstream.Close())
	}
	return errors.Join(errs...)
}

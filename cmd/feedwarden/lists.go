package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"feedwarden/allocation"
	"feedwarden/jobs/probe"
)

// listEvery is how often the files of lists are looked at.
const listEvery = time.Second

// lists are the pools' lists as the config names them now.
type lists struct {
	mu    sync.Mutex
	paths map[string]string // pool → file
}

func newLists(s settings) *lists { return &lists{paths: s.lists} }

func (l *lists) set(paths map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths = paths
}

// files are the lists that are files; a web address is read by a job.
func (l *lists) files() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.paths)
}

// steady tells when a file has changed and has then stayed as it is for one look:
// an editor may be writing it.
type steady struct {
	path        string
	taken, last stamp
}

func (s *steady) look(now stamp) bool {
	still := now == s.last
	s.last = now
	if !still || now == s.taken || now == (stamp{}) { // a file that is away for a moment is being replaced
		return false
	}
	s.taken = now
	return true
}

// importer has the pools follow their lists: at the start, and when a file changes.
type importer struct {
	pools *allocation.Pools
	lists *lists
	rdb   redis.UniversalClient
	log   *slog.Logger
	seen  map[string]*steady // by pool
	stop  context.CancelFunc
}

func newImporter(lc fx.Lifecycle, l *lists, p *allocation.Pools, rdb redis.UniversalClient, log *slog.Logger) *importer {
	i := &importer{pools: p, lists: l, rdb: rdb, log: log, seen: map[string]*steady{}}
	done := make(chan struct{})
	lc.Append(fx.StartStopHook(
		func(start context.Context) error {
			if err := i.first(start); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(start)) // the hook's own ends with the start
			i.stop = cancel
			go func() {
				defer close(done)
				i.watch(ctx)
			}()
			return nil
		},
		func() { i.stop(); <-done },
	))
	return i
}

// first reads every list; one that is not there is an error.
func (i *importer) first(ctx context.Context) error {
	for pool, path := range i.lists.files() {
		now := stampOf(path)
		i.seen[pool] = &steady{path: path, taken: now, last: now}
		if err := i.follow(ctx, pool, path); err != nil {
			var missing *os.PathError
			if errors.As(err, &missing) {
				return &exitError{exitUsage, fmt.Errorf("pool %s: its list: %w", pool, err)}
			}
			var empty *allocation.EmptyListError
			if !errors.As(err, &empty) {
				return err
			}
			i.log.Error("proxy list not taken over", "pool", pool, "file", path, "error", err)
		}
	}
	for _, pool := range i.pools.Names() {
		fitPool(ctx, i.pools, pool, i.log)
	}
	return nil
}

func (i *importer) watch(ctx context.Context) {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for pool, path := range i.lists.files() {
			s := i.seen[pool]
			if s == nil || s.path != path {
				s = &steady{path: path}
				i.seen[pool] = s
			}
			if !s.look(stampOf(path)) {
				continue
			}
			if err := i.follow(ctx, pool, path); err != nil && ctx.Err() == nil {
				i.log.Error("proxy list not taken over", "pool", pool, "file", path, "error", err)
			}
		}
	}
}

// follow takes a list over as it is now.
func (i *importer) follow(ctx context.Context, pool, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	res, err := i.pools.Sync(ctx, pool, probe.ListSource, f, func(line int, err error) {
		i.log.Warn("a line of a proxy list was rejected", "pool", pool, "file", path, "line", line, "error", err)
	})
	if errors.Is(err, allocation.ErrOvertaken) {
		return nil // another process has read it since
	}
	if err != nil {
		return err
	}
	i.log.Info("proxy list taken over", "pool", pool, "file", path, "accepted", res.Accepted, "duplicates", res.Duplicates,
		"rejected", res.Rejected, "retired", res.Retired)
	return checkNew(ctx, i.pools, i.rdb, pool, res.Accepted)
}

// fitPool applies a pool's requirement to those who were judged before it was as it is.
func fitPool(ctx context.Context, p *allocation.Pools, pool string, log *slog.Logger) {
	moved, err := p.Fit(ctx, pool)
	if err != nil {
		log.Warn("could not apply a pool's requirement", "pool", pool, "error", err)
		return
	}
	if moved > 0 {
		log.Info("a pool's requirement moved endpoints", "pool", pool, "moved", moved)
	}
}

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

const callers = 64

// loop runs f from some callers for a span and answers calls a second.
func loop(ctx context.Context, span time.Duration, callers int, f func(ctx context.Context, n int64) error) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var n atomic.Int64
	var once sync.Once
	var failed error
	var wg sync.WaitGroup
	begun := time.Now()
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := f(context.WithoutCancel(ctx), n.Add(1)); err != nil {
					once.Do(func() { failed = err; cancel() })
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / time.Since(begun).Seconds(), failed
}

// emptyScript is the floor: what any script costs.
var emptyScript = redis.NewScript("return 1")

func emptySubject(ctx context.Context, rdb *redis.Client, span time.Duration) subject {
	return subject{name: "empty EVALSHA", run: func(int) (float64, error) {
		return loop(ctx, span, callers, func(ctx context.Context, _ int64) error { return emptyScript.Run(ctx, rdb, []string{"k"}).Err() })
	}}
}

// benchCharges measures grants of a quota that never fills.
func benchCharges(ctx context.Context, srv *server, rounds int, span time.Duration) (report, error) {
	rdb := srv.client()
	defer rdb.Close()
	const window = 10 * time.Second // entries leave while the benchmark runs: what expiry costs is in the figure
	l, err := quota.New(rdb, []quota.Config{
		{Name: "one", Windows: []quota.Window{{Limit: 1e9, Per: window}}},
		{Name: "hundred", Windows: []quota.Window{{Limit: 1e11, Per: window}}},
	})
	if err != nil {
		return report{}, err
	}
	charge := func(name, label, aim string, cost int64) subject {
		return subject{name: label, aim: aim, run: func(round int) (float64, error) {
			return loop(ctx, span, callers, func(ctx context.Context, n int64) error {
				d, err := l.Charge(ctx, quota.Request{Quota: name, ID: fmt.Sprintf("%d-%d", round, n), Cost: cost})
				if err == nil && !d.Granted {
					err = fmt.Errorf("refused: %+v", d)
				}
				return err
			})
		}}
	}
	rate := redis_rate.NewLimiter(rdb)
	return measure("Charges: 64 callers, one quota", "charges/s", rounds, []string{"empty EVALSHA", "redis_rate"},
		emptySubject(ctx, rdb, span),
		subject{name: "redis_rate", run: func(int) (float64, error) {
			return loop(ctx, span, callers, func(ctx context.Context, _ int64) error {
				_, err := rate.AllowN(ctx, "r", redis_rate.Limit{Rate: 1e9, Burst: 1e9, Period: window}, 1)
				return err
			})
		}},
		charge("one", "charge, cost 1", "", 1),
		charge("hundred", "charge, cost 100", "", 100),
	)
}

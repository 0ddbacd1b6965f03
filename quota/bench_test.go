package quota_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// bench is a quota that never runs out, with so many entries in its log.
func bench(b *testing.B, limit int64, entries int) (*quota.Limiter, string) {
	b.Helper()
	name := testredis.Name("b")
	c := window(limit, time.Hour)
	c.Name = name
	l, err := quota.New(testredis.Client(b), []quota.Config{c})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, l, name, entries, 1)
	return l, name
}

// fill asks n times, in batches. Refused, they wait.
func fill(b *testing.B, l *quota.Limiter, name string, n int, cost int64) {
	b.Helper()
	for done := 0; done < n; done += 500 {
		batch := make([]quota.Request, min(500, n-done))
		for i := range batch {
			batch[i] = quota.Request{Quota: name, ID: fmt.Sprint("fill-", cost, "-", done+i), Cost: cost}
		}
		for _, a := range l.ChargeAll(context.Background(), batch) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	}
}

func BenchmarkCharge(b *testing.B) {
	for _, entries := range []int{0, 10_000, 100_000} {
		var l *quota.Limiter
		var name string
		n := 0
		for _, cost := range []int64{1, 100, 10_000} {
			if l == nil || entries == 0 {
				l, name = bench(b, quota.MaxLimit, entries)
			}
			b.Run(fmt.Sprintf("cost=%d/log=%d", cost, entries), func(b *testing.B) {
				ctx := context.Background()
				for b.Loop() {
					n++
					d, err := l.Charge(ctx, quota.Request{Quota: name, ID: "c" + strconv.Itoa(n), Cost: cost})
					if err != nil || !d.Granted {
						b.Fatal(d, err)
					}
				}
			})
		}
	}
}

// 64 callers at once, as workers are.
func BenchmarkChargeParallel(b *testing.B) {
	l, name := bench(b, quota.MaxLimit, 10_000)
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d, err := l.Charge(context.Background(), quota.Request{Quota: name, ID: "p" + strconv.FormatInt(n.Add(1), 10), Cost: 1})
			if err != nil || !d.Granted {
				b.Error(d, err)
				return
			}
		}
	})
}

// Per charge, 50 in one call.
func BenchmarkChargeAll(b *testing.B) {
	l, name := bench(b, quota.MaxLimit, 10_000)
	batch := make([]quota.Request, 50)
	n := 0
	for b.Loop() {
		for i := range batch {
			n++
			batch[i] = quota.Request{Quota: name, ID: "a" + strconv.Itoa(n), Cost: 1}
		}
		for _, a := range l.ChargeAll(context.Background(), batch) {
			if a.Err != nil || !a.Granted {
				b.Fatal(a)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/charge")
}

func BenchmarkRefusal(b *testing.B) {
	for _, waiting := range []int{0, 10_000} {
		// A new place each time, and given up again: the line keeps its length.
		b.Run(fmt.Sprintf("line=%d", waiting), func(b *testing.B) {
			l, name := bench(b, 1000, 1000)
			fill(b, l, name, waiting, 2)
			ctx := context.Background()
			for i := 0; b.Loop(); i++ {
				d, err := l.Charge(ctx, quota.Request{Quota: name, ID: "r" + strconv.Itoa(i), Cost: 1})
				if err != nil || d.Granted {
					b.Fatal(d, err)
				}
				b.StopTimer()
				if err := l.Leave(ctx, name, d.ID); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

func BenchmarkEmptyEVALSHA(b *testing.B) {
	rdb := testredis.Client(b)
	empty := redis.NewScript("return 1")
	for b.Loop() {
		if err := empty.Run(context.Background(), rdb, []string{"fw:{bench}:empty"}).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedisRate(b *testing.B) {
	limiter := redis_rate.NewLimiter(testredis.Client(b))
	name := testredis.Name("rate")
	for b.Loop() {
		r, err := limiter.AllowN(context.Background(), name, redis_rate.Limit{Rate: 1e9, Burst: 1e9, Period: time.Hour}, 1)
		if err != nil || r.Allowed != 1 {
			b.Fatal(r, err)
		}
	}
}

// naive is the usual sliding log: one member for each unit.
var naive = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 3600000000)
local cost = tonumber(ARGV[2])
if redis.call('ZCARD', KEYS[1]) + cost > tonumber(ARGV[1]) then
  return 0
end
for i = 1, cost do
  redis.call('ZADD', KEYS[1], now, ARGV[3] .. ':' .. i)
end
redis.call('PEXPIRE', KEYS[1], 3600000)
return 1`)

func BenchmarkNaive(b *testing.B) {
	for _, cost := range []int{1, 100} {
		b.Run(fmt.Sprintf("cost=%d", cost), func(b *testing.B) {
			rdb := testredis.Client(b)
			key := testredis.Name("naive")
			for i := 0; b.Loop(); i++ {
				n, err := naive.Run(context.Background(), rdb, []string{key}, quota.MaxLimit, cost, i).Int()
				if err != nil || n != 1 {
					b.Fatal(n, err)
				}
			}
			rdb.Del(context.Background(), key)
		})
	}
}

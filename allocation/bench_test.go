package allocation_test

import (
	"context"
	"fmt"
	"testing"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"github.com/redis/go-redis/v9"
)

// callers is how many ask at the same time, for each processor.
const callers = 32

// BenchmarkEmptyScript is the yardstick: a call that does nothing.
func BenchmarkEmptyScript(b *testing.B) {
	rdb := testredis.Client(b)
	s := redis.NewScript("return 1")
	key := testredis.Name("bench")
	b.SetParallelism(callers)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Run(context.Background(), rdb, []string{key}).Err(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkTake(b *testing.B) {
	for _, policy := range allPolicies {
		for _, n := range []int{10, 1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", policy, n), func(b *testing.B) {
				rdb := testredis.Client(b)
				pool := testredis.Name("bench")
				p, err := allocation.New(rdb, []allocation.Config{{Name: pool, Policy: policy, Cap: 1 << 30}})
				if err != nil {
					b.Fatal(err)
				}
				bench := &bench{t: b, rdb: rdb, pool: pool, pools: p}
				bench.fill(n)
				b.SetParallelism(callers)
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for i := 0; pb.Next(); i++ {
						o := allocation.TakeOptions{Key: fmt.Sprint(i % 100)}
						if _, err := p.Take(context.Background(), pool, o); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
			})
		}
	}
}

package quota_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// One job's leases of three limits, taken and given back: by one worker, and by a
// crowd that shares calls.
func BenchmarkLeases(b *testing.B) {
	l := quota.NewLeases(testredis.Client(b))
	names := []string{testredis.Name("quota:"), testredis.Name("host:"), testredis.Name("source:")}
	limits := []quota.Running{{Name: names[0], Limit: 1_000_000}, {Name: names[1], Limit: 1_000_000}, {Name: names[2]}}
	var n atomic.Int64
	job := func(b *testing.B) {
		h := strconv.FormatInt(n.Add(1), 10)
		if a, err := l.Acquire(context.Background(), h, time.Minute, limits...); err != nil || !a.Held {
			b.Fatal(a, err)
		}
		if _, err := l.Release(context.Background(), h, names...); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			job(b)
		}
	})
	b.Run("crowd", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				job(b)
			}
		})
	})
}

// A full limit: one ends, the first in line is named and comes, a new one joins at the end.
func BenchmarkLeasesWithALine(b *testing.B) {
	ctx := context.Background()
	for _, waiting := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l := quota.NewLeases(testredis.Client(b))
			one := quota.Running{Name: testredis.Name("host:"), Limit: 1}
			n := 0
			ask := func(h string) {
				if _, err := l.Acquire(ctx, h, time.Minute, one); err != nil {
					b.Fatal(err)
				}
			}
			for ; n <= waiting; n++ {
				ask(fmt.Sprint("w", n))
			}
			runs := "w0"
			for b.Loop() {
				next, err := l.Release(ctx, runs, one.Name)
				if err != nil || len(next) != 1 {
					b.Fatal(next, err)
				}
				runs = next[0]
				ask(runs)
				ask(fmt.Sprint("w", n))
				n++
			}
		})
	}
}

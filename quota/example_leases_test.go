package quota_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"feedwarden/quota"
)

func exampleLeases() (leases *quota.Leases, stop func()) {
	rdb, stop := exampleRedis()
	return quota.NewLeases(rdb, quota.WithClock(noon)), stop
}

var (
	ofAPI  = quota.Running{Name: "quota:api", Limit: 16}
	ofHost = quota.Running{Name: "host:api.example.org", Limit: 1}
)

// acquire asks for both, of which an example only wants to know the answer.
func acquire(l *quota.Leases, holder string) {
	a, err := l.Acquire(context.Background(), holder, time.Minute, ofAPI, ofHost)
	switch {
	case err != nil:
		fmt.Println(holder, err)
	case a.Held:
		fmt.Println(holder, "runs")
	default:
		fmt.Println(holder, "waits for", a.Full.Name, "as number", a.Position, "until woken, or for", a.RetryAfter)
	}
}

func ExampleLeases() {
	leases, stop := exampleLeases()
	defer stop()
	ctx := context.Background()
	acquire(leases, "job-1")
	acquire(leases, "job-2")
	acquire(leases, "job-3")
	next, err := leases.Release(ctx, "job-1", ofAPI.Name, ofHost.Name)
	fmt.Println("to be woken:", next, err)
	acquire(leases, "job-3")
	acquire(leases, "job-2")
	// Output:
	// job-1 runs
	// job-2 waits for host:api.example.org as number 1 until woken, or for 1m0s
	// job-3 waits for host:api.example.org as number 2 until woken, or for 2m0s
	// to be woken: [job-2] <nil>
	// job-3 waits for host:api.example.org as number 2 until woken, or for 1m0s
	// job-2 runs
}

func ExampleNewLeases() {
	rdb, stop := exampleRedis()
	defer stop()
	leases := quota.NewLeases(rdb) // by Redis's clock
	a, err := leases.Acquire(context.Background(), "job-1", 30*time.Second, quota.Running{Name: "source:html", Limit: 4})
	fmt.Println(a.Held, err)
	// Output: true <nil>
}

func ExampleLeases_Acquire() {
	leases, stop := exampleLeases()
	defer stop()
	acquire(leases, "job-1")
	acquire(leases, "job-1") // the reply was lost: the same lease
	acquire(leases, "job-2")
	s, err := leases.State(context.Background(), ofAPI.Name)
	fmt.Println(s.Running, "of the quota's: the host refused job-2, so it took nothing", err)
	// Output:
	// job-1 runs
	// job-1 runs
	// job-2 waits for host:api.example.org as number 1 until woken, or for 1m0s
	// 1 of the quota's: the host refused job-2, so it took nothing <nil>
}

func ExampleLeases_Extend() {
	rdb, stop := exampleRedis()
	defer stop()
	now := noon()
	leases := quota.NewLeases(rdb, quota.WithClock(func() time.Time { return now }))
	ctx := context.Background()
	acquire(leases, "job-1")
	now = now.Add(50 * time.Second)
	fmt.Println(leases.Extend(ctx, "job-1", time.Minute, ofHost.Name))
	now = now.Add(2 * time.Minute)
	err := leases.Extend(ctx, "job-1", time.Minute, ofHost.Name)
	fmt.Println(errors.Is(err, quota.ErrNotHeld), "-", err)
	// Output:
	// job-1 runs
	// <nil>
	// true - quota: extend "host:api.example.org": "host:api.example.org": the lease is not held; it has ended or was never given
}

func ExampleLeases_Release() {
	leases, stop := exampleLeases()
	defer stop()
	acquire(leases, "job-1")
	acquire(leases, "job-2")
	next, err := leases.Release(context.Background(), "job-1", ofAPI.Name, ofHost.Name)
	fmt.Println(next, err)
	// Output:
	// job-1 runs
	// job-2 waits for host:api.example.org as number 1 until woken, or for 1m0s
	// [job-2] <nil>
}

func ExampleLeases_Leave() {
	leases, stop := exampleLeases()
	defer stop()
	acquire(leases, "job-1")
	acquire(leases, "cancelled")
	fmt.Println(leases.Leave(context.Background(), "cancelled", ofAPI.Name, ofHost.Name))
	acquire(leases, "job-2")
	// Output:
	// job-1 runs
	// cancelled waits for host:api.example.org as number 1 until woken, or for 1m0s
	// <nil>
	// job-2 waits for host:api.example.org as number 1 until woken, or for 1m0s
}

func ExampleLeases_Block() {
	leases, stop := exampleLeases()
	defer stop()
	ctx := context.Background()
	// 503 with Retry-After: 120, from a target that has no quota.
	if err := leases.Block(ctx, ofHost.Name, 2*time.Minute, "503"); err != nil {
		panic(err)
	}
	a, err := leases.Acquire(ctx, "job-1", time.Minute, ofHost)
	fmt.Println(a.Held, a.Reason, a.RetryAfter, err)
	// Output: false blocked 2m0s <nil>
}

func ExampleLeases_Unblock() {
	leases, stop := exampleLeases()
	defer stop()
	ctx := context.Background()
	if err := leases.Block(ctx, ofHost.Name, time.Hour, "maintenance"); err != nil {
		panic(err)
	}
	acquire(leases, "job-1")
	next, err := leases.Unblock(ctx, ofHost.Name)
	fmt.Println(next, err)
	// Output:
	// job-1 waits for host:api.example.org as number 1 until woken, or for 1h0m0s
	// [job-1] <nil>
}

func ExampleLeases_State() {
	leases, stop := exampleLeases()
	defer stop()
	acquire(leases, "job-1")
	acquire(leases, "job-2")
	s, err := leases.State(context.Background(), ofHost.Name)
	fmt.Println(s.Running, "of", s.Limit, "run,", s.Waiting, "wait; a lease ends at", s.NextExpiry.Format(time.TimeOnly), err)
	// Output:
	// job-1 runs
	// job-2 waits for host:api.example.org as number 1 until woken, or for 1m0s
	// 1 of 1 run, 1 wait; a lease ends at 12:01:00 <nil>
}

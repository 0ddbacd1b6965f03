package quota_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// exampleRedis is a server for one example: any Redis from 6.2 on will do.
func exampleRedis() (rdb *redis.Client, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: server.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		server.Close()
	}
}

// exampleLimiter has one quota, api: 10 units a minute. Its clock stands still at noon.
func exampleLimiter() (limiter *quota.Limiter, stop func()) {
	rdb, stop := exampleRedis()
	limiter, err := quota.New(rdb, []quota.Config{{Name: "api", Windows: []quota.Window{{Limit: 10, Per: time.Minute}}}}, quota.WithClock(noon))
	if err != nil {
		panic(err)
	}
	return limiter, stop
}

// charge is a charge of which an example only wants to know whether it was granted.
func charge(l *quota.Limiter, id string, cost int64) {
	d, err := l.Charge(context.Background(), quota.Request{Quota: "api", ID: id, Cost: cost})
	fmt.Println(id, "granted:", d.Granted, err)
}

func ExampleNew() {
	_, err := quota.New(nil, []quota.Config{{Name: "api", Windows: []quota.Window{{Limit: 0, Per: time.Minute}}, Reserve: -1}})
	fmt.Println(err)
	// Output:
	// quota: config "api": window 1: limit 0; it must be from 1 to 1000000000000
	// quota: config "api": reserve -1; it must be 0 or more, and less than the largest limit
}

func ExampleLimiter_Charge() {
	limiter, stop := exampleLimiter()
	defer stop()
	ctx := context.Background()
	for _, cost := range []int64{8, 4, 2} {
		d, err := limiter.Charge(ctx, quota.Request{Quota: "api", ID: fmt.Sprint("cost-", cost), Cost: cost})
		if err != nil {
			panic(err)
		}
		fmt.Println(d.ID, d.Granted, d.Reason, "place", d.Position, "after", d.RetryAfter)
	}
	// The light one fits, but waits behind the heavy one. Somebody at the screen does not:
	d, err := limiter.Charge(ctx, quota.Request{Quota: "api", ID: "by hand", Cost: 2, Priority: quota.Interactive})
	fmt.Println(d.ID, d.Granted, err)
	// Output:
	// cost-8 true  place 0 after 0s
	// cost-4 false window place 1 after 1m0s
	// cost-2 false line place 2 after 1m0.001s
	// by hand true <nil>
}

func ExampleLimiter_ChargeAll() {
	limiter, stop := exampleLimiter()
	defer stop()
	answers := limiter.ChargeAll(context.Background(), []quota.Request{
		{Quota: "api", ID: "a", Cost: 6},
		{Quota: "api", ID: "b", Cost: 6, NoLine: true},
		{Quota: "api", ID: "c", Cost: 4},
		{Quota: "other", ID: "d", Cost: 1},
	})
	for _, a := range answers {
		fmt.Println(a.Granted, a.Err)
	}
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
	// false quota: charge "other": no such quota
}

func ExampleLimiter_Refund() {
	limiter, stop := exampleLimiter()
	defer stop()
	charge(limiter, "page-1", 10)
	for range 2 { // nothing was sent, and nobody knows whether the first refund came through
		restored, err := limiter.Refund(context.Background(), "api", "page-1")
		fmt.Println(restored, err)
	}
	charge(limiter, "page-2", 10)
	// Output:
	// page-1 granted: true <nil>
	// 10 <nil>
	// 0 <nil>
	// page-2 granted: true <nil>
}

func ExampleLimiter_Leave() {
	limiter, stop := exampleLimiter()
	defer stop()
	charge(limiter, "a", 8)
	charge(limiter, "cancelled", 10)
	charge(limiter, "b", 2)
	if err := limiter.Leave(context.Background(), "api", "cancelled"); err != nil {
		panic(err)
	}
	charge(limiter, "b", 2)
	// Output:
	// a granted: true <nil>
	// cancelled granted: false <nil>
	// b granted: false <nil>
	// b granted: true <nil>
}

func ExampleLimiter_Block() {
	limiter, stop := exampleLimiter()
	defer stop()
	ctx := context.Background()
	// A target that says 429 with Retry-After: 30.
	if err := limiter.Block(ctx, "api", 30*time.Second, "429 from api.example.org"); err != nil {
		panic(err)
	}
	d, err := limiter.Charge(ctx, quota.Request{Quota: "api", ID: "a", Cost: 1})
	fmt.Println(d.Granted, d.Reason, d.RetryAfter, err)
	// Output: false blocked 30s <nil>
}

func ExampleLimiter_Unblock() {
	limiter, stop := exampleLimiter()
	defer stop()
	ctx := context.Background()
	if err := limiter.Block(ctx, "api", time.Hour, "maintenance"); err != nil {
		panic(err)
	}
	charge(limiter, "a", 1)
	if err := limiter.Unblock(ctx, "api"); err != nil {
		panic(err)
	}
	charge(limiter, "a", 1)
	// Output:
	// a granted: false <nil>
	// a granted: true <nil>
}

func ExampleLimiter_State() {
	limiter, stop := exampleLimiter()
	defer stop()
	charge(limiter, "a", 8)
	charge(limiter, "b", 5)
	s, err := limiter.State(context.Background(), "api")
	if err != nil {
		panic(err)
	}
	fmt.Println("remaining", s.Remaining, "from", s.NextRelease.Format(time.TimeOnly), "more")
	fmt.Println("waiting", s.Scheduled.Waiting, "for", s.Scheduled.Units, "first", s.Waiters[0].ID)
	fmt.Println("granted", s.Grants, "refused", s.Refusals)
	// Output:
	// a granted: true <nil>
	// b granted: false <nil>
	// remaining 2 from 12:01:00 more
	// waiting 1 for 5 first b
	// granted 1 refused 1
}

func ExampleLimiter_History() {
	limiter, stop := exampleLimiter()
	defer stop()
	charge(limiter, "a", 8)
	charge(limiter, "b", 5)
	points, err := limiter.History(context.Background(), "api")
	if err != nil {
		panic(err)
	}
	present := points[len(points)-1]
	fmt.Println(len(points), "quarters of an hour, the last from", present.Start.Format(time.TimeOnly))
	fmt.Println("granted", present.Granted, "of", present.Units, "units, refused", present.Refused)
	// Output:
	// a granted: true <nil>
	// b granted: false <nil>
	// 96 quarters of an hour, the last from 12:00:00
	// granted 1 of 8 units, refused 1
}

func ExampleLimiter_Shares() {
	limiter, stop := exampleLimiter()
	defer stop()
	ctx := context.Background()
	for _, r := range []quota.Request{
		{Quota: "api", ID: "a", Cost: 5, Label: "trending-bd"},
		{Quota: "api", ID: "b", Cost: 2, Label: "trending-ph"},
		{Quota: "api", ID: "c", Cost: 1},
	} {
		if _, err := limiter.Charge(ctx, r); err != nil {
			panic(err)
		}
	}
	points, shares, err := limiter.Shares(ctx, "api")
	if err != nil {
		panic(err)
	}
	last := len(points) - 1
	for _, s := range shares {
		fmt.Println(s.Label, "took", s.Units[last], "of", points[last].Units)
	}
	// Output:
	// trending-bd took 5 of 8
	// trending-ph took 2 of 8
}

func ExampleLimiter_Reload() {
	limiter, stop := exampleLimiter()
	defer stop()
	charge(limiter, "a", 8)
	charge(limiter, "b", 8)
	// The limit is raised while all goes on. What was charged stays charged.
	if err := limiter.Reload([]quota.Config{{Name: "api", Windows: []quota.Window{{Limit: 16, Per: time.Minute}}}}); err != nil {
		panic(err)
	}
	charge(limiter, "b", 8)
	// Output:
	// a granted: true <nil>
	// b granted: false <nil>
	// b granted: true <nil>
}

func ExampleLimiter_Config() {
	limiter, stop := exampleLimiter()
	defer stop()
	c, ok := limiter.Config("api")
	fmt.Println(c.Windows[0].Limit, "per", c.Windows[0].Per, "grace", c.Grace, ok)
	// Output: 10 per 1m0s grace 30s true
}

func ExampleLimiter_Names() {
	limiter, stop := exampleLimiter()
	defer stop()
	fmt.Println(limiter.Names())
	// Output: [api]
}

func ExampleWithPrefix() {
	rdb, stop := exampleRedis()
	defer stop()
	ctx := context.Background()
	staging, err := quota.New(rdb, []quota.Config{{Name: "api", Windows: []quota.Window{{Limit: 1, Per: time.Minute}}}}, quota.WithPrefix("staging:"))
	if err != nil {
		panic(err)
	}
	charge(staging, "a", 1)
	fmt.Println(rdb.Exists(ctx, "staging:{quota:api}:meta").Val() == 1 || rdb.Exists(ctx, "staging:{quota:api}:state").Val() == 1)
	// Output:
	// a granted: true <nil>
	// true
}

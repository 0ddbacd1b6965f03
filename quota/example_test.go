package quota_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// noon is a clock for examples; without it, Redis's own counts.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func Example() {
	server, err := miniredis.Run() // any Redis from 6.2 on
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()

	limiter, err := quota.New(rdb, []quota.Config{{
		Name:    "api",
		Windows: []quota.Window{{Limit: 10000, Per: 24 * time.Hour}, {Limit: 300, Per: time.Minute}},
	}}, quota.WithClock(noon))
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	for _, id := range []string{"job-1/page-1", "job-2/page-1", "job-2/page-1"} {
		d, err := limiter.Charge(ctx, quota.Request{Quota: "api", ID: id, Cost: 200})
		switch {
		case err != nil:
			fmt.Println(err)
		case d.Granted:
			fmt.Println(id, "granted")
		default:
			fmt.Println(id, "comes again after", d.RetryAfter, "as number", d.Position)
		}
	}
	restored, err := limiter.Refund(ctx, "api", "job-1/page-1")
	fmt.Println("restored", restored, err)

	_, err = limiter.Charge(ctx, quota.Request{Quota: "api", ID: "job-3", Cost: 301})
	if impossible := (*quota.ImpossibleError)(nil); errors.As(err, &impossible) {
		fmt.Println("never more than", impossible.Limit)
	}
	// Output:
	// job-1/page-1 granted
	// job-2/page-1 comes again after 1m0s as number 1
	// job-2/page-1 comes again after 1m0s as number 1
	// restored 200 <nil>
	// never more than 300
}

func ExampleLedger() {
	ledger, err := quota.NewLedger(quota.Config{Name: "api", Windows: []quota.Window{{Limit: 4, Per: time.Minute}}})
	if err != nil {
		panic(err)
	}
	for i := range 10 {
		d, err := ledger.Charge(noon(), quota.Request{ID: fmt.Sprint("job-", i), Cost: 1})
		if err != nil {
			panic(err)
		}
		if !d.Granted {
			fmt.Println(d.ID, d.RetryAfter)
		}
	}
	// Output:
	// job-4 1m0s
	// job-5 1m0.001s
	// job-6 1m0.001s
	// job-7 1m0.001s
	// job-8 2m0s
	// job-9 2m0.001s
}

func ExampleParseCost() {
	for _, s := range []string{"100", "1e3"} {
		n, err := quota.ParseCost(s)
		fmt.Println(n, err)
	}
	// Output:
	// 100 <nil>
	// 0 quota: cost "1e3": cost must be a whole number from 1 to 9007199254740991
}

func ExampleDay() {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic(err)
	}
	from, to := quota.Day(pacific, time.Date(2026, 11, 1, 12, 0, 0, 0, pacific)) // clocks go back
	fmt.Println(from.In(pacific).Format(time.DateTime), to.Sub(from))
	// Output: 2026-11-01 00:00:00 25h0m0s
}

func ExamplePriority_String() {
	fmt.Println(quota.Scheduled, quota.Interactive)
	// Output: scheduled interactive
}

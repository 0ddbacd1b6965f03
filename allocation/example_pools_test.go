package allocation_test

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"feedwarden/allocation"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// opened is a pool on a Redis of its own, for the examples.
func opened(c allocation.Config) (*allocation.Pools, func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	pools, err := allocation.New(rdb, []allocation.Config{c})
	if err != nil {
		panic(err)
	}
	return pools, func() { _ = rdb.Close(); server.Close() }
}

const three = "a.example:80\nb.example:80\nc.example:80\n"

func ExamplePools_Take() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public", Policy: allocation.Sticky})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader(three), nil)
	one, err := pools.Take(ctx, "public", allocation.TakeOptions{Key: "client 7", Target: "api.example"})
	again, _ := pools.Take(ctx, "public", allocation.TakeOptions{Key: "client 7"})
	fmt.Println(one.ID == again.ID, again.Count, again.PublicOnly, err)
	// Output: true 2 true <nil>
}

func ExamplePools_Report() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public", Policy: allocation.LeastBusy, Cap: 1})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader("a.example:80"), nil)
	a, _ := pools.Take(ctx, "public", allocation.TakeOptions{})
	_, err := pools.Take(ctx, "public", allocation.TakeOptions{})
	fmt.Println(strings.Contains(err.Error(), "every eligible endpoint is at its cap"))

	err = pools.Report(ctx, allocation.Report{Pool: a.Pool, ID: a.ID, Lease: a.Lease, Target: "api.example", Outcome: allocation.OK})
	a, _ = pools.Take(ctx, "public", allocation.TakeOptions{})
	fmt.Println(a.Count, err)
	// Output:
	// true
	// 2 <nil>
}

func ExamplePools_Sync() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public"})
	defer done()
	r, err := pools.Sync(ctx, "public", "my list", strings.NewReader(three), nil)
	fmt.Println(r.Accepted, r.Retired, err)
	r, err = pools.Sync(ctx, "public", "my list", strings.NewReader("b.example:80\nd.example:80\n"), nil)
	fmt.Println(r.Accepted, r.Retired, err)
	_, err = pools.Sync(ctx, "public", "my list", strings.NewReader(""), nil)
	fmt.Println(err)
	n, err := pools.Retire(ctx, "public", "my list")
	fmt.Println(n, err)
	// Output:
	// 3 0 <nil>
	// 1 2 <nil>
	// allocation: sync "public": the list has no endpoint (0 lines were rejected) and had 2: nothing was retired; remove them by hand if it is meant
	// 2 <nil>
}

func ExamplePools_Judge() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public", Require: &allocation.Require{HTTPS: true, MaxLatency: 5 * time.Second}})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader(three), nil)
	list, err := pools.Candidates(ctx, "public", 10)
	fmt.Println(len(list), err)
	for i, a := range list {
		// a.URL is where a checker would ask the judge through.
		e, err := pools.Judge(ctx, "public", a.ID, allocation.Verdict{OK: true, HTTPS: i > 0, Latency: time.Second})
		fmt.Println(e.State, e.Why, err)
	}
	// Output:
	// 3 <nil>
	// candidate no https <nil>
	// probation  <nil>
	// probation  <nil>
}

func ExamplePools_Reload() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public"})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader("a.example:80"), nil)
	_, _ = pools.Judge(ctx, "public", "http://a.example:80", allocation.Verdict{OK: true, Latency: 8 * time.Second})

	err := pools.Reload([]allocation.Config{{Name: "public", Policy: allocation.Shuffled, Require: &allocation.Require{MaxLatency: 5 * time.Second}}})
	moved, _ := pools.Fit(ctx, "public")
	e, _ := pools.Endpoint(ctx, "public", "http://a.example:80")
	c, _ := pools.Config("public")
	fmt.Println(pools.Names(), c.Policy, moved, e.State, e.Why, err)
	// Output: [public] shuffled 1 candidate too slow <nil>
}

func ExamplePools_Exits() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public"})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader(three), nil)
	for _, seen := range []struct{ id, exit string }{
		{"http://a.example:80", "203.0.113.5"}, {"http://b.example:80", "203.0.113.5"}, {"http://b.example:80", "203.0.113.6"},
	} {
		_, _ = pools.Judge(ctx, "public", seen.id, allocation.Verdict{OK: true, Exit: netip.MustParseAddr(seen.exit)})
	}
	groups, err := pools.Exits(ctx, "public")
	for _, g := range groups {
		fmt.Println(g.Addr, g.Endpoints, "rotating:", g.Rotating, err)
	}
	// Output:
	// 203.0.113.5 [http://a.example:80 http://b.example:80] rotating: 1 <nil>
	// 203.0.113.6 [http://b.example:80] rotating: 1 <nil>
}

func ExamplePools_ListPage() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public"})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader(three), nil)
	for page := (allocation.Page{Limit: 2}); ; {
		p, err := pools.ListPage(ctx, "public", page)
		for _, e := range p.Endpoints {
			fmt.Println(e.ID, e.State, e.Count, e.Handicap, err)
		}
		if p.Next == "" {
			break
		}
		page.After = p.Next
	}
	all, _ := pools.List(ctx, "public")
	s, _ := pools.State(ctx, "public")
	fmt.Println(len(all), s.Eligible)
	// Output:
	// http://a.example:80 active 0 0 <nil>
	// http://b.example:80 active 0 0 <nil>
	// http://c.example:80 active 0 0 <nil>
	// 3 3
}

func ExamplePools_Restore() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public"})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader(three), nil)
	fmt.Println(pools.Quarantine(ctx, "public", "http://a.example:80", time.Hour))
	fmt.Println(pools.Disable(ctx, "public", "http://b.example:80"))
	fmt.Println(pools.Remove(ctx, "public", "http://c.example:80"))
	s, _ := pools.State(ctx, "public")
	fmt.Println(s.Total, s.Quarantined, s.Disabled, s.Eligible)
	_ = pools.Restore(ctx, "public", "http://a.example:80")
	e, _ := pools.Endpoint(ctx, "public", "http://a.example:80")
	fmt.Println(e.State)
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// 2 1 1 0
	// probation
}

func ExamplePools_Targets() {
	ctx := context.Background()
	pools, done := opened(allocation.Config{Name: "public"})
	defer done()
	_, _ = pools.Import(ctx, "public", strings.NewReader(three), nil)
	for _, id := range []string{"http://a.example:80", "http://b.example:80"} {
		_ = pools.Report(ctx, allocation.Report{Pool: "public", ID: id, Target: "down.example", Outcome: allocation.Timeout})
	}
	list, err := pools.Targets(ctx, "public")
	fmt.Println(list[0].Name, list[0].Paused.After(time.Now()), err)
	fmt.Println(pools.Resume(ctx, "public", "down.example"))
	// Output:
	// down.example true <nil>
	// <nil>
}

func ExampleID() {
	_ = allocation.ParseList(strings.NewReader("http://user:secret@EX.com"), allocation.ListOptions{}, ids)
	_ = allocation.ParseList(strings.NewReader("http://an-api-key@ex.com"), allocation.ListOptions{}, ids)
	// Output:
	// http://user@ex.com:80
	// http://key~31fd29a00995@ex.com:80
}

func ids(_ int, u *url.URL, _ error) { fmt.Println(allocation.ID(u)) }

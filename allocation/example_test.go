package allocation_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"feedwarden/allocation"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func ExamplePools() {
	ctx := context.Background()
	server, err := miniredis.Run()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()

	pools, err := allocation.New(rdb, []allocation.Config{{Name: "public"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	list := "http://user:secret@proxy.example:8080\nproxy.example"
	result, err := pools.Import(ctx, "public", strings.NewReader(list), func(line int, err error) {
		fmt.Printf("line %d: %v\n", line, err)
	})
	fmt.Println(result.Accepted, result.Rejected, err)

	a, err := pools.Take(ctx, "public", allocation.TakeOptions{Target: "api.example"})
	fmt.Println(a.ID, a.Count, err)

	err = pools.Report(ctx, allocation.Report{Pool: a.Pool, ID: a.ID, Lease: a.Lease, Outcome: allocation.Connect})
	fmt.Println(err)

	_, err = pools.Take(ctx, "public", allocation.TakeOptions{})
	var empty *allocation.EmptyError
	fmt.Println(errors.As(err, &empty) && empty.RetryAfter > 0)
	// Output:
	// line 2: no port is given: write host:port
	// 1 1 <nil>
	// http://user@proxy.example:8080 1 <nil>
	// <nil>
	// true
}

func ExampleParseList() {
	list := "# mine\nHTTP://EX.com/\n198.51.100.7:1080:user:pa:ss, 10.0.0.1:80\n"
	_ = allocation.ParseList(strings.NewReader(list), allocation.ListOptions{}, func(line int, u *url.URL, err error) {
		if err != nil {
			fmt.Println(line, err)
			return
		}
		fmt.Println(line, allocation.ID(u))
	})
	// Output:
	// 2 http://ex.com:80
	// 3 http://user@198.51.100.7:1080
	// 3 the address is private, loopback or reserved: use a public one, or set allow_private for the pool
}

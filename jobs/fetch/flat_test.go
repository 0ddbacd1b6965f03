package fetch

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"feedwarden/allocation"
	"feedwarden/internal/faultkit"
	"feedwarden/internal/testredis"
)

// TestThousandFetchesOverFiftyAllocatedEndpointsStayFlat: a crowd takes from a pool,
// fetches through what it got and reports, a thousand times. When each of the fifty
// real proxies, http and socks5, has been used, goroutines and descriptors have
// the level that they still have at the end, and closing the client gives all back.
func TestThousandFetchesOverFiftyAllocatedEndpointsStayFlat(t *testing.T) {
	const endpoints, callers, fetches, warm = 50, 8, 1000, 200
	var through atomic.Int64
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		through.Add(1)
		_, _ = w.Write([]byte("content"))
	})
	var list strings.Builder
	tunnels := map[string]*faultkit.Proxy{}
	for i := range endpoints {
		if i%5 == 0 {
			p := socksProxy(t, faultkit.Options{User: "u", Password: "p"})
			tunnels[p.Addr()] = p
			fmt.Fprintln(&list, p.URL())
			continue
		}
		fmt.Fprintln(&list, httpProxy(t, faultkit.Options{}).URL())
	}
	rdb := testredis.Own(t, "--save", "", "--appendonly", "no").Client()
	t.Cleanup(func() { _ = rdb.Close() })
	pools, err := allocation.New(rdb, []allocation.Config{{Name: "flat", AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pools.Import(t.Context(), "flat", strings.NewReader(list.String()), nil); err != nil {
		t.Fatal(err)
	}
	c := open(t, Config{})
	before := c.pool.open.Load()

	crowd := func(n int) {
		t.Helper()
		var left atomic.Int64
		left.Store(int64(n))
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for left.Add(-1) >= 0 {
					a, err := pools.Take(t.Context(), "flat", allocation.TakeOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					resp, err := c.Do(t.Context(), Request{URL: target.URL}, Via{ID: a.ID, Proxy: a.URL})
					if err != nil || string(resp.Body) != "content" {
						t.Errorf("through %s: %v", a.ID, err)
						return
					}
					if err := pools.Report(t.Context(), allocation.Report{Pool: "flat", ID: a.ID, Outcome: allocation.OK}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
	}
	crowd(warm)
	// The counts may still move for a moment: what ends, ends soon, and the level is the lowest seen.
	goroutines, fds := settled(t)
	crowd(fetches - warm)
	// A few callers may have met at one endpoint, which then has a second connection: five ends of it are ours.
	const slack = 5 * callers
	until(t, fmt.Sprintf("goroutines (%d now, %d after the first fetches) and descriptors (%d and %d) to be flat",
		runtime.NumGoroutine(), goroutines, descriptors(t), fds), func() bool {
		return runtime.NumGoroutine() <= goroutines+slack && descriptors(t) <= fds+slack
	})
	if n := through.Load(); n != fetches {
		t.Errorf("the target answered %d requests, want %d", n, fetches)
	}
	for addr, p := range tunnels {
		if p.Stats().Tunnels == 0 {
			t.Errorf("the socks5 proxy %s was never used", addr)
		}
	}
	all, err := pools.List(t.Context(), "flat")
	if err != nil || len(all) != endpoints {
		t.Fatalf("%d endpoints are listed (%v), want %d", len(all), err, endpoints)
	}
	for _, e := range all {
		if e.Count != fetches/endpoints || e.State != allocation.Active {
			t.Errorf("%s is %s with %d allocations, want %d", e.ID, e.State, e.Count, fetches/endpoints)
		}
	}
	c.Close()
	until(t, "the client's connections to close", func() bool { return c.pool.open.Load() == before })
	until(t, "goroutines and descriptors to be given back", func() bool {
		// Each endpoint's connection was two goroutines and a descriptor of the client's, at least.
		return runtime.NumGoroutine() <= goroutines-2*endpoints && descriptors(t) <= fds-endpoints
	})
}

// settled gives the counts of goroutines and descriptors once they stand still.
func settled(t *testing.T) (goroutines, fds int) {
	t.Helper()
	still := 0
	until(t, "goroutines and descriptors to stand still", func() bool {
		g, f := runtime.NumGoroutine(), descriptors(t)
		if g == goroutines && f == fds {
			still++
		} else {
			goroutines, fds, still = g, f, 0
		}
		return still >= 10
	})
	return goroutines, fds
}

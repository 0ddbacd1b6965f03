package feed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/faultnet"
	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
)

// instance is one process that reads: its own connections, which can break,
// and its own copies.
type instance struct {
	copies *Copies
	net    *faultnet.Net
}

func newInstance(t *testing.T, srv *testredis.Server) *instance {
	t.Helper()
	wire := faultnet.New(t)
	rdb := redis.NewClient(&redis.Options{
		Network: "unix", Addr: srv.Socket(), MaxRetries: 1, ReadTimeout: time.Second,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return wire.Dial(ctx, network, addr)
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return &instance{net: wire, copies: copiesOf(t, New(rdb, luarun.NewDesk(rdb)), CopiesConfig{Safety: 50 * time.Millisecond, Bytes: 12_000})}
}

// Two processes read a few feeds while versions land as fast as they can, and
// connections break, messages are lost, and copies are evicted. Every reader
// asks only after another has been answered: what that one was given is the
// least that this one may be given.
func TestNoReaderSeesAnOlderVersionAfterANewerOne(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--save", "", "--appendonly", "no")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, luarun.NewDesk(rdb))
	// As many reads as tell something, however slow the machine; and time enough for every fault.
	const feeds, enough, atLeast = 4, 300, 1200 * time.Millisecond
	keys := make([]string, feeds)
	for i := range keys {
		keys[i] = fmt.Sprint("f", i)
		put(t, s, keys[i], 0, content("first"), 2)
	}
	instances := []*instance{newInstance(t, srv), newInstance(t, srv)}
	for _, in := range instances {
		hearing(t, in.copies, keys[0])
	}

	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	begun := time.Now()
	var wg sync.WaitGroup
	var newest [feeds]atomic.Int64
	for i, key := range keys {
		wg.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				at := t0.Add(time.Duration(n) * time.Second)
				st, err := s.Put(t.Context(), Head{Key: key}, at, at, content(fmt.Sprint(n)), 2)
				if err != nil {
					t.Error(err)
					return
				}
				newest[i].Store(st.Version)
			}
		})
	}
	var reads, fails atomic.Int64
	for _, in := range instances {
		var given [feeds]atomic.Int64 // the newest that any reader of this process was given
		for r := range 8 {
			wg.Go(func() {
				for i := r % feeds; ctx.Err() == nil; i = (i + 1) % feeds {
					least := given[i].Load()
					got, err := in.copies.Get(t.Context(), keys[i])
					if err != nil {
						if errors.Is(err, ErrNoVersion) {
							t.Errorf("%s: %v", keys[i], err)
						}
						fails.Add(1)
						continue
					}
					if reads.Add(1) > enough && time.Since(begun) > atLeast {
						stop()
					}
					if got.Head.Version < least || got.Meta.Version != got.Head.Version || string(got.Body) != strconv.FormatInt(got.Head.Version, 10) {
						t.Errorf("%s: version %d (body %s) after %d", keys[i], got.Head.Version, got.Body, least)
						return
					}
					for {
						old := given[i].Load()
						if got.Head.Version <= old || given[i].CompareAndSwap(old, got.Head.Version) {
							break
						}
					}
				}
			})
		}
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				switch n % 3 {
				case 0:
					in.net.Break()
				case 1:
					rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
				case 2:
					in.net.Swallow(true)
					_ = sleep(ctx, 30*time.Millisecond)
					in.net.Swallow(false)
					in.net.Break()
				}
				_ = sleep(ctx, 70*time.Millisecond)
			}
		})
	}
	wg.Wait()
	for i, key := range keys {
		for _, in := range instances {
			soon(t, "all have the last version", func() bool {
				got, err := in.copies.Get(t.Context(), key)
				return err == nil && got.Head.Version == newest[i].Load()
			})
		}
	}
	if reads.Load() < enough {
		t.Errorf("only %d reads, %d failed", reads.Load(), fails.Load())
	}
	t.Logf("%d reads, %d failed, versions %d %d %d %d", reads.Load(), fails.Load(), newest[0].Load(), newest[1].Load(), newest[2].Load(), newest[3].Load())
}

func TestOneSubscriptionHearsEveryNodeOfACluster(t *testing.T) {
	t.Parallel()
	nodes := testredis.Cluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes.Addrs()})
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, luarun.NewDesk(rdb))
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour})
	for n := range 9 { // slots of every node
		key := fmt.Sprint("f", n)
		put(t, s, key, 0, content("a"), 3)
		hearing(t, c, key)
		mustGet(t, c, key)
		put(t, s, key, time.Minute, content("b"), 3)
		soon(t, key+"'s second version", func() bool { return mustGet(t, c, key).Head.Version == 2 })
	}
}

package roster

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"feedwarden/internal/testredis"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("feedwarden/internal/testredis.(*Server).start.func1"), goleak.IgnoreTopFunction("os/exec.(*Cmd).Wait"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).Close"))
}

func beacon(rdb redis.UniversalClient, roles ...string) *Beacon {
	return New(rdb, roles, "v1", "abc", func() (string, string) { return "run-1", "" }, slog.New(slog.DiscardHandler))
}

func TestProcessesAreListedWhileTheyRun(t *testing.T) {
	for name, open := range map[string]func() *redis.Client{
		"redis-server": func() *redis.Client { return testredis.Own(t, "--save", "").Client() },
		"miniredis": func() *redis.Client {
			return redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := open()
			defer rdb.Close()
			ctx := t.Context()
			one, two := beacon(rdb, "web"), beacon(rdb, "worker", "scheduler")
			for _, b := range []*Beacon{one, two} {
				if err := b.Start(ctx); err != nil {
					t.Fatal(err)
				}
			}
			two.SetConfig("def")
			two.beat(ctx)
			list, err := List(ctx, rdb)
			if err != nil || len(list) != 2 {
				t.Fatal(list, err)
			}
			if p := list[0]; p.Roles[0] != "web" || p.Config != "abc" || p.Redis != "run-1" || p.Version != "v1" || p.PID == 0 || time.Since(p.LastSeen) > time.Minute {
				t.Errorf("%+v", p)
			}
			if list[1].Config != "def" {
				t.Errorf("%+v", list[1])
			}
			if err := one.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			if list, _ = List(ctx, rdb); len(list) != 1 {
				t.Errorf("%+v, want one", list)
			}
			// One that was killed is gone after twenty seconds, and dropped by the next word of another.
			if err := two.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			two.beat(ctx)
			old := float64(time.Now().Add(-goneAfter - time.Second).UnixMilli())
			if err := rdb.ZAdd(ctx, liveKey, redis.Z{Score: old, Member: two.self.ID}).Err(); err != nil {
				t.Fatal(err)
			}
			if list, _ = List(ctx, rdb); len(list) != 0 {
				t.Errorf("%+v, want none", list)
			}
			one.beat(ctx)
			if n := rdb.HLen(ctx, aboutKey).Val(); n != 1 {
				t.Errorf("%d processes are kept, want 1", n)
			}
		})
	}
}

package testredis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Dump is all that a server holds: "key" or "key field" → value, for searches
// for what must not be there.
func Dump(t testing.TB, rdb redis.UniversalClient) map[string]string {
	t.Helper()
	ctx := context.Background()
	out := map[string]string{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	scan := rdb.Scan(ctx, 0, "*", 1000).Iterator()
	for scan.Next(ctx) {
		key := scan.Val()
		kind, err := rdb.Type(ctx, key).Result()
		must(err)
		switch kind {
		case "string":
			v, err := rdb.Get(ctx, key).Result()
			if err != redis.Nil { //nolint:errorlint // it expired meanwhile
				must(err)
			}
			out[key] = v
		case "hash":
			m, err := rdb.HGetAll(ctx, key).Result()
			must(err)
			for f, v := range m {
				out[key+" "+f] = v
			}
		case "list":
			v, err := rdb.LRange(ctx, key, 0, -1).Result()
			must(err)
			out[key] = strings.Join(v, "\n")
		case "set":
			v, err := rdb.SMembers(ctx, key).Result()
			must(err)
			out[key] = strings.Join(v, "\n")
		case "zset":
			v, err := rdb.ZRange(ctx, key, 0, -1).Result()
			must(err)
			out[key] = strings.Join(v, "\n")
		case "stream":
			v, err := rdb.XRange(ctx, key, "-", "+").Result()
			must(err)
			out[key] = fmt.Sprint(v)
		}
	}
	must(scan.Err())
	return out
}

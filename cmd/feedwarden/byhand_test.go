package main

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/demo"
)

// More triggers than are taken at a time are refused for now, and a script is
// told when to ask again; a range that no backfill is made of is a wrong call.
func TestTicksByHandAreRefusedForNowOrWrong(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(commandsConfig)
	backfill := func(from, to string) []string {
		return []string{"schedules", "backfill", "other", "--from", from, "--to", to}
	}
	wrong := map[string][]string{
		"no tick lies":   backfill("2026-11-29T12:00:01Z", "2026-11-29T12:29:59Z"),
		"more than 1000": backfill("2024-11-29T12:00:00Z", "2026-11-29T12:00:00Z"),
	}
	for says, args := range wrong {
		if _, errOut, code := p.run("", args...); code != exitUsage || !contains(errOut, says) {
			t.Errorf("%v: exit %d, %s", args, code, errOut)
		}
	}
	rdb := p.redis.Client()
	defer func() { _ = rdb.Close() }()
	var open []redis.Z
	for i := range 100 {
		open = append(open, redis.Z{Member: fmt.Sprint("trigger-", i)})
	}
	if err := rdb.ZAdd(t.Context(), "fw:{schedules}:manual", open...).Err(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"schedules", "trigger", "other"}, backfill("2026-11-29T12:00:00Z", "2026-11-29T15:00:00Z")} {
		out, errOut, code := p.run("", args...)
		if code != exitRefused || !contains(errOut, "try again in 10s") {
			t.Fatalf("%v: exit %d, %s", args, code, errOut)
		}
		if line := objects(t, out)[0]; line["retry_after_ms"] != 10_000.0 || line["id"] != "" {
			t.Errorf("%v: %v", args, line)
		}
	}
}

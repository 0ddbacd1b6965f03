package allocation

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script joins parts of lua/ to one script.
func script(parts ...string) *redis.Script {
	var b strings.Builder
	for _, part := range parts {
		text, err := luaFiles.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err) // a part's name is wrong: no test passes
		}
		b.Write(text)
	}
	return redis.NewScript(b.String())
}

var (
	importScript     = script("clock", "membership", "import")
	sourceScript     = script("clock", "source")
	sweepScript      = script("clock", "membership", "retire", "sweep")
	reportScript     = script("clock", "membership", "again", "lease", "outcome", "report")
	judgeScript      = script("clock", "membership", "candidate", "again", "lease", "outcome", "judge")
	fitScript        = script("clock", "membership", "candidate", "fit")
	candidatesScript = script("clock", "candidates")
	handScript       = script("clock", "membership", "retire", "hand")
	stateScript      = script("clock", "state")
	indexScript      = script("clock", "index")

	takeScripts = map[string]*redis.Script{
		LeastUsed: script("clock", "membership", "again", "choose", "begin", "by_score", "pick_least_used", "take"),
		Random:    script("clock", "membership", "again", "choose", "begin", "pick_random", "take"),
		NoRepeat:  script("clock", "membership", "again", "choose", "begin", "pick_no_repeat", "take"),
		Shuffled:  script("clock", "membership", "again", "choose", "begin", "pick_shuffled", "take"),
		LeastBusy: script("clock", "membership", "again", "choose", "begin", "lease", "pick_least_busy", "take"),
		Sticky:    script("clock", "membership", "again", "choose", "begin", "by_score", "pick_sticky", "take"),
	}
)

// maxSeed is the highest seed of clock.lua's dice.
const maxSeed = 1<<31 - 2

// run calls a script with the clock's arguments before its own.
func (p *Pools) run(ctx context.Context, s *redis.Script, keys []string, args ...any) (any, error) {
	now := ""
	if p.clock != nil {
		now = strconv.FormatInt(p.clock().UnixMicro(), 10)
	}
	return s.Run(ctx, p.rdb, keys, append([]any{now, p.seed()}, args...)...).Result()
}

// now is the instant that scripts see.
func (p *Pools) now(ctx context.Context) (time.Time, error) {
	if p.clock != nil {
		return p.clock(), nil
	}
	return p.rdb.Time(ctx).Result()
}

// texts reads a reply that is a list of texts and whole numbers, n of them.
func texts(reply any, n int) ([]string, error) {
	list, ok := reply.([]any)
	if !ok || len(list) != n {
		return nil, fmt.Errorf("unexpected reply of %T, want a list of %d", reply, n)
	}
	out := make([]string, n)
	for i, v := range list {
		switch v := v.(type) {
		case string:
			out[i] = v
		case int64:
			out[i] = strconv.FormatInt(v, 10)
		default:
			return nil, fmt.Errorf("unexpected %T at place %d of the reply", v, i+1)
		}
	}
	return out, nil
}

// instant reads microseconds since 1970; "" is the zero time.
func instant(us string) (time.Time, error) {
	if us == "" {
		return time.Time{}, nil
	}
	f, err := strconv.ParseFloat(us, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("unexpected instant in the reply: %w", err)
	}
	return microTime(f), nil
}

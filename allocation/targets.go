package allocation

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Target is a host that a pool's endpoints ask, with something against it.
type Target struct {
	Name   string
	Paused time.Time // until when nobody of this pool asks it; zero: it is open
	Banned int       // endpoints that it refuses
}

// A TargetBan keeps one endpoint from one target.
type TargetBan struct {
	Target string
	Until  time.Time
}

// pauseMember stands for the target itself beside the endpoints it bans.
const pauseMember = "*"

// Targets gives the targets that are paused or have banned endpoints, the first to be free first.
func (p *Pools) Targets(ctx context.Context, pool string) ([]Target, error) {
	if _, err := p.pool(pool); err != nil {
		return nil, failed("targets", pool, err)
	}
	now, err := p.now(ctx)
	if err != nil {
		return nil, failed("targets", pool, err)
	}
	var out []Target
	err = p.closed(ctx, pool, now, func(name string, ends []redis.Z) {
		t := Target{Name: name}
		for _, z := range ends {
			if z.Member == pauseMember {
				t.Paused = microTime(z.Score)
			} else {
				t.Banned++
			}
		}
		if len(ends) > 0 {
			out = append(out, t)
		}
	})
	if err != nil {
		return nil, failed("targets", pool, err)
	}
	return out, nil
}

// Resume ends a target's pause; its bans stay.
func (p *Pools) Resume(ctx context.Context, pool, target string) error {
	if _, err := p.pool(pool); err != nil {
		return failed("resume", pool, err)
	}
	k, name := keysOf(pool), targetName(target)
	n, err := p.rdb.ZRem(ctx, k.target(name), pauseMember).Result()
	if err != nil {
		return failed("resume", pool, err)
	}
	if n == 0 {
		return failed("resume", pool, ErrNotPaused)
	}
	return nil
}

// ErrNotPaused: Resume of a target that is not paused.
var ErrNotPaused = errors.New("the target is not paused")

// bans gives each endpoint's bans.
func (p *Pools) bans(ctx context.Context, pool string, now time.Time) (map[string][]TargetBan, error) {
	out := map[string][]TargetBan{}
	err := p.closed(ctx, pool, now, func(name string, ends []redis.Z) {
		for _, z := range ends {
			if id, _ := z.Member.(string); id != pauseMember {
				out[id] = append(out[id], TargetBan{Target: name, Until: microTime(z.Score)})
			}
		}
	})
	return out, err
}

// closed gives, for each target that has any, the bans and the pause that have not ended.
func (p *Pools) closed(ctx context.Context, pool string, now time.Time, each func(name string, ends []redis.Z)) error {
	names, err := p.targetNames(ctx, pool, now)
	if err != nil || len(names) == 0 {
		return err
	}
	k := keysOf(pool)
	ends := make([]*redis.ZSliceCmd, len(names))
	_, err = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, name := range names {
			ends[i] = pipe.ZRangeByScoreWithScores(ctx, k.target(name), after(now))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, name := range names {
		each(name, ends[i].Val())
	}
	return nil
}

func (p *Pools) targetNames(ctx context.Context, pool string, now time.Time) ([]string, error) {
	return p.rdb.ZRangeByScore(ctx, keysOf(pool).prefix+"targets", after(now)).Result()
}

// targetKeys are the keys of targets that may hold a ban.
func (p *Pools) targetKeys(ctx context.Context, pool string) ([]string, error) {
	now, err := p.now(ctx)
	if err != nil {
		return nil, err
	}
	names, err := p.targetNames(ctx, pool, now)
	if err != nil {
		return nil, err
	}
	k := keysOf(pool)
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = k.target(name)
	}
	return out, nil
}

func after(now time.Time) *redis.ZRangeBy {
	return &redis.ZRangeBy{Min: "(" + strconv.FormatInt(now.UnixMicro(), 10), Max: "+inf"}
}

func microTime(us float64) time.Time { return time.UnixMicro(int64(us)).UTC() }

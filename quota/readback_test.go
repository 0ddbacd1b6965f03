package quota_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// entry is one of a log. Its ID is "" when nobody remembers it.
type entry struct {
	id          string
	stamp, cost int64
	refunded    bool
}

// readBack gives what Redis holds of a quota's charges: the log in its order, and
// what is remembered under each ID. It knows the keys' form, and nothing else
// here does. Its error is a fault in what is held.
func readBack(ctx context.Context, rdb redis.UniversalClient, name string) (log []entry, ids map[string]entry, err error) {
	key := func(part string) string { return "fw:{quota:" + name + "}:" + part }
	pipe := rdb.Pipeline()
	entries := pipe.ZRangeWithScores(ctx, key("log"), 0, -1)
	generations := []*redis.MapStringStringCmd{pipe.HGetAll(ctx, key("ids:0")), pipe.HGetAll(ctx, key("ids:1"))}
	holes := pipe.HGetAll(ctx, key("holes"))
	off := pipe.HGet(ctx, key("meta"), "off")
	_, _ = pipe.Exec(ctx)
	for _, cmd := range []redis.Cmder{entries, generations[0], generations[1], holes} {
		if cmd.Err() != nil {
			return nil, nil, cmd.Err()
		}
	}

	ids = map[string]entry{}
	byStamp := map[int64]string{}
	for _, g := range generations {
		for id, text := range g.Val() {
			c := entry{id: id}
			if _, err := fmt.Sscanf(text, "%d %d", &c.stamp, &c.cost); err != nil {
				return nil, nil, fmt.Errorf("ID %s: %q: %w", id, text, err)
			}
			byStamp[c.stamp] = id
			if c.stamp > ids[id].stamp {
				ids[id] = c
			}
		}
	}
	first, _ := off.Int64()
	refunded := int64(0)
	var sum int64
	for i, e := range entries.Val() {
		total, err := strconv.ParseInt(e.Member.(string), 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("entry %d: %w", i, err)
		}
		c := entry{stamp: int64(e.Score), cost: total - sum}
		c.id, sum = byStamp[c.stamp], total
		if i == 0 {
			continue // it only says where the sums begin
		}
		if hole, ok := holes.Val()[fmt.Sprintf("c%d", first+int64(i))]; ok {
			if hole != strconv.FormatInt(c.cost, 10) {
				return nil, nil, fmt.Errorf("entry %d of %d units has a hole of %s", i, c.cost, hole)
			}
			c.refunded = true
			refunded++
		}
		if len(log) > 0 && c.stamp <= log[len(log)-1].stamp || c.cost < 1 {
			return nil, nil, fmt.Errorf("entry %d: stamp %d, %d units, after %+v", i, c.stamp, c.cost, log)
		}
		log = append(log, c)
	}
	return log, ids, nil
}

// heaviest is the most that grants add up to in any window of this length that
// ends with grant i of the log; heaviest over all i is the most over every
// position, for a window that ends elsewhere holds no more than the one that ends
// with its newest grant.
func heaviest(log []entry, i int, w quota.Window) (sum int64) {
	end := log[i].stamp
	for ; i >= 0; i-- {
		if w.Calendar != "" {
			if dateOf(log[i].stamp, w) != dateOf(end, w) {
				break
			}
		} else if log[i].stamp <= end-w.Per.Microseconds() {
			break
		}
		if !log[i].refunded {
			sum += log[i].cost
		}
	}
	return sum
}

func dateOf(stamp int64, w quota.Window) string {
	return time.UnixMicro(stamp).In(w.Location).Format(time.DateOnly)
}

// broken says where a log breaks a window of the config; "" when it breaks none.
func broken(log []entry, c quota.Config) string {
	for i := range log {
		for _, w := range c.Windows {
			if sum := heaviest(log, i, w); sum > w.Limit {
				return fmt.Sprintf("%d units in a window of %d per %s%s that ends at %s", sum, w.Limit, w.Per, w.Calendar, time.UnixMicro(log[i].stamp).UTC())
			}
		}
	}
	return ""
}

package quota_test

import (
	"context"
	"fmt"
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
// what is remembered under each ID. Its error is a fault in what is held.
func readBack(ctx context.Context, rdb redis.UniversalClient, name string) (log []entry, ids map[string]entry, err error) {
	kept, places, err := quota.ReadLog(ctx, rdb, name)
	if err != nil {
		return nil, nil, err
	}
	byPlace := map[int64]string{}
	for id, p := range places {
		byPlace[p] = id
	}
	ids = map[string]entry{}
	for i, e := range kept {
		c := entry{id: byPlace[e.Place], stamp: e.Stamp, cost: e.Cost, refunded: e.Refunded}
		if len(log) > 0 && c.stamp <= log[len(log)-1].stamp || c.cost < 1 {
			return nil, nil, fmt.Errorf("entry %d: stamp %d, %d units, after %+v", i, c.stamp, c.cost, log)
		}
		log = append(log, c)
		if c.id != "" {
			ids[c.id] = c
		}
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

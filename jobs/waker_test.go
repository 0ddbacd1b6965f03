package jobs

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// With a queue that is paused, or whose slots long jobs hold, due jobs are not asked
// after all the time.
func TestWakerWaitsLongerWhileTheHeadOfItsQueueStaysFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	now, err := w.rdb.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * wakeHead {
		id := fmt.Sprintf("job-%03d", i)
		w.rdb.HSet(ctx, asynqTaskPrefix(QueueScheduled)+id, "msg", "x", "state", "retry")
		w.rdb.ZAdd(ctx, asynqRetry(QueueScheduled), redis.Z{Score: float64(now.Unix()), Member: id})
		w.rdb.ZAdd(ctx, wakeKey(QueueScheduled), redis.Z{Score: wakeScore(now.Add(-time.Second)) + float64(i), Member: id})
	}
	due := func(want bool) {
		t.Helper()
		if _, moves, err := wakeDue(ctx, w.rdb, QueueScheduled); err != nil || moves != want {
			t.Errorf("moves %v, %v", moves, err)
		}
	}
	due(true)
	due(false)
	due(false)
	for range wakeHead / 2 {
		w.rdb.RPop(ctx, asynqPending(QueueScheduled))
	}
	due(true)

	if d := crowdedWait(0); d != 0 {
		t.Errorf("%s while jobs move", d)
	}
	last := time.Duration(0)
	for times := 1; times < 100; times++ {
		d := crowdedWait(times)
		if d < last || d < wakeMin || d > wakeCrowded {
			t.Errorf("%s after %d times, %s before", d, times, last)
		}
		last = d
	}
	if last != wakeCrowded {
		t.Errorf("%s at last", last)
	}
}

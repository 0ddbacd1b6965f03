package jobs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// abandon leaves a task as a killed worker would: active, its lease ended.
func (w *world) abandon(id string, leaseEnded time.Duration) {
	w.t.Helper()
	ctx := w.t.Context()
	if err := w.rdb.LRem(ctx, asynqPending(QueueScheduled), 0, id).Err(); err != nil {
		w.t.Fatal(err)
	}
	w.rdb.LPush(ctx, asynqActive(QueueScheduled), id)
	w.rdb.HSet(ctx, asynqTaskPrefix(QueueScheduled)+id, "state", "active")
	w.rdb.ZAdd(ctx, asynqLeases(QueueScheduled), redis.Z{Score: float64(time.Now().Add(-leaseEnded).Unix()), Member: id})
}

func TestReconcilerGivesBackWhatADeadWorkerLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.foreign("dead")
	w.abandon("dead", 10*time.Second)
	w.foreign("alive")
	w.abandon("alive", -20*time.Second)
	rep, err := reconcile(t.Context(), w.rdb, QueueScheduled)
	if err != nil || rep != (repair{recovered: 1}) {
		t.Fatalf("%+v %v", rep, err)
	}
	pending, err := w.rdb.LRange(t.Context(), asynqPending(QueueScheduled), 0, -1).Result()
	if err != nil || fmt.Sprint(pending) != "[dead]" {
		t.Errorf("pending %v %v", pending, err)
	}
	w.work()
	w.until("dead", Done)
}

func TestReconcilerSetsAsideWhatAsynqCannotReadOrHasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	prefix := asynqTaskPrefix(QueueScheduled)
	for i, broken := range []string{"", "\xff\xff\xff", "\x0a\xff", "\x0a\x02\xc3\x28", "\x0a\x09feed", "\x7a\x04\x0a\x02\xc3\x28"} {
		for where, key := range map[string]string{"pending": asynqPending(QueueScheduled), "lease": asynqActive(QueueScheduled)} {
			id := fmt.Sprintf("%s-%d", where, i)
			w.rdb.LPush(ctx, key, id)
			if broken != "" {
				w.rdb.HSet(ctx, prefix+id, "msg", broken, "state", "pending")
			}
			if where == "lease" {
				w.rdb.ZAdd(ctx, asynqLeases(QueueScheduled), redis.Z{Score: float64(time.Now().Add(-time.Minute).Unix()), Member: id})
			}
		}
	}
	w.rdb.ZAdd(ctx, asynqRetry(QueueScheduled), redis.Z{Score: 1, Member: "retry-lost"})
	w.foreign("good")
	w.abandon("good", 10*time.Second)
	rep, err := reconcile(ctx, w.rdb, QueueScheduled)
	if err != nil || rep != (repair{recovered: 1, aside: 13}) {
		t.Fatalf("%+v %v", rep, err)
	}
	if again, err := reconcile(ctx, w.rdb, QueueScheduled); err != nil || again != (repair{}) {
		t.Errorf("a second pass finds %+v %v", again, err)
	}
	if n, _ := w.rdb.LLen(ctx, asideKey(QueueScheduled)).Result(); n != 13 {
		t.Errorf("%d entries tell what was set aside", n)
	}
	w.work()
	w.until("good", Done)
}

func TestForeignTaskOfADeadWorkerIsNotArchivedByTheNextWorkersStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		id := fmt.Sprint("old-", i)
		w.foreign(id, asynq.MaxRetry(0))
		w.abandon(id, time.Hour)
	}
	w.work()
	for i := range 5 {
		w.until(fmt.Sprint("old-", i), Done)
	}
}

// The copy of a refused last try is made, and its worker dies before it noted it.
func TestCopyThatNobodyNotedIsFoundAndNotDoubled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, 2*time.Second))
	w.fill(10)
	w.foreign("x", asynq.MaxRetry(0))
	first := w.work()
	w.until("x", Snoozed)
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.rdb.HDel(t.Context(), recordKey("x"), "forward", "ended_ms")
	w.rdb.HSet(t.Context(), recordKey("x"), "state", "snoozed")
	w.foreign("x", asynq.MaxRetry(0)) // the first task, come again
	w.work()
	w.until("x", Done)
	w.gone("x")
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestLastTryIsNotArchivedWhileRedisFalters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Its record cannot be read: the run cannot begin, and the copy cannot be made, until somebody mends it.
	w.rdb.Set(t.Context(), recordKey("x"), "not a hash", 0)
	w.foreign("x", asynq.MaxRetry(0))
	w.work()
	w.eventually(30*time.Second, func() string {
		if n, _ := w.rdb.LLen(t.Context(), asynqActive(QueueScheduled)).Result(); n != 1 {
			return "not running"
		}
		return ""
	})
	w.rdb.Del(t.Context(), recordKey("x"))
	w.until("x", Done)
}

func TestJobThatWasSetAsideIsFailedWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rdb.SAdd(t.Context(), "asynq:queues", QueueScheduled)
	w.rdb.LPush(t.Context(), asynqPending(QueueScheduled), "garbage")
	w.rdb.HSet(t.Context(), asynqTaskPrefix(QueueScheduled)+"garbage", "msg", "\xff", "state", "pending")
	for _, when := range []string{"before", "after"} {
		if j := w.get("garbage"); j.State != Failed || !strings.Contains(j.LastError, "set aside") {
			t.Errorf("%s the reconciler: %+v", when, j)
		}
		if _, err := reconcile(t.Context(), w.rdb, QueueScheduled); err != nil {
			t.Fatal(err)
		}
	}
}

func TestActiveTaskWithoutALeaseIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.foreign("orphan")
	w.abandon("orphan", 0)
	w.rdb.ZRem(t.Context(), asynqLeases(QueueScheduled), "orphan")
	if _, err := reconcile(t.Context(), w.rdb, QueueScheduled); err != nil {
		t.Fatal(err)
	}
	if ends, err := w.rdb.ZScore(t.Context(), asynqLeases(QueueScheduled), "orphan").Result(); err != nil || int64(ends) < time.Now().Unix() {
		t.Errorf("no lease that ends: %v %v", ends, err)
	}
}

func TestWakerReleasesInTheOrderOfPromisesAndNotBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	now, err := w.rdb.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	sleep := func(id string, at time.Time) {
		w.rdb.HSet(ctx, asynqTaskPrefix(QueueScheduled)+id, "msg", "x", "state", "retry")
		w.rdb.ZAdd(ctx, asynqRetry(QueueScheduled), redis.Z{Score: float64(at.Unix() + 3), Member: id})
		w.rdb.ZAdd(ctx, wakeKey(QueueScheduled), redis.Z{Score: float64(at.UnixMilli()), Member: id})
	}
	sleep("second", now.Add(-time.Second))
	sleep("first", now.Add(-2*time.Second))
	sleep("later", now.Add(time.Hour))
	w.rdb.ZAdd(ctx, wakeKey(QueueScheduled), redis.Z{Score: 1, Member: "gone"})
	if _, _, err := wakeDue(ctx, w.rdb, QueueScheduled); err != nil {
		t.Fatal(err)
	}
	// asynq takes from the right end.
	pending, err := w.rdb.LRange(ctx, asynqPending(QueueScheduled), 0, -1).Result()
	if err != nil || fmt.Sprint(pending) != "[second first]" {
		t.Errorf("pending %v %v", pending, err)
	}
	left, err := w.rdb.ZRange(ctx, wakeKey(QueueScheduled), 0, -1).Result()
	if err != nil || fmt.Sprint(left) != "[later]" {
		t.Errorf("still to wake %v %v", left, err)
	}
}

func TestJobsRecoverWhenTheScriptCacheIsFlushedOrRedisRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(1000, time.Hour))
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	if err := w.rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	w.until(w.enqueue(Spec{}).ID, Done)
	w.redis.Kill()
	w.redis.Start(t)
	var j Job
	w.eventually(20*time.Second, func() string {
		var err error
		if j, err = w.client.Enqueue(t.Context(), Spec{Feed: "news"}); err != nil {
			return err.Error()
		}
		return ""
	})
	w.until(j.ID, Done)
}

// waiting is how many readers of a process wait for a feed.
func waiting(c *Client, key string) int {
	c.vigils.mu.Lock()
	defer c.vigils.mu.Unlock()
	if v := c.vigils.all[key]; v != nil {
		return v.readers
	}
	return 0
}

func TestTwoHundredReadersOfAnEmptyFeedInTwoProcessesMakeOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second, err := NewClient(w.cfg, w.rdb, w.store, w.limiter, w.log)
	if err != nil {
		t.Fatal(err)
	}
	w.upstream.on(func(_ int, rw http.ResponseWriter, _ *http.Request) bool {
		// Long enough that all readers have asked before the answer.
		w.eventually(30*time.Second, func() string {
			if n := waiting(w.client, "news") + waiting(second, "news"); n < 200 {
				return fmt.Sprintf("%d readers wait", n)
			}
			n, err := w.rdb.PubSubNumSub(t.Context(), "fw:{feed:news}:events").Result()
			if err != nil || n["fw:{feed:news}:events"] != 2 {
				return fmt.Sprintf("%v subscriptions of two processes %v", n, err)
			}
			return ""
		})
		return false
	})
	w.work()
	errs := make(chan error, 200)
	for i := range 200 {
		go func() {
			r, err := []*Client{w.client, second}[i%2].Read(t.Context(), "news", nil, 20*time.Second)
			if err == nil && r.Version.Version != 1 {
				err = fmt.Errorf("read %+v", r)
			}
			errs <- err
		}()
	}
	for range 200 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/jobs/feed"
	"feedwarden/quota"
)

func TestCancelledJobStaysCancelled(t *testing.T) {
	t.Parallel()
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, withQuota(100, time.Hour))
		arrived := make(chan struct{}, 9)
		w.upstream.on(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			arrived <- struct{}{}
			<-r.Context().Done()
			return true
		})
		j := w.enqueue(Spec{})
		w.work()
		<-arrived
		if _, err := w.client.Cancel(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		w.until(j.ID, Cancelled)
		if _, err := w.client.Cancel(t.Context(), j.ID); err == nil {
			t.Error("cancelled twice without a word")
		}
		w.until(w.enqueue(Spec{Feed: "news", ID: "other"}).ID, Running)
		if w.get(j.ID).State != Cancelled {
			t.Error("it runs again")
		}
		if _, err := w.client.Cancel(t.Context(), "other"); err != nil {
			t.Error(err)
		}
		w.until("other", Cancelled)
	})
	t.Run("snoozed, and it leaves the line", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, withQuota(10, time.Hour))
		w.fill(10)
		j := w.enqueue(Spec{})
		w.work()
		w.until(j.ID, Snoozed)
		if _, err := w.client.Cancel(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		w.until(j.ID, Cancelled)
		s, err := w.limiter.State(t.Context(), "q")
		if err != nil || s.Interactive.Waiting != 0 {
			t.Errorf("line %+v %v", s.Interactive, err)
		}
		if n, _ := w.rdb.ZCard(t.Context(), asynqRetry(QueueInteractive)).Result(); n != 0 {
			t.Error("its task is still there")
		}
	})
	t.Run("as it falls asleep, and it holds no place in its queue", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		j := w.enqueue(Spec{})
		// Its record says that it sleeps, and asynq has not yet put it to sleep.
		if err := w.rdb.HSet(t.Context(), recordKey(j.ID), "state", string(Snoozed), "feed", "news", "queue", j.Queue).Err(); err != nil {
			t.Fatal(err)
		}
		took := make(chan struct{})
		srv := asynq.NewServerFromRedisClient(w.rdb, asynq.Config{Concurrency: 1, Queues: map[string]int{j.Queue: 1}, LogLevel: asynq.FatalLevel,
			RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour }})
		if err := srv.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			close(took)
			w.eventually(30*time.Second, func() string {
				if s := w.get(j.ID).State; s != Cancelled {
					return string(s)
				}
				return ""
			})
			return errors.New("asleep")
		})); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(srv.Shutdown)
		<-took
		if _, err := w.client.Cancel(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		if n, err := w.rdb.ZCard(t.Context(), asynqRetry(j.Queue)).Result(); err != nil || n != 0 || w.get(j.ID).State != Cancelled {
			t.Errorf("%d tasks, %s, %v", n, w.get(j.ID).State, err)
		}
		if left, err := w.client.inspector.GetTaskInfo(j.Queue, j.ID); !errors.Is(err, asynq.ErrTaskNotFound) {
			t.Errorf("its task is still there: %+v %v", left, err)
		}
	})
	t.Run("pending", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		j := w.enqueue(Spec{})
		if _, err := w.client.Cancel(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		w.work()
		w.until(w.enqueue(Spec{ID: "after"}).ID, Done)
		if w.get(j.ID).State != Cancelled || w.upstream.count() != 1 {
			t.Errorf("%+v, %d requests", w.get(j.ID), w.upstream.count())
		}
	})
}

func TestStoppedWorkerGivesItsJobBackChargedOncePerRequest(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{0, 25} {
		t.Run(fmt.Sprintf("MaxRetry(%d)", retries), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withQuota(100, time.Hour), withConfig(func(c *Config) { c.Shutdown = 50 * time.Millisecond }))
			arrived := make(chan struct{}, 1)
			w.upstream.on(func(n int, _ http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					arrived <- struct{}{}
					<-r.Context().Done()
				}
				return n == 1
			})
			w.foreign("slow", asynq.MaxRetry(retries))
			first := w.work()
			<-arrived
			if err := first.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			j := w.get("slow")
			info, err := w.client.inspector.GetTaskInfo(QueueScheduled, "slow")
			if err != nil || info.State != asynq.TaskStatePending || info.Retried != 0 || j.State != Pending || j.Attempts != 0 {
				t.Fatalf("after the stop: %+v, %+v, %v", j, info, err)
			}
			w.work()
			j = w.until("slow", Done)
			if n := w.upstream.count(); n != 2 || w.charged(0) != 2 || j.Sent != 2 || j.Crashes != 0 {
				t.Errorf("%d requests, %d charged, %+v", n, w.charged(0), j)
			}
		})
	}
}

func TestJobWhoseWorkerDiesEachTimeIsDeadAfterItsAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Attempts = 1 }))
	h := w.handler()
	for i := range 3 {
		// A run that begins and is never heard of again.
		r := &run{ID: "killer", Queue: QueueScheduled, Feed: "news", Key: "news", token: fmt.Sprint(i)}
		if err := h.begin(t.Context(), r, false); err != nil {
			t.Fatal(err)
		}
	}
	w.foreign("killer")
	w.work()
	j := w.until("killer", Failed)
	if j.Crashes != 3 || !strings.Contains(j.LastError, "died 3 times") || w.upstream.count() != 0 {
		t.Errorf("%+v", j)
	}
}

func TestOlderRunIsFencedOffByTheNewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler()
	runs := make([]*run, 2)
	for i := range runs {
		runs[i] = &run{ID: "j", Queue: QueueScheduled, Feed: "news", Key: "news", token: fmt.Sprint(i)}
		if err := h.begin(t.Context(), runs[i], false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.markSent(t.Context(), runs[0]); !errors.Is(err, errStale) {
		t.Errorf("the older run may send: %v", err)
	}
	if err := h.finish(t.Context(), runs[0], ending{State: Done}); !errors.Is(err, errStale) {
		t.Errorf("the older run may finish: %v", err)
	}
	if _, err := h.markSent(t.Context(), runs[1]); err != nil {
		t.Error(err)
	}
}

func TestFencedOffRunTouchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler()
	old := &run{ID: "j", Queue: QueueScheduled, Feed: "news", Key: "news", token: "old"}
	current := &run{ID: "j", Queue: QueueScheduled, Feed: "news", Key: "news", token: "current"}
	for _, r := range []*run{old, current} {
		if err := h.begin(t.Context(), r, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.store.Claim(t.Context(), feed.Head{Key: "news"}, "j", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, e := range []ending{{State: Done, Result: `"x"`}, {State: Snoozed, Count: "snoozes", Next: time.Now()}} {
		if err := h.finish(t.Context(), old, e); !errors.Is(err, errStale) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	h2, err := w.store.Head(t.Context(), "news")
	left := w.rdb.ZCard(t.Context(), wakeKey(QueueScheduled)).Val() + w.rdb.ZCard(t.Context(), endedKey).Val() + w.rdb.Exists(t.Context(), countersKey).Val()
	if err != nil || h2.Refreshing != "j" || left != 0 {
		t.Errorf("claim %q, %d marks %v", h2.Refreshing, left, err)
	}
}

func TestCancelThatComesAsTheRunFallsAsleepHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler()
	r := &run{ID: "j", Queue: QueueScheduled, Feed: "news", Key: "news", token: "t"}
	if err := h.begin(t.Context(), r, false); err != nil {
		t.Fatal(err)
	}
	w.rdb.HSet(t.Context(), recordKey("j"), "cancel", "1") // the message to the worker was lost
	if err := h.finish(t.Context(), r, ending{State: Snoozed, Count: "snoozes", Next: time.Now().Add(time.Hour)}); !errors.Is(err, errCancelled) {
		t.Errorf("%v", err)
	}
	if j := w.get("j"); j.State != Cancelled {
		t.Errorf("%+v", j)
	}
}

// between does something once, after a command with this name and first key was answered.
type between struct {
	name, key string
	once      sync.Once
	do        func()
}

func (b *between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); cmd.Name() == b.name && len(args) > 1 && args[1] == b.key {
			b.once.Do(b.do)
		}
		return err
	}
}

func TestJobThatEndsWhileItIsReadIsReadWithItsResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	w.upstream.on(func(int, http.ResponseWriter, *http.Request) bool { <-release; return false })
	id := w.enqueue(Spec{}).ID
	w.work()
	j := w.until(id, Running)
	rdb := w.redis.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(&between{name: "hgetall", key: recordKey(id), do: func() {
		close(release)
		w.eventually(30*time.Second, func() string {
			if info, err := w.client.inspector.GetTaskInfo(j.Queue, id); err != nil || info.State != asynq.TaskStateCompleted {
				return fmt.Sprint(info, err)
			}
			return ""
		})
	}})
	reader := newClient(w.cfg, w.client.catalog, rdb, w.store, w.limiter, quota.NewLeases(rdb), w.log)
	if j, err := reader.Get(t.Context(), id); err != nil || j.State != Done || j.Result == nil || j.EndedAt == nil {
		t.Errorf("%+v %v", j, err)
	}
}

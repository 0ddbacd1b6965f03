package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

func TestRefusedForeignTaskIsNeverArchivedWhateverItsMaxRetry(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{0, 1, 25} {
		t.Run(fmt.Sprintf("MaxRetry(%d)", retries), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withQuota(10, 3*time.Second))
			w.fill(10)
			w.foreign("plain", asynq.MaxRetry(retries))
			w.work()
			j := w.until("plain", Snoozed)
			if j.Snoozes < 1 || j.Attempts != 0 {
				t.Fatalf("snoozed job: %+v", j)
			}
			j = w.until("plain", Done)
			if j.Attempts != 0 {
				t.Errorf("attempts %d, a snooze burnt one", j.Attempts)
			}
			if n := w.upstream.count(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			infos, err := w.client.inspector.ListArchivedTasks(QueueScheduled)
			if err != nil || len(infos) != 0 {
				t.Errorf("archived: %v %v", infos, err)
			}
			if retries == 0 && j.Asked != "plain" {
				t.Errorf("the old ID does not lead to the copy: %+v", j)
			}
		})
	}
}

func TestOwnJobSnoozesWithItsTryUntouchedAndAReasonForAsynqmon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, 4*time.Second))
	w.fill(10)
	j := w.enqueue(Spec{})
	w.work()
	j = w.until(j.ID, Snoozed)
	if j.NextAt == nil {
		t.Fatalf("a snoozed job has no next_at: %+v", j)
	}
	var info *asynq.TaskInfo
	w.eventually(30*time.Second, func() string {
		var err error
		if info, err = w.client.inspector.GetTaskInfo(QueueInteractive, j.ID); err != nil {
			return err.Error()
		}
		if info.State != asynq.TaskStateRetry {
			return info.State.String()
		}
		return ""
	})
	if info.Retried != 0 || !strings.HasPrefix(info.LastErr, "snoozed until ") || !strings.Contains(info.LastErr, "quota q: 10 of 10 used") {
		t.Errorf("Retry page: retried %d, %q", info.Retried, info.LastErr)
	}
	w.until(j.ID, Done)
}

func TestSnoozedJobIsNeverEarlyAndWakesByTheMillisecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, 1900*time.Millisecond))
	w.fill(10)
	j := w.enqueue(Spec{})
	w.work()
	due := *w.until(j.ID, Snoozed).NextAt
	j = w.until(j.ID, Done)
	if j.Snoozes != 1 {
		t.Errorf("%d snoozes, want 1: it woke early or found its place gone", j.Snoozes)
	}
	if j.EndedAt.Before(due) {
		t.Errorf("ended %s, promised %s", j.EndedAt, due)
	}
	// asynq itself would have released it two seconds after the promise at the earliest.
	if late := j.EndedAt.Sub(due); late >= fallback {
		t.Errorf("%s late: the waker did not wake it", late)
	}
}

func TestOneRealFailureThenRefusalsStillSnoozes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(1, 5*time.Second), withFeed(func(f *Feed) { f.Attempts = 2 }))
	w.upstream.on(func(n int, rw http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			rw.WriteHeader(http.StatusInternalServerError)
		}
		return n == 1
	})
	j := w.enqueue(Spec{})
	w.work()
	w.until(j.ID, Retrying)
	if j = w.until(j.ID, Snoozed); j.Attempts != 1 {
		t.Fatalf("%+v", j)
	}
	if j = w.until(j.ID, Done); j.Attempts != 1 || j.Sent != 2 {
		t.Errorf("%+v", j)
	}
}

func TestManySnoozesThenOneRealErrorBacksOffAsAFirstFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(1, time.Hour))
	h := w.handler()
	r := &run{ID: "j", Queue: QueueScheduled, Feed: "news", Key: "news"}
	for i := range 1200 {
		r.token = fmt.Sprint(i)
		if err := h.begin(t.Context(), r, false); err != nil {
			t.Fatal(err)
		}
		if r.Snoozes != i || r.Attempts != 0 {
			t.Fatalf("run %d: %d snoozes, %d attempts", i, r.Snoozes, r.Attempts)
		}
		if err := h.finish(t.Context(), r, ending{State: Snoozed, Count: "snoozes", Next: r.now(), Error: "no"}); err != nil {
			t.Fatal(err)
		}
	}
	r.token = "last"
	if err := h.begin(t.Context(), r, false); err != nil {
		t.Fatal(err)
	}
	f, _, _ := h.catalog.find("news")
	err := h.settle(t.Context(), r, f, w.log, errors.New("target broke"))
	var re *retryError
	if !errors.As(err, &re) {
		t.Fatalf("settled as %v", err)
	}
	if wait := re.at.Sub(r.now()); wait > backoffBase*5/4 {
		t.Errorf("backoff %s, that of a first failure is at most %s", wait, backoffBase*5/4)
	}
}

func TestQuotaThatNeverOpensEndsTheJobWithThatReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, 2*time.Hour), withFeed(func(f *Feed) { f.MaxSnooze = time.Hour }))
	w.fill(10)
	j := w.enqueue(Spec{})
	w.work()
	j = w.until(j.ID, Failed)
	if !strings.Contains(j.LastError, "max_snooze") || w.upstream.count() != 0 {
		t.Errorf("%+v, %d requests", j, w.upstream.count())
	}
	w.eventually(30*time.Second, func() string {
		s, err := w.limiter.State(t.Context(), "q")
		if err != nil || s.Scheduled.Waiting+s.Interactive.Waiting != 0 {
			return fmt.Sprintf("it still stands in the line: %+v %v", s, err)
		}
		return ""
	})
}

func TestTargetsRetryAfterClosesTheQuotaAfterOneProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(1000, time.Hour))
	w.upstream.on(func(_ int, rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("Retry-After", "120")
		rw.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	first := w.enqueue(Spec{})
	w.work()
	first = w.until(first.ID, Snoozed)
	for range 20 {
		w.until(w.enqueue(Spec{}).ID, Snoozed)
	}
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d probes of a target that said 120 s, want 1", n)
	}
	if first.Attempts != 0 {
		t.Errorf("the target's own pause burnt an attempt: %+v", first)
	}
	if wait := time.Until(*first.NextAt); wait < 110*time.Second || wait > 121*time.Second {
		t.Errorf("comes back in %s, want about 120 s", wait)
	}
}

func TestCostAboveTheLimitFailsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour), withFeed(func(f *Feed) { f.Cost = 101 }))
	j := w.enqueue(Spec{})
	w.work()
	j = w.until(j.ID, Failed)
	if j.Snoozes != 0 || w.upstream.count() != 0 {
		t.Errorf("%+v", j)
	}
}

func TestEmptyPoolGivesTheUnitsBackAndSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour), withFeed(func(f *Feed) { f.Pool = "proxies" }))
	j := w.enqueue(Spec{})
	w.work()
	j = w.until(j.ID, Snoozed)
	if n := w.charged(0); n != 0 || w.upstream.count() != 0 {
		t.Errorf("%d units kept, %d requests", n, w.upstream.count())
	}
	if !strings.Contains(j.LastError, "no eligible endpoint") {
		t.Errorf("reason %q", j.LastError)
	}
}

func TestLineMovesWhenABlockIsLiftedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(1000, time.Hour))
	if err := w.limiter.Block(t.Context(), "q", time.Hour, "by hand"); err != nil {
		t.Fatal(err)
	}
	w.work()
	var ids []string
	for range 60 {
		ids = append(ids, w.enqueue(Spec{}).ID)
	}
	for _, id := range ids {
		w.until(id, Snoozed)
	}
	if err := w.limiter.Unblock(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.WakeLine(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		w.until(id, Done)
	}
}

func TestExhaustedQuotaDoesNotSlowAFreeFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, time.Hour), withFeed(func(f *Feed) { f.MaxSnooze = 1000 * time.Hour }), func(w *world) {
		free := w.cfg.Feeds[0]
		free.Name, free.Quota = "free", ""
		w.cfg.Feeds = append(w.cfg.Feeds, free)
		w.cfg.QueueLimits[QueueScheduled] = 10000
	})
	w.fill(10)
	for i := range 500 {
		w.enqueue(Spec{Priority: Background, ID: fmt.Sprintf("starved-%d", i)})
	}
	w.work()
	w.eventually(30*time.Second, func() string {
		n, err := w.rdb.ZCard(t.Context(), asynqRetry(QueueScheduled)).Result()
		if err != nil || n < 500 {
			return fmt.Sprintf("%d of 500 snoozed %v", n, err)
		}
		return ""
	})
	begun := time.Now()
	w.until(w.enqueue(Spec{Feed: "free", Priority: Background}).ID, Done)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the free feed waited %s behind an exhausted quota", took)
	}
	s, err := w.limiter.State(t.Context(), "q")
	if err != nil || s.Scheduled.Waiting != 500 {
		t.Errorf("line: %+v %v", s.Scheduled, err)
	}
}

package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

func TestSnoozedJobEndsAsExpiredAtItsInstantAndNotAtItsPromise(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, time.Hour))
	w.fill(10)
	w.work()
	begun := time.Now()
	j := w.enqueue(Spec{Expires: 2 * time.Second})
	if got := w.until(j.ID, Snoozed); got.NextAt == nil || got.NextAt.After(begun.Add(3*time.Second)) || !strings.Contains(got.LastError, "expires before that") {
		t.Errorf("%+v", got)
	}
	got := w.until(j.ID, Expired)
	if !strings.HasPrefix(got.LastError, "not started by ") || got.EndedAt == nil || got.EndedAt.Before(begun.Add(1900*time.Millisecond)) || got.EndedAt.After(begun.Add(20*time.Second)) {
		t.Errorf("%+v", got)
	}
	// It has left the line, and the feed says what became of it.
	w.eventually(30*time.Second, func() string {
		if s, err := w.limiter.State(t.Context(), "q"); err != nil || s.Interactive.Waiting+s.Scheduled.Waiting != 0 {
			return fmt.Sprintf("%+v %v", s, err)
		}
		return ""
	})
	w.eventually(30*time.Second, func() string {
		if h, err := w.store.Head(t.Context(), "news"); err != nil || !strings.Contains(h.LastError, "expired: not started by") {
			return fmt.Sprint(h.LastError, err)
		}
		return ""
	})
	if w.upstream.count() != 0 {
		t.Error("a request went out")
	}
}

func TestJobsThatExpiredWhileNoWorkerWasUpSaySoAndAreNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// As if they had been enqueued long ago: waiting, and in the delayed set.
	waits := w.enqueue(Spec{Expires: time.Millisecond})
	sleeps := w.enqueue(Spec{Expires: time.Millisecond, At: time.Now().Add(100 * time.Millisecond)})
	lives := w.enqueue(Spec{Expires: time.Hour})
	for _, id := range []string{waits.ID, sleeps.ID} {
		w.eventually(20*time.Second, func() string {
			if j := w.get(id); j.State != Expired || !strings.HasPrefix(j.LastError, "not started by ") || j.EndedAt == nil {
				return fmt.Sprintf("without a worker: %+v", j)
			}
			return ""
		})
	}
	all, err := w.client.List(t.Context(), Filter{})
	if err != nil || len(all) != 3 {
		t.Errorf("%+v %v", all, err)
	}
	w.work()
	w.until(lives.ID, Done)
	for _, id := range []string{waits.ID, sleeps.ID} {
		w.eventually(20*time.Second, func() string {
			m, err := w.rdb.HGetAll(t.Context(), recordKey(id)).Result()
			if err != nil || m["state"] != string(Expired) {
				return fmt.Sprint("its record: ", m, err)
			}
			return ""
		})
	}
	if w.upstream.count() != 1 {
		t.Errorf("%d requests", w.upstream.count())
	}
	if n, err := w.client.Counters(t.Context()); err != nil || n[string(Expired)] != 2 {
		t.Errorf("%v %v", n, err)
	}
}

func TestStartedJobDoesNotExpire(t *testing.T) {
	t.Parallel()
	if !expiry(payload{ExpiresAt: 1}, 1).IsZero() || !expiry(payload{}, 0).IsZero() || expiry(payload{ExpiresAt: 1}, 0).IsZero() {
		t.Error("expiry is wrong")
	}
}

// asynq itself would not call the handler any more, and retry to the last try.
func TestForeignTaskWhoseDeadlinePassesEndsAsExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, 4*time.Second))
	w.fill(10)
	w.foreign("past", asynq.Deadline(time.Now().Add(-time.Hour)))
	w.foreign("soon", asynq.Deadline(time.Now().Add(2*time.Second)))
	w.foreign("far", asynq.Deadline(time.Now().Add(time.Hour)))
	w.work()
	for _, id := range []string{"past", "soon"} {
		if j := w.until(id, Expired); j.Sent != 0 || j.Attempts != 0 || !strings.Contains(j.LastError, "not started by") {
			t.Errorf("%+v", j)
		}
	}
	w.until("far", Done)
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d requests for the one task that was in time", n)
	}
	w.eventually(30*time.Second, func() string {
		if s, err := w.limiter.State(t.Context(), "q"); err != nil || s.Scheduled.Waiting > 0 {
			return fmt.Sprintf("%d in the line, %v", s.Scheduled.Waiting, err)
		}
		return ""
	})
}

// Nothing here brings groups together: each task is a job.
func TestForeignTasksOfAGroupRunOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.foreign(fmt.Sprint("g", i), asynq.Group("some"))
	}
	w.work()
	for i := range 3 {
		w.until(fmt.Sprint("g", i), Done)
	}
	if n := w.upstream.count(); n != 3 {
		t.Errorf("%d requests for three tasks", n)
	}
}

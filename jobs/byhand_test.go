package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

// byHand does something to a job's task as a person at asynqmon would, once the
// task is where its record says.
func (w *world) byHand(do func(queue, id string) error, queue, id string) {
	w.t.Helper()
	w.eventually(30*time.Second, func() string {
		if err := do(queue, id); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (w *world) waiting() int64 {
	w.t.Helper()
	s, err := w.limiter.State(w.t.Context(), "q")
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Interactive.Waiting
}

func TestJobWhoseTaskAPersonArchivedOrDeletedSaysSoAndLeavesTheLineWhenCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, time.Hour))
	w.fill(10)
	w.work()
	for name, row := range map[string]struct {
		do   func(queue, id string) error
		says string
	}{
		"archived": {w.client.inspector.ArchiveTask, "archived"},
		"deleted":  {w.client.inspector.DeleteTask, "deleted"},
	} {
		w.until(w.enqueue(Spec{ID: name}).ID, Snoozed)
		w.byHand(row.do, QueueInteractive, name)
		j := w.get(name)
		if j.State != Failed || j.NextAt != nil || !strings.Contains(j.LastError, row.says) {
			t.Errorf("%s: %+v", name, j)
		}
		before := w.waiting()
		if j, err := w.client.Cancel(t.Context(), name); err != nil || j.State != Cancelled {
			t.Errorf("%s: cancel: %+v %v", name, j, err)
		}
		if j := w.get(name); j.State != Cancelled || j.EndedAt == nil {
			t.Errorf("%s: %+v", name, j)
		}
		if n := w.waiting(); n != before-1 {
			t.Errorf("%s: %d wait after it was cancelled, %d before", name, n, before)
		}
		var ended *EndedError
		if _, err := w.client.Cancel(t.Context(), name); !errors.As(err, &ended) || ended.State != Cancelled {
			t.Errorf("%s: cancelled again: %v", name, err)
		}
	}
}

func TestJobThatIsArchivedBeforeItBeganHasNoInstantOfItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.enqueue(Spec{At: time.Now().Add(time.Hour)})
	w.byHand(w.client.inspector.ArchiveTask, j.Queue, j.ID)
	if j := w.get(j.ID); j.State != Failed || j.EndedAt != nil || j.NextAt != nil || !strings.Contains(j.LastError, "archived") {
		t.Errorf("%+v", j)
	}
	w.byHand(w.client.inspector.RunTask, j.Queue, j.ID)
	w.work()
	w.until(j.ID, Done)
}

// A foreign task may be scheduled for a year that JSON cannot write.
func TestJobOfAFarYearDoesNotSpoilTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.foreign("far", asynq.ProcessAt(time.Now().AddDate(9000, 0, 0)))
	list, err := w.client.List(t.Context(), Filter{})
	if err != nil || !slices.ContainsFunc(list, func(j Job) bool { return j.ID == "far" && j.State == Scheduled }) {
		t.Fatalf("%+v %v", list, err)
	}
	if text, err := json.Marshal(list); err != nil || !strings.Contains(string(text), `"9999-`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestCancelThatItsCallerLeavesIsDoneToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, time.Hour))
	w.fill(10)
	w.work()
	j := w.enqueue(Spec{})
	w.until(j.ID, Snoozed)
	// The caller leaves as soon as the record says cancelled.
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer leave()
		for ctx.Err() == nil {
			if state, err := w.rdb.HGet(t.Context(), recordKey(j.ID), "state").Result(); err != nil || State(state) == Cancelled {
				return
			}
		}
	}()
	_, _ = w.client.Cancel(ctx, j.ID)
	leave()
	<-left
	w.eventually(30*time.Second, func() string {
		if _, err := w.client.inspector.GetTaskInfo(j.Queue, j.ID); !errors.Is(err, asynq.ErrTaskNotFound) {
			return fmt.Sprintf("its task: %v", err)
		}
		if n := w.waiting(); n != 0 {
			return fmt.Sprintf("%d wait", n)
		}
		return ""
	})
}

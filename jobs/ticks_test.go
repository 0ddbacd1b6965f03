package jobs

import (
	"errors"
	"testing"
	"time"
)

func TestATickIsOneJobHoweverOftenItIsEnqueued(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.QueueLimits[QueueScheduled] = 1 }))
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	id := "news@" + at.Format(time.RFC3339)
	again := func(when string) {
		t.Helper()
		if err := w.client.EnqueueTick(t.Context(), "news", id, at); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	again("first")
	again("while it waits in a queue that is full")
	var full *FullError
	if err := w.client.EnqueueTick(t.Context(), "news", "news@later", at); !errors.As(err, &full) {
		t.Errorf("the full queue takes another: %v", err)
	}
	w.work()
	w.until(id, Done)
	again("after its end")
	// asynq forgets a task before its record goes. The record ends before the task does.
	w.eventually(30*time.Second, func() string {
		if err := w.client.inspector.DeleteTask(QueueScheduled, id); err != nil {
			return err.Error()
		}
		return ""
	})
	again("when asynq has forgotten it")
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d fetches", n)
	}
	if n := w.rdb.LLen(t.Context(), asynqPending(QueueScheduled)).Val(); n != 0 {
		t.Errorf("%d tasks wait", n)
	}
	if j := w.get(id); j.State != Done || j.Tick == nil || *j.Tick != "2026-11-30T08:00:00Z" {
		t.Errorf("%+v", j)
	}
}

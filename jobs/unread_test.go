package jobs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/jobs/feed"
)

// While an upgrade rolls, jobs of the newer binary come to the older one: they wait
// for a worker that can read them.
func TestPayloadOfANewerBinaryIsLeftToItForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	c := asynq.NewClientFromRedisClient(w.rdb)
	if _, err := c.Enqueue(asynq.NewTask(TaskType, []byte(`{"v":99,"feed":"news"}`)), asynq.TaskID("newer"), asynq.Queue(QueueScheduled)); err != nil {
		t.Fatal(err)
	}
	j := w.until("newer", Retrying)
	if j.Feed != "news" || j.NextAt == nil || !strings.Contains(j.LastError, "upgrade the worker") {
		t.Errorf("%+v", j)
	}
	// Nothing was written of a job that this binary does not understand.
	if n, err := w.rdb.Exists(t.Context(), recordKey("newer")).Result(); err != nil || n != 0 {
		t.Errorf("%d records, %v", n, err)
	}
	now := time.Now()
	var again *retryError
	if err := unread(&schemaError{99}, upgradeTries-1, now); !errors.As(err, &again) || !again.at.After(now) {
		t.Errorf("%v", err)
	}
	for _, err := range []error{unread(&schemaError{99}, upgradeTries, now), unread(errors.New("no payload"), 0, now)} {
		if !errors.Is(err, asynq.SkipRetry) {
			t.Errorf("%v is tried again", err)
		}
	}
}

func TestUnknownFeedsOfForeignTasksLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	c := asynq.NewClientFromRedisClient(w.rdb)
	for _, name := range []string{"nosuch-1", "nosuch-2"} {
		body := []byte(`{"feed":"` + name + `"}`)
		if _, err := c.Enqueue(asynq.NewTask(TaskType, body), asynq.TaskID(name), asynq.Queue(QueueScheduled)); err != nil {
			t.Fatal(err)
		}
		w.until(name, Failed)
	}
	// What a job of a feed that the config had says of it is kept.
	w.until(w.enqueue(Spec{ID: "before"}).ID, Done)
	h := w.handler()
	if err := h.catalog.Reload(nil); err != nil {
		t.Fatal(err)
	}
	r := &run{ID: "after", Feed: "news", Key: "news", Head: feed.Head{Version: 1}}
	h.fail(t.Context(), r, errors.New("gone"), w.log)
	keys, err := w.rdb.Keys(t.Context(), "fw:{feed:*").Result()
	if err != nil || !slices.Contains(keys, "fw:{feed:news}:head") || slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(k, "nosuch") }) {
		t.Errorf("%v %v", keys, err)
	}
	if head, err := w.store.Head(t.Context(), "news"); err != nil || head.LastError != "gone" {
		t.Errorf("%+v %v", head, err)
	}
}

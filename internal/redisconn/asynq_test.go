package redisconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

// asynq's own scripts run on both kinds of embedded server: pending, retry,
// schedule, unique, retention, inspection.
func TestAsynqOnEmbedded(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{redisServer, miniredisServer} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := mustOpen(t, Config{URL: "embedded", Data: t.TempDir(), Server: kind})
			client := asynq.NewClient(c.Asynq())
			defer client.Close()
			ran := make(chan string, 8)
			tries := 0
			mux := asynq.NewServeMux()
			mux.HandleFunc("flaky", func(context.Context, *asynq.Task) error {
				if tries++; tries == 1 {
					return errors.New("the first try fails")
				}
				ran <- "flaky"
				return nil
			})
			mux.HandleFunc("later", func(_ context.Context, task *asynq.Task) error {
				_, err := task.ResultWriter().Write([]byte("done"))
				ran <- "later"
				return err
			})
			srv := asynq.NewServer(c.Asynq(), asynq.Config{
				Concurrency: 1, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second,
				TaskCheckInterval: 50 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond,
				RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
			})
			if err := srv.Start(mux); err != nil {
				t.Fatal(err)
			}
			stopped := false
			defer func() {
				if !stopped {
					srv.Shutdown()
				}
			}()

			enqueue := func(name string, opts ...asynq.Option) error {
				_, err := client.Enqueue(asynq.NewTask(name, []byte(`{}`)), append(opts, asynq.Retention(time.Minute))...)
				return err
			}
			if err := enqueue("flaky", asynq.MaxRetry(3), asynq.TaskID("f1"), asynq.Unique(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if err := enqueue("flaky", asynq.TaskID("f1")); !errors.Is(err, asynq.ErrTaskIDConflict) {
				t.Errorf("the same ID again: %v", err)
			}
			if err := enqueue("later", asynq.ProcessIn(time.Second), asynq.TaskID("l1")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				select {
				case <-ran:
				case <-time.After(15 * time.Second):
					t.Fatal("a task did not run")
				}
			}
			inspector := asynq.NewInspector(c.Asynq())
			defer inspector.Close()
			eventually(t, 30*time.Second, "both tasks are completed", func() bool {
				q, err := inspector.GetQueueInfo("default")
				return err == nil && q.Completed == 2 && q.Retry == 0 && q.Archived == 0 && q.Processed == 3 && q.Failed == 1
			})
			info, err := inspector.GetTaskInfo("default", "l1")
			if err != nil || string(info.Result) != "done" || info.State != asynq.TaskStateCompleted {
				t.Errorf("%+v, %v", info, err)
			}
			if got, err := inspector.ListCompletedTasks("default"); err != nil || len(got) != 2 {
				t.Errorf("completed: %d, %v", len(got), err)
			}
			srv.Shutdown()
			stopped = true
		})
	}
}

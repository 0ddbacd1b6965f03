package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	// pollIdle is how often an idle server asks for a task, and forwardEvery
	// how often asynq moves delayed tasks: the waker is before it.
	pollIdle     = 100 * time.Millisecond
	forwardEvery = time.Second
	// parkFor is how long asynq waits for parked handlers before it gives their
	// tasks back.
	parkFor = 50 * time.Millisecond
	// sharedServers lifts asynq's pace: one server takes one task at a time.
	sharedServers = 2
	// stopMargin is for what comes after the time that running jobs have.
	stopMargin = 10 * time.Second
	// clockLimit is how far this machine's clock may be off Redis's: asynq's
	// leases use local time.
	clockLimit = 5 * time.Second
)

// Worker runs the asynq servers of one process, and what keeps their queues
// whole: the waker, the reconciler, the listener for cancellations.
type Worker struct {
	handler *Handler
	rdb     redis.UniversalClient
	cfg     Config
	log     *slog.Logger
	faults  *faultLog

	servers []*asynq.Server
	stop    context.CancelFunc
	loops   sync.WaitGroup
	once    sync.Once
}

// NewWorker makes a worker; it does no I/O.
func NewWorker(cfg Config, h *Handler, rdb redis.UniversalClient, log *slog.Logger) *Worker {
	return &Worker{handler: h, rdb: rdb, cfg: cfg, log: log, faults: &faultLog{log: log}}
}

// Start begins to take jobs.
func (w *Worker) Start(ctx context.Context) error {
	if off, err := clockOffset(ctx, w.rdb); err != nil {
		return fmt.Errorf("jobs: read Redis's clock: %w", err)
	} else if off.Abs() > clockLimit {
		return fmt.Errorf("jobs: this machine's clock is %s off Redis's; a worker takes jobs only within %s: set the clock (NTP)", off.Round(time.Millisecond), clockLimit)
	}
	slots := min(max(w.cfg.InteractiveSlots, 0), max(w.cfg.Concurrency-1, 0))
	shared := max(w.cfg.Concurrency-slots, 1)
	if slots > 0 {
		w.servers = append(w.servers, w.server(slots, map[string]int{QueueInteractive: 1}))
	}
	n := min(sharedServers, shared)
	for i := range n {
		size := shared / n
		if i < shared%n {
			size++
		}
		w.servers = append(w.servers, w.server(size, map[string]int{QueueInteractive: 9, QueueScheduled: 1}))
	}
	// asynq looks for abandoned tasks as it starts, and archives those without a try left: ours come first.
	for _, q := range queues {
		if err := reconcileAll(ctx, w.rdb, q, w.log); err != nil {
			return err
		}
	}
	// While no worker was up, a limit may have been raised or a block lifted.
	for _, name := range w.handler.catalog.quotas() {
		if err := wakeLine(ctx, w.rdb, w.handler.limiter, name); err != nil {
			w.log.Warn("could not wake the line of a quota", "quota", name, "error", err)
		}
	}
	for i, s := range w.servers {
		if err := s.Start(w.handler); err != nil {
			for _, started := range w.servers[:i] {
				started.Shutdown()
			}
			return fmt.Errorf("jobs: start asynq: %w", err)
		}
	}
	loopCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	for _, q := range queues {
		w.loops.Go(func() { w.wakeLoop(loopCtx, q) })
		w.loops.Go(func() { w.reconcileLoop(loopCtx, q) })
	}
	w.loops.Go(func() { w.cancelLoop(loopCtx) })
	w.log.Info("worker takes jobs", "concurrency", w.cfg.Concurrency, "interactive_slots", slots)
	return nil
}

func (w *Worker) server(concurrency int, queues map[string]int) *asynq.Server {
	return asynq.NewServerFromRedisClient(w.rdb, asynq.Config{
		Concurrency:              concurrency,
		Queues:                   queues,
		TaskCheckInterval:        pollIdle,
		DelayedTaskCheckInterval: forwardEvery,
		ShutdownTimeout:          parkFor,
		IsFailure:                isFailure,
		RetryDelayFunc:           func(_ int, err error, _ *asynq.Task) time.Duration { return retryDelay(err, time.Now()) },
		Logger:                   asynqLog{w.log},
		LogLevel:                 asynq.WarnLevel,
	})
}

// Stop lets running jobs end within the configured time; what has not ended is
// stopped, and only then goes back to its queue. It may be called twice.
func (w *Worker) Stop(ctx context.Context) error {
	var err error
	w.once.Do(func() { err = w.shutdown(ctx) })
	return err
}

func (w *Worker) shutdown(ctx context.Context) error {
	if w.stop == nil {
		return nil
	}
	for _, s := range w.servers {
		s.Stop()
	}
	h := w.handler
	grace, cancel := context.WithTimeout(ctx, w.cfg.Shutdown)
	err := h.running.wait(grace)
	cancel()
	if err != nil {
		w.log.Info("stopping the jobs that have not ended", "jobs", h.running.count(), "after", w.cfg.Shutdown)
	}
	// From here a handler that returns parks; asynq gives its task back.
	h.running.interrupt()
	w.stop()
	last, cancel := context.WithTimeout(ctx, stopMargin)
	defer cancel()
	err = h.running.wait(last)
	if err != nil {
		err = fmt.Errorf("jobs: %d jobs did not obey their context", h.running.count())
	}
	var all sync.WaitGroup
	for _, s := range w.servers {
		all.Go(s.Shutdown)
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		w.loops.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-last.Done():
		err = errors.Join(err, errors.New("jobs: Redis does not answer; the leases of unfinished jobs end by themselves"))
	}
	close(h.parked)
	return err
}

// cancelLoop hears which running jobs a person cancels.
func (w *Worker) cancelLoop(ctx context.Context) {
	sub := w.rdb.Subscribe(ctx, cancelTopic)
	defer sub.Close()
	messages := sub.Channel()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			w.handler.running.cancel(m.Payload)
		}
	}
}

// clockOffset is how far our clock is ahead of Redis's.
func clockOffset(ctx context.Context, rdb redis.UniversalClient) (time.Duration, error) {
	before := time.Now()
	theirs, err := rdb.Time(ctx).Result()
	if err != nil {
		return 0, err
	}
	after := time.Now()
	return before.Add(after.Sub(before) / 2).Sub(theirs), nil
}

// Ready says whether the worker may take jobs: Redis answers and the clocks agree.
func (w *Worker) Ready(ctx context.Context) error {
	off, err := clockOffset(ctx, w.rdb)
	if err != nil {
		return err
	}
	if off.Abs() > clockLimit {
		return fmt.Errorf("clock is %s off Redis's", off.Round(time.Millisecond))
	}
	return nil
}

// faultLog logs the faults of a loop, one every few seconds.
type faultLog struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

func (f *faultLog) report(what string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.last) > 3*time.Second {
		f.last = now
		f.log.Error("background work failed", "what", what, "error", err)
	}
}

// asynqLog sends asynq's own log through ours.
type asynqLog struct{ log *slog.Logger }

func (a asynqLog) Debug(v ...any) { a.log.Debug("asynq", "says", fmt.Sprint(v...)) }
func (a asynqLog) Info(v ...any)  { a.log.Info("asynq", "says", fmt.Sprint(v...)) }
func (a asynqLog) Error(v ...any) { a.log.Error("asynq", "says", fmt.Sprint(v...)) }

// Warn says again, for the most part, what the handler has said of a job with its reason.
func (a asynqLog) Warn(v ...any) {
	text := fmt.Sprint(v...)
	if strings.HasPrefix(text, "Retry exhausted") || strings.HasPrefix(text, "Quitting worker") {
		a.log.Debug("asynq", "says", text)
		return
	}
	a.log.Warn("asynq", "says", text)
}

// Fatal must not end the process: it is asynq's word for a failed ping.
func (a asynqLog) Fatal(v ...any) { a.log.Error("asynq", "says", fmt.Sprint(v...)) }

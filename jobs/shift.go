package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sync"

	"github.com/hibiken/asynq"
)

const (
	// pollIdle is how often an idle server asks for a task, and forwardEvery
	// how often asynq moves delayed tasks: the waker is before it.
	pollIdle     = 50 * time.Millisecond
	forwardEvery = time.Second
	// parkFor is how long asynq waits for parked handlers before it gives their
	// tasks back.
	parkFor = 50 * time.Millisecond
	// sharedServers lifts asynq's pace: one server takes one task at a time.
	sharedServers = 2
	// stopMargin is for what comes after the time that running jobs have.
	stopMargin = 10 * time.Second
)

// shift is a time in which a worker takes jobs: its asynq servers, and what
// keeps their queues whole, the waker, the reconciler, the listener for
// cancellations. asynq's servers start once, so each shift has its own.
type shift struct {
	*Worker
	servers []*asynq.Server
	endLoop context.CancelFunc
	loops   sync.WaitGroup
}

// newShift begins one.
func newShift(ctx context.Context, w *Worker) (*shift, error) {
	s := &shift{Worker: w}
	// asynq looks for abandoned tasks as it starts, and archives those without a try left: ours come first.
	for _, q := range allQueues {
		if err := reconcileAll(ctx, w.rdb, q, w.log); err != nil {
			return nil, err
		}
	}
	// While no worker was up, a limit may have been raised or a block lifted.
	for _, name := range w.handler.catalog.quotas() {
		if err := wakeLine(ctx, w.rdb, w.handler.limiter, name); err != nil {
			w.log.Warn("could not wake the line of a quota", "quota", name, "error", err)
		}
	}
	if err := wakeMoved(ctx, w.rdb, w.handler.catalog); err != nil {
		w.log.Warn("could not wake the jobs whose feeds have another quota", "error", err)
	}
	w.handler.running.open()
	if err := s.serve(); err != nil {
		return nil, err
	}
	loop, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.endLoop = stop
	for _, q := range allQueues {
		s.loops.Go(func() { s.wakeLoop(loop, q) })
		s.loops.Go(func() { s.reconcileLoop(loop, q) })
	}
	s.loops.Go(func() { s.cancelLoop(loop) })
	s.loops.Go(func() { s.handler.extendLoop(loop) })
	s.loops.Go(func() { s.sinkLoop(loop) })
	w.log.Info("worker takes jobs", "concurrency", w.cfg.Concurrency, "interactive_slots", w.interactiveSlots())
	return s, nil
}

func (w *Worker) interactiveSlots() int {
	return min(max(w.cfg.InteractiveSlots, 0), max(w.cfg.Concurrency-1, 0))
}

// serve starts the servers: one whose slots are kept for interactive jobs, and
// those that take all.
func (s *shift) serve() error {
	slots := s.interactiveSlots()
	shared := max(s.cfg.Concurrency-slots, 1)
	var handlers []docked
	add := func(size int, b *bay, queues map[string]int) {
		s.servers = append(s.servers, s.server(size, queues))
		handlers = append(handlers, docked{s.handler, b})
	}
	if slots > 0 {
		add(slots, newBay(slots), map[string]int{QueueInteractive: 1})
	}
	n, b := min(sharedServers, shared), newBay(shared)
	for i := range n {
		size := shared / n
		if i < shared%n {
			size++
		}
		add(size, b, map[string]int{QueueInteractive: 9, QueueScheduled: 1})
	}
	// A sink that hangs takes no slot from a fetch.
	add(sinkSlots, newBay(sinkSlots), map[string]int{QueueSinks: 1})
	for i, srv := range s.servers {
		if err := srv.Start(handlers[i]); err != nil {
			for _, started := range s.servers[:i] {
				started.Shutdown()
			}
			return fmt.Errorf("jobs: start asynq: %w", err)
		}
	}
	return nil
}

func (s *shift) server(concurrency int, queues map[string]int) *asynq.Server {
	return asynq.NewServerFromRedisClient(s.rdb, asynq.Config{
		Concurrency:              concurrency,
		Queues:                   queues,
		TaskCheckInterval:        pollIdle,
		DelayedTaskCheckInterval: forwardEvery,
		ShutdownTimeout:          parkFor,
		IsFailure:                isFailure,
		RetryDelayFunc:           func(_ int, err error, _ *asynq.Task) time.Duration { return retryDelay(err, time.Now()) },
		Logger:                   newAsynqLog(s.log),
		LogLevel:                 asynq.WarnLevel,
	})
}

// end takes no more jobs. Those that run may end within grace; what has not
// ended is stopped, and only then goes back to its queue.
func (s *shift) end(ctx context.Context, grace time.Duration) error {
	for _, srv := range s.servers {
		srv.Stop()
	}
	h := s.handler
	patience, cancel := context.WithTimeout(ctx, grace)
	err := h.running.wait(patience)
	cancel()
	if err != nil {
		s.log.Info("stopping the jobs that have not ended", "jobs", h.running.count(), "after", grace)
	}
	// From here a handler that returns parks; asynq gives its task back.
	h.running.interrupt()
	s.endLoop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMargin)
	defer cancel()
	err = h.running.wait(last)
	if err != nil {
		err = fmt.Errorf("jobs: %d jobs did not obey their context", h.running.count())
	}
	var all sync.WaitGroup
	for _, srv := range s.servers {
		all.Go(srv.Shutdown)
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		s.loops.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-last.Done():
		err = errors.Join(err, errors.New("jobs: Redis does not answer; the leases of unfinished jobs end by themselves"))
	}
	h.running.unpark()
	return err
}

// cancelLoop hears which running jobs a person cancels.
func (s *shift) cancelLoop(ctx context.Context) {
	sub := s.rdb.Subscribe(ctx, cancelTopic)
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
			s.handler.running.cancel(m.Payload)
		}
	}
}

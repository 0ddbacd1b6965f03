package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Worker takes jobs while this machine's clock and Redis's agree.
type Worker struct {
	handler *Handler
	rdb     redis.UniversalClient
	cfg     Config
	log     *slog.Logger
	faults  *faultLog

	clock     func() time.Time // this machine's; a test may give another
	lookEvery time.Duration

	mu    sync.Mutex
	shift *shift // nil while no jobs are taken
	why   error  // why none are

	stop     context.CancelFunc
	watching sync.WaitGroup
	once     sync.Once
}

var errNotStarted = errors.New("jobs: the worker has not begun")

// NewWorker makes a worker; it does no I/O.
func NewWorker(cfg Config, h *Handler, rdb redis.UniversalClient, log *slog.Logger) *Worker {
	return &Worker{
		handler: h, rdb: rdb, cfg: cfg, log: log, faults: &faultLog{log: log},
		clock: time.Now, lookEvery: clockEvery, why: errNotStarted,
	}
}

// Start begins to take jobs; with a clock that is wrong it begins when that is
// right, and until then Ready says why not.
func (w *Worker) Start(ctx context.Context) error {
	off, _, err := clockOffset(ctx, w.rdb, w.clock)
	if err != nil {
		return err
	}
	if clockFits(off, true) {
		if err := w.open(ctx); err != nil {
			return err
		}
	} else {
		w.why = &ClockError{off}
		w.log.Error("worker takes no jobs until its clock is right", "error", w.why)
	}
	loop, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	w.watching.Go(func() { w.watch(loop) })
	return nil
}

// Stop lets running jobs end within the configured time; what has not ended is
// stopped, and only then goes back to its queue. It may be called twice.
func (w *Worker) Stop(ctx context.Context) error {
	var err error
	w.once.Do(func() {
		if w.stop == nil {
			return
		}
		w.stop()
		w.watching.Wait()
		err = w.close(ctx, errors.New("jobs: the worker has stopped"), w.cfg.Shutdown)
	})
	return err
}

// open begins to take jobs.
func (w *Worker) open(ctx context.Context) error {
	s, err := newShift(ctx, w)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shift, w.why = s, nil
	return nil
}

// close takes no more jobs, because of why. Those that run have grace to end.
func (w *Worker) close(ctx context.Context, why error, grace time.Duration) error {
	w.mu.Lock()
	s := w.shift
	w.shift, w.why = nil, why
	w.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.end(ctx, grace)
}

func (w *Worker) taking() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shift != nil
}

// Ready says whether the worker takes jobs: it has begun, Redis answers and the
// clocks agree. A *ClockError says that they do not.
func (w *Worker) Ready(ctx context.Context) error {
	w.mu.Lock()
	why := w.why
	w.mu.Unlock()
	if why != nil {
		return why
	}
	off, sharp, err := clockOffset(ctx, w.rdb, w.clock)
	if err == nil && sharp && !clockFits(off, true) {
		err = &ClockError{off}
	}
	return err
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

package jobs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/quota"
)

// Limiter is what a job asks of quota.
type Limiter interface {
	Charge(ctx context.Context, r quota.Request) (quota.Decision, error)
	Refund(ctx context.Context, quota, id string) (int64, error)
	Block(ctx context.Context, quota string, d time.Duration, reason string) error
}

// Allocator is what a job asks of allocation.
type Allocator interface {
	Take(ctx context.Context, pool string, o allocation.TakeOptions) (allocation.Allocation, error)
	Report(ctx context.Context, r allocation.Report) error
}

// Handler runs jobs: charge, take, fetch, read, store, report.
type Handler struct {
	rdb     redis.UniversalClient
	desk    *luarun.Desk
	cfg     Config
	catalog *catalog
	store   *feed.Store
	limiter Limiter
	pools   Allocator
	fetcher *fetch.Client
	client  *asynq.Client
	log     *slog.Logger

	running *inFlight
	// stopping is closed when running jobs are to end now; their tasks are
	// given back by asynq, which happens once parked is closed.
	parked chan struct{}
}

// NewHandler joins the parts of the road; it does no I/O.
func NewHandler(cfg Config, rdb redis.UniversalClient, desk *luarun.Desk, store *feed.Store, limiter Limiter, pools Allocator, fetcher *fetch.Client, log *slog.Logger) (*Handler, error) {
	c, err := newCatalog(cfg.Feeds)
	if err != nil {
		return nil, err
	}
	return &Handler{
		rdb: rdb, desk: desk, cfg: cfg, catalog: c, store: store, limiter: limiter, pools: pools, fetcher: fetcher,
		client: asynq.NewClientFromRedisClient(rdb), log: log,
		running: newInFlight(), parked: make(chan struct{}),
	}, nil
}

// ProcessTask runs one delivery of one job.
func (h *Handler) ProcessTask(ctx context.Context, t *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	if t.Type() != TaskType {
		return fmt.Errorf("task type %q is not known here: %w", t.Type(), asynq.SkipRetry)
	}
	p, err := decodePayload(t.Payload())
	if err != nil {
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	r := &run{ID: id, Queue: queue, token: newToken(), Feed: p.Feed, Key: feed.Key(p.Feed, p.Params), chargeAs: id}
	if p.ChargeAs != "" {
		r.chargeAs = p.ChargeAs
	}
	if p.Tick != nil {
		r.Tick = p.Tick.UTC().Format(time.RFC3339)
	}

	ctx, done, ok := h.running.start(ctx, id)
	if !ok {
		return h.park()
	}
	err = h.deliver(ctx, r, p)
	interrupted := h.running.interrupted()
	done()
	if interrupted && errors.Is(err, errInterrupted) {
		return h.park()
	}
	return err
}

// park holds a stopped job's task until asynq gives it back to its queue: a
// return would burn a try of a foreign task.
func (h *Handler) park() error {
	<-h.parked
	return errInterrupted
}

// errInterrupted says that the worker stops and the job goes back.
var errInterrupted = errors.New("jobs: the worker stops; the job goes back to its queue")

func newToken() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// deliver runs the job and closes the run, whatever came of it.
func (h *Handler) deliver(ctx context.Context, r *run, p payload) error {
	if err := h.begin(ctx, r); err != nil {
		if ctx.Err() != nil && h.running.interrupted() {
			return errInterrupted
		}
		return &retryError{at: time.Now().Add(backoffBase), err: err}
	}
	log := h.log.With("job", r.ID, "feed", r.Feed)
	switch {
	case r.State != "" && State(r.State).Ended():
		log.Info("job delivered again after its end", "state", r.State)
		return nil
	case r.Forward != "":
		log.Info("job delivered again after its copy took over", "copy", r.Forward)
		return nil
	case r.Cancelled:
		return h.end(ctx, r, log, Cancelled, errCancelled)
	}
	f, src, err := h.catalog.find(r.Feed)
	if err != nil {
		return h.end(ctx, r, log, Failed, err)
	}
	if r.Crashes >= f.Attempts {
		return h.end(ctx, r, log, Failed, fmt.Errorf("its worker died %d times in mid-run", r.Crashes))
	}
	if p.ExpiresAt > 0 && r.now().UnixMilli() >= p.ExpiresAt && r.Sent == 0 {
		return h.end(ctx, r, log, Expired, fmt.Errorf("not started by %s", fromMillis(p.ExpiresAt).Format(time.RFC3339)))
	}

	res, err := h.travel(ctx, r, f, src, p.Params, log)
	if err == nil {
		line, merr := json.Marshal(res)
		if merr != nil {
			return h.end(ctx, r, log, Failed, merr)
		}
		if err := h.finish(ctx, r, ending{State: Done, Result: string(line)}); err != nil {
			return h.lost(log, err)
		}
		return nil
	}
	return h.settle(ctx, r, f, p, log, err)
}

package jobs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/sink"
	"feedwarden/quota"
)

// Limiter is what a job asks of quota.
type Limiter interface {
	Charge(ctx context.Context, r quota.Request) (quota.Decision, error)
	Refund(ctx context.Context, quota, id string) (int64, error)
	Block(ctx context.Context, quota string, d time.Duration, reason string) error
	StateTo(ctx context.Context, quota string, waiters int) (quota.State, error)
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
	catalog *Catalog
	store   *feed.Store
	limiter Limiter
	leases  *quota.Leases
	pacer   *pacer
	pools   Allocator
	fetcher *fetch.Client
	robots  usher
	client  *asynq.Client
	log     *slog.Logger

	running   *inFlight
	held      *holding
	leaseLife time.Duration
	poke      poke

	outlet    *sink.Outlet
	ledger    *sink.Ledger
	inspector *asynq.Inspector
}

// NewHandler joins the parts of the road, with a catalog of its own; it does
// no I/O.
func NewHandler(cfg Config, rdb redis.UniversalClient, desk *luarun.Desk, store *feed.Store, limiter Limiter, pools Allocator, fetcher *fetch.Client, log *slog.Logger) (*Handler, error) {
	c, err := NewCatalog(cfg.Feeds)
	if err != nil {
		return nil, err
	}
	return newHandler(cfg, c, rdb, desk, store, limiter, quota.NewLeases(rdb), pools, fetcher, log), nil
}

func newHandler(cfg Config, c *Catalog, rdb redis.UniversalClient, desk *luarun.Desk, store *feed.Store, limiter Limiter, leases *quota.Leases, pools Allocator, fetcher *fetch.Client, log *slog.Logger) *Handler {
	return &Handler{
		rdb: rdb, desk: desk, cfg: cfg, catalog: c, store: store, limiter: limiter, leases: leases, pacer: newPacer(rdb, cfg.PerHost.Delay), pools: pools, fetcher: fetcher,
		robots: newUsher(cfg, rdb, fetcher),
		client: asynq.NewClientFromRedisClient(rdb), inspector: asynq.NewInspectorFromRedisClient(rdb), log: log,
		outlet: sink.NewOutlet(rdb, fetcher.Direct(), os.Stdout), ledger: sink.NewLedger(rdb, desk),
		running: newInFlight(), held: &holding{runs: map[*run]bool{}}, leaseLife: leaseLife, poke: newPoke(),
	}
}

// ProcessTask runs one delivery of one job.
func (h *Handler) ProcessTask(ctx context.Context, t *asynq.Task) error {
	return h.process(ctx, t, nil)
}

// process runs it in a slot of a bay; nil outside a worker.
func (h *Handler) process(ctx context.Context, t *asynq.Task, b *bay) error {
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	if t.Type() != TaskType && t.Type() != SinkTaskType {
		return fmt.Errorf("task type %q is not known here: %w", t.Type(), asynq.SkipRetry)
	}
	p, err := decodePayload(t.Payload())
	if err == nil && p.taskType() != t.Type() {
		err = fmt.Errorf("payload is not that of a task of type %s", t.Type())
	}
	if err != nil {
		tries, _ := asynq.GetRetryCount(ctx)
		return unread(err, tries, time.Now())
	}
	r := &run{ID: id, Queue: queue, token: newToken(), Feed: p.Feed, Key: feed.Key(p.Feed, p.Params), payload: p, bay: b}
	if p.Tick != nil {
		r.Tick = p.Tick.UTC().Format(time.RFC3339)
	}

	ctx, mine, ok := h.running.start(ctx, id)
	if !ok {
		return mine.park()
	}
	r.flight = mine
	log := h.log.With("job", r.ID, "feed", r.Feed)
	err = h.deliver(ctx, r, log)
	var gave *gaveWayError
	if err != nil && lastTry(ctx) && !errors.Is(err, errInterrupted) && !errors.Is(err, asynq.SkipRetry) && !errors.As(err, &gave) {
		err = h.standIn(ctx, r, log, err)
	}
	mine.end()
	if errors.Is(err, errInterrupted) {
		return mine.park()
	}
	return err
}

// unread is what follows a payload that cannot be read. That of a newer binary is left
// to others for a while: an upgrade rolls, and those who enqueue came first.
func unread(err error, tries int, now time.Time) error {
	var newer *schemaError
	if errors.As(err, &newer) && tries < upgradeTries {
		return &retryError{at: now.Add(upgradeEvery), err: err}
	}
	return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
}

// How often a payload that is too new is looked at: for half an hour at least.
const (
	upgradeEvery = 15 * time.Second
	upgradeTries = 120
)

// park holds a stopped job's task until asynq gives it back to its queue: a
// return would burn a try of a foreign task.
func (m *flight) park() error {
	<-m.parked
	return errInterrupted
}

// errInterrupted says that the worker stops and the job goes back.
var errInterrupted = errors.New("jobs: the worker stops; the job goes back to its queue")

func newToken() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// crashLimit is how many deaths of its workers a job survives at least.
const crashLimit = 3

// redelivered is how long after its end a foreign task of the same ID is taken
// for the same delivery, come again; later it is a new one.
const redelivered = 2 * time.Minute

// deliver runs the job and closes the run, whatever came of it.
func (h *Handler) deliver(ctx context.Context, r *run, log *slog.Logger) error {
	if err := h.open(ctx, r); err != nil {
		if ctx.Err() != nil && h.running.interrupted() {
			return errInterrupted
		}
		return &retryError{at: time.Now().Add(backoffBase), err: err}
	}
	switch {
	case r.State.Ended():
		log.Warn("job delivered again after its end: nothing to do", "state", r.State, "ended", r.Ended)
		return nil
	case r.Forward != "":
		log.Info("job delivered again after its copy took over", "copy", r.Forward)
		return nil
	case r.Cancelled:
		return h.end(ctx, r, log, Cancelled, errCancelled)
	}
	if lastTry(ctx) {
		found, err := h.hasCopy(ctx, r)
		if err == nil && found {
			err = h.forward(ctx, r, copyID(r))
			if err == nil {
				return nil
			}
		}
		if err != nil {
			return &retryError{at: time.Now().Add(backoffBase), err: err}
		}
	}
	if r.delivers() {
		return h.carry(ctx, r, log)
	}
	f, src, err := h.catalog.find(r.Feed)
	if err != nil {
		return h.unknown(ctx, r, log, err)
	}
	h.leaveFormer(ctx, r, f.Quota, log)
	r.host, r.limits = src.Host(), h.cfg.limits(f, src)
	if r.Crashes >= max(f.Attempts, crashLimit) {
		return h.end(ctx, r, log, Failed, fmt.Errorf("its worker died %d times in mid-run", r.Crashes))
	}
	if at := r.expiry(); !at.IsZero() && !r.now().Before(at) {
		return h.end(ctx, r, log, Expired, notStarted(at))
	}

	if err := h.enter(ctx, r, log); err != nil {
		return h.settle(ctx, r, f, log, err)
	}
	res, err := h.travel(ctx, r, f, src, log)
	if err != nil {
		return h.settle(ctx, r, f, log, err)
	}
	line, err := json.Marshal(res)
	if err != nil {
		return h.end(ctx, r, log, Failed, err)
	}
	if err := h.finish(ctx, r, ending{State: Done, Result: string(line)}); err != nil {
		return h.lost(ctx, r, log, err)
	}
	return nil
}

// open begins the run. A job that has ended begins anew only where somebody
// wants it so: a failed one that was archived and is run by hand, or a foreign
// task that uses its ID again.
func (h *Handler) open(ctx context.Context, r *run) error {
	if err := h.begin(ctx, r, false); err != nil {
		return err
	}
	again := false
	switch {
	case r.State == Failed:
		info, err := h.inspector.GetTaskInfo(r.Queue, r.ID)
		if err != nil {
			return fmt.Errorf("jobs: ask asynq for %q: %w", r.ID, err)
		}
		again = !info.LastFailedAt.IsZero() && info.LastFailedAt.Unix() >= r.Ended.Unix()
	case (r.State.Ended() || r.Forward != "") && r.payload.Schema == 0:
		again = r.now().Sub(r.Ended) > redelivered
	}
	if !again {
		return nil
	}
	return h.begin(ctx, r, true)
}

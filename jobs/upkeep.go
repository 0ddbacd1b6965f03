package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// QueueUpkeep is the queue of the jobs that are no fetches of feeds. It has
// servers of its own, so that a long check holds up no feed.
const QueueUpkeep = "upkeep"

// The task types of upkeep. A task's payload is {"pool":"…"}.
const (
	CheckProxies = "proxies:check" // check a pool's endpoints
	FetchList    = "proxies:list"  // fetch a pool's list
)

const (
	upkeepAtOnce   = 2
	upkeepAttempts = 5 // those that fail; the next tick comes anyway
	upkeepLimit    = time.Hour
)

// Chore does one kind of upkeep for a pool.
type Chore struct {
	Type string
	Do   func(ctx context.Context, pool string) error
}

type upkeepPayload struct {
	Pool string `json:"pool"`
}

// Upkeep asks for one run of a chore. While one waits or runs, in whatever
// process, asking again is asking for that one.
func Upkeep(ctx context.Context, rdb redis.UniversalClient, kind, pool string) error {
	body, err := json.Marshal(upkeepPayload{pool})
	if err != nil {
		return fmt.Errorf("jobs: upkeep: %w", err)
	}
	c, inspector := asynq.NewClientFromRedisClient(rdb), asynq.NewInspectorFromRedisClient(rdb)
	id := kind + ":" + pool
	// What failed for good keeps its ID; it is only in the way.
	if info, err := inspector.GetTaskInfo(QueueUpkeep, id); err == nil && info.State == asynq.TaskStateArchived {
		if err := inspector.DeleteTask(QueueUpkeep, id); err != nil && !errors.Is(err, asynq.ErrTaskNotFound) {
			return fmt.Errorf("jobs: upkeep %s of pool %q: %w", kind, pool, err)
		}
	}
	_, err = c.EnqueueContext(ctx, asynq.NewTask(kind, body), asynq.TaskID(id), asynq.Queue(QueueUpkeep),
		asynq.MaxRetry(upkeepAttempts), asynq.Timeout(upkeepLimit))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("jobs: upkeep %s of pool %q: %w", kind, pool, err)
	}
	return nil
}

// Keeper does the upkeep that is asked for, in one process.
type Keeper struct {
	rdb    redis.UniversalClient
	chores map[string]Chore
	log    *slog.Logger
	server *asynq.Server
	once   sync.Once
}

// NewKeeper makes a keeper; it does no I/O.
func NewKeeper(rdb redis.UniversalClient, log *slog.Logger, chores ...Chore) *Keeper {
	k := &Keeper{rdb: rdb, log: log, chores: map[string]Chore{}}
	for _, c := range chores {
		k.chores[c.Type] = c
	}
	return k
}

// Start begins to take tasks.
func (k *Keeper) Start(context.Context) error {
	k.server = asynq.NewServerFromRedisClient(k.rdb, asynq.Config{
		Concurrency:              upkeepAtOnce,
		Queues:                   map[string]int{QueueUpkeep: 1},
		TaskCheckInterval:        time.Second,
		DelayedTaskCheckInterval: time.Second,
		ShutdownTimeout:          parkFor, // a chore can be cut off at any point: it runs again
		RetryDelayFunc:           func(n int, _ error, _ *asynq.Task) time.Duration { return upkeepDelay(n) },
		Logger:                   newAsynqLog(k.log),
		LogLevel:                 asynq.WarnLevel,
	})
	if err := k.server.Start(asynq.HandlerFunc(k.do)); err != nil {
		return fmt.Errorf("jobs: start upkeep: %w", err)
	}
	return nil
}

// upkeepDelay is the time before try n+1: 2 s, 4 s, … up to a minute.
func upkeepDelay(n int) time.Duration {
	return min(2*time.Second<<min(n, 10), time.Minute)
}

func (k *Keeper) do(ctx context.Context, t *asynq.Task) error {
	c, ok := k.chores[t.Type()]
	if !ok {
		return fmt.Errorf("upkeep of type %q is not known here: %w", t.Type(), asynq.SkipRetry)
	}
	var p upkeepPayload
	if err := json.Unmarshal(t.Payload(), &p); err != nil || p.Pool == "" {
		return fmt.Errorf(`payload is not {"pool":"…"}: %w`, asynq.SkipRetry)
	}
	err := c.Do(ctx, p.Pool)
	if err != nil && ctx.Err() == nil {
		k.log.Warn("upkeep failed; it is tried again", "type", t.Type(), "pool", p.Pool, "error", err)
	}
	return err
}

// Stop ends what runs and gives it back to the queue. It may be called twice.
func (k *Keeper) Stop(context.Context) error {
	k.once.Do(func() {
		if k.server != nil {
			k.server.Shutdown()
		}
	})
	return nil
}

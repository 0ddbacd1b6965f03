package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// maxRetry puts asynq's own budget out of the way; ours is in the record.
const maxRetry = 1 << 20

// taskTimeout bounds one run in asynq's eyes; the fetch's own deadline comes
// long before it.
const taskTimeout = 30 * time.Minute

// replace puts a copy of ours into the queue for a task that asynq would
// archive on this refusal, before the task ends. The copy goes on with the
// record and the charge IDs of the first; the old record says where it went.
func (h *Handler) replace(ctx context.Context, r *run, log *slog.Logger, at time.Time, params map[string]string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	id := r.ID + "+"
	p := payload{Feed: r.Feed, Params: params, ChargeAs: r.chargeAs, LastTry: true}
	if r.Tick != "" {
		if t, err := time.Parse(time.RFC3339, r.Tick); err == nil {
			p.Tick = &t
		}
	}
	body, err := p.encode()
	if err != nil {
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	old, err := h.rdb.HGetAll(ctx, recordKey(r.ID)).Result()
	if err != nil {
		return h.lost(log, err)
	}
	pipe := h.rdb.TxPipeline()
	for _, field := range []string{"v", "state", "feed", "queue", "tick", "attempts", "snoozes", "sent", "crashes", "snoozed_ms", "next_ms", "last_error"} {
		if v, ok := old[field]; ok {
			pipe.HSetNX(ctx, recordKey(id), field, v)
		}
	}
	pipe.PExpire(ctx, recordKey(id), recordLife)
	if _, err := pipe.Exec(ctx); err != nil {
		return h.lost(log, err)
	}
	_, err = h.client.EnqueueContext(ctx, asynq.NewTask(TaskType, body), asynq.TaskID(id), asynq.Queue(r.Queue), asynq.MaxRetry(maxRetry),
		asynq.Retention(retention), asynq.Timeout(taskTimeout), asynq.ProcessAt(at.Add(fallback)))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return h.lost(log, err)
	}
	pipe = h.rdb.Pipeline()
	pipe.HSet(ctx, recordKey(r.ID), "forward", id)
	pipe.PExpire(ctx, recordKey(r.ID), recordLife)
	pipe.ZRem(ctx, wakeKey(r.Queue), r.ID)
	pipe.ZAdd(ctx, wakeKey(r.Queue), redis.Z{Score: float64(at.UnixMilli()), Member: id})
	if _, err := pipe.Exec(ctx); err != nil {
		log.Warn("could not note where a job went", "copy", id, "error", err)
	}
	line, err := json.Marshal(map[string]string{"goes on as": id})
	if err == nil {
		err = resultScript.Run(ctx, h.rdb, []string{asynqTaskPrefix(r.Queue) + r.ID}, line).Err()
	}
	if err != nil {
		log.Warn("could not write a result line", "error", err)
	}
	log.Info("job goes on as a copy: its own task has no try left", "copy", id)
	return nil
}

package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// maxRetry puts asynq's own budget out of the way; ours is in the record.
const maxRetry = 1 << 20

// taskTimeout bounds one run in asynq's eyes; the fetch's own deadline comes
// long before it.
const taskTimeout = 30 * time.Minute

// lastTry says that asynq would archive the task if its handler now returned
// an error, failure or not.
func lastTry(ctx context.Context) bool {
	n, ok1 := asynq.GetRetryCount(ctx)
	m, ok2 := asynq.GetMaxRetry(ctx)
	return ok1 && ok2 && n >= m
}

// copyID names the copy that goes on in a task's place: the same for every try
// to make it.
func copyID(r *run) string {
	birth := r.chargeAs[strings.LastIndexByte(r.chargeAs, '#')+1:]
	return r.ID + "+" + birth
}

// standIn puts a copy of ours into the queue for a task that asynq would
// archive though its job has not ended, and does not give up while the worker
// runs: the task must not end before. nil: the task may.
func (h *Handler) standIn(ctx context.Context, r *run, log *slog.Logger, cause error) error {
	at := time.Now().Add(backoffBase)
	var s *SnoozeError
	var re *retryError
	if errors.As(cause, &s) {
		at = s.Until
	} else if errors.As(cause, &re) {
		at = re.at
	}
	for {
		err := h.replace(ctx, r, log, at)
		if err == nil || errors.Is(err, asynq.SkipRetry) {
			return err
		}
		log.Warn("could not put a copy in the place of a task that has no try left; trying again", "error", err)
		select {
		case <-ctx.Done():
			if h.running.interrupted() {
				return errInterrupted
			}
			return cause
		case <-time.After(time.Second):
		}
	}
}

// replace makes the copy. It goes on with the record and the charge IDs of the
// first; the old record says where it went.
func (h *Handler) replace(ctx context.Context, r *run, log *slog.Logger, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if r.chargeAs == "" {
		// The run never began: Redis did not answer.
		if err := h.begin(ctx, r, false); err != nil {
			return err
		}
	}
	id := copyID(r)
	p := r.payload
	p.ChargeAs, p.LastTry = r.chargeAs, true
	body, err := p.encode()
	if err != nil {
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	old, err := h.rdb.HGetAll(ctx, recordKey(r.ID)).Result()
	if err != nil {
		return err
	}
	pipe := h.rdb.TxPipeline()
	for _, field := range []string{"v", "state", "feed", "queue", "tick", "attempts", "snoozes", "sent", "crashes", "snoozed_ms", "next_ms", "last_error", "charge_as", "quota"} {
		if v, ok := old[field]; ok {
			pipe.HSet(ctx, recordKey(id), field, v)
		}
	}
	pipe.PExpire(ctx, recordKey(id), recordLife)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	_, err = h.client.EnqueueContext(ctx, asynq.NewTask(p.taskType(), body), asynq.TaskID(id), asynq.Queue(r.Queue), asynq.MaxRetry(maxRetry),
		asynq.Retention(retention), asynq.Timeout(taskTimeout), asynq.ProcessAt(at.Add(fallback)))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return err
	}
	if err := h.forward(ctx, r, id); err != nil {
		return err
	}
	if err := h.rdb.ZAdd(ctx, wakeKey(r.Queue), redis.Z{Score: wakeScore(at), Member: id}).Err(); err != nil {
		log.Warn("could not note a copy's exact instant; it comes some seconds later", "copy", id, "error", err)
	}
	log.Info("job goes on as a copy: its own task has no try left", "copy", id)
	return nil
}

// forward notes where a job went.
func (h *Handler) forward(ctx context.Context, r *run, id string) error {
	line, err := json.Marshal(map[string]string{"goes on as": id})
	if err != nil {
		return err
	}
	pipe := h.rdb.TxPipeline()
	pipe.HSet(ctx, recordKey(r.ID), "forward", id, "ended_ms", r.now().UnixMilli())
	pipe.HDel(ctx, recordKey(r.ID), "run")
	pipe.PExpire(ctx, recordKey(r.ID), recordLife)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	if err := h.rdb.ZRem(ctx, wakeKey(r.Queue), r.ID).Err(); err != nil {
		return err
	}
	return resultScript.Run(ctx, h.rdb, []string{asynqTaskPrefix(r.Queue) + r.ID}, line).Err()
}

// hasCopy finds the copy of a run that died between making it and noting it.
func (h *Handler) hasCopy(ctx context.Context, r *run) (bool, error) {
	n, err := h.rdb.Exists(ctx, asynqTaskPrefix(r.Queue)+copyID(r)).Result()
	return n > 0, err
}

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/sink"
)

const (
	// sinkQueueLimit bounds the queue of deliveries. What finds no room stays
	// due, and comes in with a later pass.
	sinkQueueLimit = 100_000
	// sinkEvery is how often a worker looks for versions that were stored and not handed over.
	sinkEvery = 5 * time.Second
)

// handOver puts into the queue a delivery for every version that a sink has not
// been given yet. What fails here is found by the next version's job or by the
// loop; no sink holds up the feed.
func (h *Handler) handOver(ctx context.Context, f Feed, newest int64, log *slog.Logger) {
	for _, c := range f.Sinks {
		h.handTo(ctx, f, c.Name(), newest, false, log)
	}
}

func (h *Handler) handTo(ctx context.Context, f Feed, name string, newest int64, anew bool, log *slog.Logger) {
	if err := h.queueDue(ctx, f, name, newest, anew); err != nil {
		log.Warn("could not hand a version over to a sink; a later pass will", "feed", f.Name, "sink", name, "version", newest, "error", err)
	}
}

func (h *Handler) queueDue(ctx context.Context, f Feed, name string, newest int64, anew bool) error {
	due, err := h.ledger.Due(ctx, f.Name, name, newest, f.History, anew)
	if err != nil || due > newest {
		return err
	}
	for v := due; v <= newest; v++ {
		if err := h.enqueueDelivery(ctx, f.Name, v, name); err != nil {
			return err
		}
	}
	return h.ledger.Queued(ctx, f.Name, name, newest)
}

// enqueueDelivery makes one delivery's job; the one that is there already is it.
func (h *Handler) enqueueDelivery(ctx context.Context, feed string, version int64, name string) error {
	id := deliveryID(feed, version, name)
	var b luarun.Batch
	taken := place(&b, QueueSinks, id, sinkQueueLimit)
	cmds, err := h.desk.Do(ctx, &b)
	if err == nil {
		err = taken(cmds)
	}
	if err != nil {
		return err
	}
	body, err := payload{Feed: feed, Sink: name, Version: version}.encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, enqueueWithin)
	defer cancel()
	_, err = h.client.EnqueueContext(ctx, asynq.NewTask(SinkTaskType, body), asynq.TaskID(id), asynq.Queue(QueueSinks),
		asynq.MaxRetry(maxRetry), asynq.Retention(retention), asynq.Timeout(taskTimeout))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("jobs: enqueue %q: %w", id, err)
	}
	return nil
}

// sinkLoop hands over what a crash between storing and queueing has left, what
// others stored, and the newest version to sinks that are new.
func (s *shift) sinkLoop(ctx context.Context) {
	tick := time.NewTicker(sinkEvery)
	defer tick.Stop()
	for {
		if err := s.handler.catchUpSinks(ctx, s.log); err != nil && ctx.Err() == nil {
			s.faults.report("hand versions over to sinks", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// catchUpSinks is one pass of the loop: two round trips where nothing is left.
func (h *Handler) catchUpSinks(ctx context.Context, log *slog.Logger) error {
	feeds, sinks := []Feed{}, map[string][]sink.Config{}
	var keys []string
	for _, f := range h.catalog.Feeds() {
		if len(f.Sinks) > 0 {
			feeds, keys = append(feeds, f), append(keys, f.Name)
			sinks[f.Name] = f.Sinks
		}
	}
	if len(feeds) == 0 {
		return nil
	}
	// In this order: a version that comes between is newer than the ledger, never older.
	states, err := h.ledger.States(ctx, sinks)
	if err != nil {
		return err
	}
	heads, err := h.store.Heads(ctx, keys)
	if err != nil {
		return err
	}
	for i, f := range feeds {
		newest := heads[i].Version
		for _, st := range states[f.Name] {
			// A ledger is begun before the first version, so that none of them is taken for old.
			if st.Queued != newest || newest == 0 {
				h.handTo(ctx, f, st.Sink, newest, st.Queued > newest, log)
			}
		}
	}
	return nil
}

// Sinks says how far the sinks of all feeds have come, by feed.
func (c *Client) Sinks(ctx context.Context) (map[string][]sink.State, error) {
	sinks := map[string][]sink.Config{}
	for _, f := range c.catalog.Feeds() {
		if len(f.Sinks) > 0 {
			sinks[f.Name] = f.Sinks
		}
	}
	return sink.NewLedger(c.rdb, c.desk).States(ctx, sinks)
}

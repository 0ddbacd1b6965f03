package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/sink"
)

const (
	// sinkSlots is how many deliveries a worker does at a time, besides its fetches.
	sinkSlots = 8
	// sinkAttempts is how often a delivery is tried: for about an hour and a half.
	sinkAttempts = 16
)

// UnknownSinkError names a sink that the feed does not have.
type UnknownSinkError struct{ Feed, Sink string }

func (e *UnknownSinkError) Error() string {
	return fmt.Sprintf("feed %q has no sink %q in the config", e.Feed, e.Sink)
}

// delivers says that the job brings a version to a sink.
func (r *run) delivers() bool { return r.payload.Sink != "" }

// deliveryID names the one job that brings a version to a sink.
func deliveryID(feed string, version int64, sink string) string {
	return "sink:" + feed + "@" + strconv.FormatInt(version, 10) + ":" + sink
}

// checkSinks finds what is wrong with a feed's sinks.
func checkSinks(all []sink.Config) error {
	var faults []error
	seen := map[string]bool{}
	for _, c := range all {
		faults = append(faults, c.Check())
		if name := c.Name(); seen[name] {
			faults = append(faults, fmt.Errorf("sink %s %s stands twice", c.Kind(), c.Place()))
		} else {
			seen[name] = true
		}
	}
	return errors.Join(faults...)
}

// sink finds one sink of a feed.
func (c *Catalog) sink(name, of string) (Feed, sink.Config, error) {
	f, _, err := c.find(name)
	if err != nil {
		return f, sink.Config{}, err
	}
	for _, s := range f.Sinks {
		if s.Name() == of {
			return f, s, nil
		}
	}
	return f, sink.Config{}, &UnknownSinkError{name, of}
}

// carry brings one version to one sink, and closes the run.
func (h *Handler) carry(ctx context.Context, r *run, log *slog.Logger) error {
	log = log.With("sink", r.payload.Sink, "version", r.payload.Version)
	_, c, err := h.catalog.sink(r.Feed, r.payload.Sink)
	if err != nil {
		return h.unknown(ctx, r, log, err)
	}
	if r.Crashes >= crashLimit {
		return h.dropped(ctx, r, log, fmt.Errorf("its worker died %d times in mid-delivery", r.Crashes))
	}
	v, err := h.store.Get(ctx, r.Feed, r.payload.Version)
	if errors.Is(err, feed.ErrNoVersion) {
		return h.dropped(ctx, r, log, errors.New("the version is no longer kept: a longer history of the feed would have it"))
	}
	begun := time.Now()
	if err == nil {
		err = h.outlet.Deliver(ctx, c, sink.Delivery{Feed: r.Feed, Version: v})
	}
	if err != nil {
		return h.undelivered(ctx, r, log, err)
	}
	h.note(ctx, r, log, "", false)
	took := time.Since(begun).Milliseconds()
	line, err := json.Marshal(map[string]any{"what": "delivered", "sink": r.payload.Sink, "version": r.payload.Version, "took_ms": took})
	if err != nil {
		return h.end(ctx, r, log, Failed, err)
	}
	if err := h.finish(ctx, r, ending{State: Done, Result: string(line)}); err != nil {
		return h.lost(ctx, r, log, err)
	}
	log.Info("delivered", "took_ms", took)
	return nil
}

// undelivered turns the error of a delivery into what follows.
func (h *Handler) undelivered(ctx context.Context, r *run, log *slog.Logger, err error) error {
	n, most := r.Attempts+1, h.cfg.SinkAttempts
	if most <= 0 {
		most = sinkAttempts
	}
	var se *sink.Error
	switch {
	case ctx.Err() != nil || !errors.As(err, &se):
		// Stopped, cancelled, or Redis did not answer: no word of the receiver's.
		return h.settle(ctx, r, Feed{Attempts: most}, log, err)
	case se.Permanent:
		return h.dropped(ctx, r, log, err)
	case n >= most || r.payload.LastTry || lastTry(ctx):
		return h.dropped(ctx, r, log, fmt.Errorf("attempt %d of %d: %w", n, most, err))
	}
	at := r.now().Add(max(backoff(n, randomSpread()), se.RetryAfter))
	if ferr := h.finish(ctx, r, ending{State: Retrying, Count: "attempts", Next: at, Error: err.Error()}); ferr != nil {
		return h.lost(ctx, r, log, ferr)
	}
	h.note(ctx, r, log, err.Error(), false)
	log.Warn("delivery failed, will retry", "attempt", n, "attempts", most, "next_at", at, "error", err)
	return &retryError{at: at, err: err}
}

// dropped ends a delivery that is not tried again; the job, the ledger and the
// log say why.
func (h *Handler) dropped(ctx context.Context, r *run, log *slog.Logger, why error) error {
	if err := h.finish(ctx, r, ending{State: Failed, Count: "attempts", Error: why.Error()}); err != nil {
		return h.lost(ctx, r, log, err)
	}
	h.note(ctx, r, log, why.Error(), true)
	log.Error("delivery failed for good", "attempts", r.Attempts+1, "error", why)
	return fmt.Errorf("%w: %w", why, asynq.SkipRetry)
}

func (h *Handler) note(ctx context.Context, r *run, log *slog.Logger, why string, last bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := h.ledger.Note(ctx, r.Feed, r.payload.Sink, r.payload.Version, r.now(), why, last); err != nil {
		log.Warn("could not note how a delivery came out", "error", err)
	}
}

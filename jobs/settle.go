package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/quota"
)

// settle turns the error of a run into what follows.
func (h *Handler) settle(ctx context.Context, r *run, f Feed, log *slog.Logger, err error) error {
	var s *SnoozeError
	switch {
	case errors.Is(err, errStale):
		return h.lost(ctx, r, log, err)
	case errors.Is(err, errCancelled) || h.running.cancelled(r.ID):
		return h.end(ctx, r, log, Cancelled, errCancelled)
	case h.running.interrupted() && (errors.Is(err, context.Canceled) || ctx.Err() != nil):
		if ferr := h.finish(ctx, r, ending{State: Pending, Error: errInterrupted.Error()}); ferr != nil {
			log.Warn("could not close a stopped run", "error", ferr)
		}
		log.Info("job stopped with its worker", "requests_sent", r.Sent)
		return errInterrupted
	case errors.As(err, &s):
		return h.snooze(ctx, r, f, log, s)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		// asynq cancelled it (a person at asynqmon, or a lost lease): it runs again, and that is no failure.
		if lastTry(ctx) {
			return h.end(ctx, r, log, Failed, errors.New("stopped from outside, and its task had no try left"))
		}
		if ferr := h.finish(ctx, r, ending{State: Pending, Error: "stopped from outside"}); ferr != nil {
			return h.lost(ctx, r, log, ferr)
		}
		return err
	}
	var perm *permanentError
	n := r.Attempts + 1
	if errors.As(err, &perm) || n >= f.Attempts || r.payload.LastTry || lastTry(ctx) {
		if perm == nil {
			err = fmt.Errorf("attempt %d of %d: %w", n, f.Attempts, err)
		}
		return h.endCounted(ctx, r, log, err)
	}
	at := r.now().Add(backoff(n, randomSpread()))
	if end := r.expiry(); !end.IsZero() && end.Before(at) {
		at = end
	}
	e := ending{State: Retrying, Count: "attempts", Next: at, Error: err.Error()}
	if ferr := h.finish(ctx, r, e); ferr != nil {
		return h.lost(ctx, r, log, ferr)
	}
	h.fail(ctx, r, err, log)
	log.Warn("fetch failed, will retry", "attempt", n, "attempts", f.Attempts, "next_at", at, "error", err)
	return &retryError{at: at, err: err}
}

// permanentError is a failure that trying again cannot mend.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

func (h *Handler) endCounted(ctx context.Context, r *run, log *slog.Logger, err error) error {
	if ferr := h.finish(ctx, r, ending{State: Failed, Count: "attempts", Error: err.Error()}); ferr != nil {
		return h.lost(ctx, r, log, ferr)
	}
	h.fail(ctx, r, err, log)
	h.forgetCharge(ctx, r, log) // of a charge whose reply was lost; a sent one has another ID
	log.Error("job failed", "attempts", r.Attempts+1, "snoozes", r.Snoozes, "error", err)
	return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
}

// end closes a job without a request that failed.
func (h *Handler) end(ctx context.Context, r *run, log *slog.Logger, s State, why error) error {
	line, err := json.Marshal(map[string]string{"what": string(s), "reason": why.Error()})
	if err != nil {
		line = nil
	}
	if ferr := h.finish(ctx, r, ending{State: s, Error: why.Error(), Result: string(line)}); ferr != nil && !(s == Cancelled && errors.Is(ferr, errCancelled)) {
		return h.lost(ctx, r, log, ferr)
	}
	h.forgetCharge(ctx, r, log)
	if s == Expired {
		h.fail(ctx, r, fmt.Errorf("job %s expired: %w", r.ID, why), log)
	}
	if s == Failed {
		h.fail(ctx, r, why, log)
		log.Error("job failed", "error", why)
		return fmt.Errorf("%w: %w", why, asynq.SkipRetry)
	}
	log.Info("job ended without a fetch", "state", s, "reason", why)
	return nil
}

// configLag is how far behind another process this one may be in reading a
// config that has changed.
const configLag = 15 * time.Second

// unknown waits with a job whose feed is not known here: whoever enqueued it
// knew the feed, and may have read the config that this process is about to
// read.
func (h *Handler) unknown(ctx context.Context, r *run, log *slog.Logger, err error) error {
	now := r.now()
	if r.payload.Schema != 0 && !r.payload.LastTry && !lastTry(ctx) && (r.SnoozedSince.IsZero() || now.Sub(r.SnoozedSince) < configLag) {
		return h.snooze(ctx, r, Feed{}, log, &SnoozeError{Until: now.Add(time.Second), Reason: err.Error()})
	}
	h.leaveFormer(ctx, r, "", log)
	return h.end(ctx, r, log, Failed, err)
}

// snooze puts the job to sleep until its promised instant.
func (h *Handler) snooze(ctx context.Context, r *run, f Feed, log *slog.Logger, s *SnoozeError) error {
	now := r.now()
	if !s.Until.After(now) {
		s.Until = now.Add(minSnooze)
	}
	promised := s.Until
	if at := r.expiry(); !at.IsZero() && at.Before(promised) {
		s = &SnoozeError{Until: at, Reason: s.Reason + "; the job expires before that"}
	}
	since := r.SnoozedSince
	if since.IsZero() {
		since = now
	}
	if f.MaxSnooze > 0 && s.Until.Sub(since) > f.MaxSnooze {
		return h.end(ctx, r, log, Failed, fmt.Errorf("max_snooze: would sleep until %s, longer than %s in all: %s",
			s.Until.UTC().Format(time.RFC3339), f.MaxSnooze, s.Reason))
	}
	if err := h.finish(ctx, r, ending{State: Snoozed, Count: "snoozes", Next: s.Until, Error: s.Error()}); err != nil {
		return h.lost(ctx, r, log, err)
	}
	if err := h.store.Announce(context.WithoutCancel(ctx), r.Key, r.ID, promised); err != nil {
		log.Warn("could not tell waiting readers", "error", err)
	}
	log.Info("job snoozed", "until", s.Until, "snoozes", r.Snoozes+1, "reason", s.Reason)
	return s
}

// gaveWayError is a run whose job another run has: asynq may do with its task
// what it likes, since the lease is gone.
type gaveWayError struct{ SnoozeError }

// lost ends a run whose end its record did not take: a person had cancelled
// the job, another run has it, or Redis did not answer.
func (h *Handler) lost(ctx context.Context, r *run, log *slog.Logger, err error) error {
	switch {
	case errors.Is(err, errCancelled):
		h.forgetCharge(ctx, r, log)
		log.Info("job cancelled")
		return nil
	case errors.Is(err, errStale):
		log.Warn("run gave way: another run has the job")
		return &gaveWayError{SnoozeError{Until: time.Now().Add(time.Minute), Reason: "another run has this job"}}
	}
	log.Error("could not close a run", "error", err)
	return &SnoozeError{Until: time.Now().Add(backoffBase), Reason: "its record could not be written: " + err.Error()}
}

// fail tells the feed why nothing came; its versions stay.
func (h *Handler) fail(ctx context.Context, r *run, why error, log *slog.Logger) {
	if r.delivers() {
		return // its own ledger says it: the feed has come to no harm
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	if _, _, unknown := h.catalog.find(r.Feed); unknown != nil && r.Head.Empty() {
		err = h.store.FailUnknown(ctx, r.Key, r.ID)
	} else {
		err = h.store.Fail(ctx, r.Key, r.ID, why.Error(), r.now())
	}
	if err != nil {
		log.Warn("could not record a failure", "error", err)
	}
}

// leaveFormer takes a job out of the line of the quota that its feed had before the
// config changed, and wakes those who move up.
func (h *Handler) leaveFormer(ctx context.Context, r *run, now string, log *slog.Logger) {
	former := r.asked
	if former == "" || former == now {
		return
	}
	_, err := h.limiter.Refund(ctx, former, r.chargeID())
	if err == nil {
		err = wakeLine(ctx, h.rdb, h.limiter, former)
	}
	if err == nil || errors.Is(err, quota.ErrUnknownQuota) {
		r.asked = ""
		return
	}
	log.Warn("could not leave the line of a former quota; the place there ends by itself", "quota", former, "error", err)
}

// forgetCharge gives back an unsent charge, and the place in the line, at the quota
// that was asked: the feed may have another by now.
func (h *Handler) forgetCharge(ctx context.Context, r *run, log *slog.Logger) {
	name := r.asked
	if f, _, err := h.catalog.find(r.Feed); name == "" && err == nil {
		name = f.Quota // a record from before it said which
	}
	if name == "" || r.delivers() {
		return
	}
	_, err := h.limiter.Refund(context.WithoutCancel(ctx), name, r.chargeID())
	if err != nil && !errors.Is(err, quota.ErrUnknownQuota) {
		log.Warn("could not give back a charge", "quota", name, "error", err)
	}
}

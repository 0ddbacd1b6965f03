package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"feedwarden/internal/units"
	"feedwarden/quota"
)

// charge asks the quota for one request's units under the job's own charge ID.
func (h *Handler) charge(ctx context.Context, r *run, f Feed, log *slog.Logger) error {
	if f.Quota == "" {
		return nil
	}
	r.asked = f.Quota
	req := quota.Request{Quota: f.Quota, ID: r.chargeID(), Cost: f.Cost, Priority: r.priority(), Label: f.Name}
	d, err := h.limiter.Charge(ctx, req)
	if err == nil && d.Granted && outlived(d, r.now()) {
		// An unsent charge of an earlier run, which some window no longer counts: it would pay for nothing.
		if _, err = h.limiter.Refund(ctx, f.Quota, req.ID); err == nil {
			d, err = h.limiter.Charge(ctx, req)
		}
	}
	var impossible *quota.ImpossibleError
	switch {
	case errors.As(err, &impossible):
		return &permanentError{err}
	case errors.Is(err, quota.ErrUnknownQuota):
		// The config changed between the look at the feed and the charge; the next run sees the whole of it.
		return &SnoozeError{Until: r.now().Add(time.Second), Reason: err.Error()}
	case err != nil:
		return fmt.Errorf("charge: %w", err)
	case !d.Granted:
		return &SnoozeError{Until: d.At.Add(allowance(d)), Reason: refusal(f.Quota, d)}
	}
	late := time.Duration(0)
	if !r.Due.IsZero() {
		late = r.now().Sub(r.Due)
	}
	if late < -early {
		if err := wakeLine(ctx, h.rdb, h.limiter, f.Quota); err != nil {
			log.Warn("could not wake the next in line", "quota", f.Quota, "error", err)
		}
	}
	log.Info("granted", "quota", f.Quota, "cost", f.Cost, "charge", r.chargeID(), "snoozes", r.Snoozes, "late_ms", late.Milliseconds())
	return nil
}

// outlived says that some window no longer counts a grant.
func outlived(d quota.Decision, now time.Time) bool {
	return slices.ContainsFunc(d.Windows, func(w quota.Use) bool { return !w.Counts(d.At, now) })
}

// allowance is how long after its promise a refused job asks again. Who waits
// longer than a window waits for others that wait themselves, and is promised an
// instant that counts on each of them to come in time; they come a moment late, so
// it would ask in vain. It is nothing for those who wait for what is charged
// already, and at most 2 % of the wait.
func allowance(d quota.Decision) time.Duration {
	if d.Reason == quota.ReasonBlocked || len(d.Windows) == 0 {
		return 0
	}
	least := d.RetryAfter
	for _, w := range d.Windows {
		turns := int64(d.RetryAfter / w.Per) // that the window has before this one's
		least = min(least, time.Duration(turns*min(w.Per/50, turnLate).Nanoseconds()))
	}
	return least
}

// turnLate is how much later each turn of a window comes than it could, at most.
const turnLate = 150 * time.Millisecond

// refusal says in a line why a quota refused.
func refusal(name string, d quota.Decision) string {
	text := fmt.Sprintf("quota %s", name)
	for _, w := range d.Windows {
		if w.Used+d.Cost > w.Limit {
			text += fmt.Sprintf(": %d of %d used ", w.Used, w.Limit)
			if w.Calendar != "" {
				text += "this " + w.Calendar
			} else {
				text += "in " + units.FormatDuration(w.Per)
			}
			break
		}
	}
	if d.Reason == "blocked" {
		text += ": closed"
	}
	if d.Position > 0 {
		text += fmt.Sprintf(", place %d in the line", d.Position)
	}
	return text
}

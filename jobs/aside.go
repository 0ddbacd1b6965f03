package jobs

import (
	"context"
	"errors"
	"log/slog"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// setAside keeps what came where an answer was not taken, for a person to see:
// a wrong type, a ban page, one that stops in the middle or is empty where
// there were items. Secrets that were sent are out of it already.
func (h *Handler) setAside(ctx context.Context, r *run, err error, log *slog.Logger) {
	var ae *source.AnswerError
	if !errors.As(err, &ae) || len(ae.Kept) == 0 {
		return
	}
	a := feed.Aside{At: r.now().UTC(), Job: r.ID, Kind: string(ae.Kind), Reason: ae.Reason, Type: ae.ContentType, Body: ae.Kept}
	if err := h.store.SetAside(context.WithoutCancel(ctx), r.Key, a); err != nil {
		log.Warn("could not keep an answer aside", "error", err)
	}
}

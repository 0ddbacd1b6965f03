package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"feedwarden/quota"
)

// holding are the runs of this process that hold leases.
type holding struct {
	mu   sync.Mutex
	runs map[*run]bool
}

func (h *holding) add(r *run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[r] = true
}

func (h *holding) remove(r *run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.runs, r)
}

func (h *holding) all() []*run {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*run, 0, len(h.runs))
	for r := range h.runs {
		out = append(out, r)
	}
	return out
}

// extendLoop keeps the leases of running jobs until ctx ends. A run that has
// lost one stops: somebody else may run in its place.
func (h *Handler) extendLoop(ctx context.Context) {
	tick := time.NewTicker(h.leaseLife / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var all sync.WaitGroup
		for _, r := range h.held.all() {
			all.Go(func() {
				err := h.leases.Extend(ctx, r.chargeAs, h.leaseLife, names(r.limits)...)
				if errors.Is(err, quota.ErrNotHeld) && h.held.has(r) {
					h.log.Warn("a running job lost its lease and is stopped", "job", r.ID, "feed", r.Feed, "error", err)
					r.flight.cancel()
				}
			})
		}
		all.Wait()
	}
}

func (h *holding) has(r *run) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[r]
}

package web

import (
	"time"

	"feedwarden/quota"
)

// Charge is the answer to a charge.
type Charge struct {
	Granted      bool   `json:"granted"`
	ID           string `json:"id"`
	Cost         int64  `json:"cost"`
	RetryAfterMS int64  `json:"retry_after_ms"` // 0 when granted
	// Position is the place in the line, 1 = next; 0 when granted, or with no place.
	Position int64  `json:"position"`
	Windows  []Used `json:"windows"`
	// Reason of a refusal: window, line, reserve, blocked; "" when granted.
	Reason string `json:"reason"`
	// At is when it was granted, or the promised instant, by Redis's clock.
	At *time.Time `json:"at"`
}

// Used is what one window counts.
type Used struct {
	Limit    int64  `json:"limit"`
	PerMS    int64  `json:"per_ms"` // a calendar's is the length of its present day
	Used     int64  `json:"used"`
	Calendar string `json:"calendar,omitempty"` // day: from midnight to midnight
}

// ChargeView is a decision as JSON.
func ChargeView(d quota.Decision) Charge {
	return Charge{
		Granted: d.Granted, ID: d.ID, Cost: d.Cost, RetryAfterMS: ceilMillis(d.RetryAfter), Position: d.Position,
		Windows: usedOf(d.Windows), Reason: d.Reason, At: instant(d.At),
	}
}

func usedOf(windows []quota.Use) []Used {
	out := make([]Used, len(windows))
	for i, w := range windows {
		out[i] = Used{Limit: w.Limit, PerMS: w.Per.Milliseconds(), Used: w.Used, Calendar: w.Calendar}
	}
	return out
}

// Refund is the answer to a refund.
type Refund struct {
	ID       string `json:"id"`
	Restored int64  `json:"restored"` // units; 0 when there was nothing to give back
}

// Quota is a quota as it stands.
type Quota struct {
	Name      string `json:"name"`
	Windows   []Used `json:"windows"`
	Remaining int64  `json:"remaining"` // units that all windows have left
	Reserve   int64  `json:"reserve"`   // how many of them are for interactive charges alone
	// NextReleaseAt is when a window next counts less; null when none counts anything.
	NextReleaseAt *time.Time `json:"next_release_at"`
	Line          Line       `json:"line"`
	// BlockedUntil is null when the quota is open.
	BlockedUntil *time.Time `json:"blocked_until"`
	BlockReason  string     `json:"block_reason"`

	Grants        int64 `json:"grants"`
	Units         int64 `json:"units"` // granted
	Refusals      int64 `json:"refusals"`
	Refunds       int64 `json:"refunds"`
	RefundedUnits int64 `json:"refunded_units"`
	Blocks        int64 `json:"blocks"` // how often it was closed

	Snoozes  Histogram `json:"snoozes"`  // grants by how often they were refused before
	Lateness Histogram `json:"lateness"` // grants of waiters by how long after their promise they came, in seconds

	// Running is who works at a time; null where it was not asked for.
	Running *Running `json:"running"`
	// History is the past day by quarters of an hour, the present one last; only of a single quota.
	History []Point `json:"history,omitempty"`
	// HistoryLabels is who took the units of History: feeds, by their names, and what scripts
	// charge under a label. Who took the most comes first, 100 at most.
	HistoryLabels []Share `json:"history_labels,omitempty"`
}

// Line is who waits for a quota.
type Line struct {
	Waiting       int64    `json:"waiting"`
	Units         int64    `json:"units"`
	Scheduled     int64    `json:"scheduled"`
	Interactive   int64    `json:"interactive"`
	LongestWaitMS int64    `json:"longest_wait_ms"`
	First         []Waiter `json:"first"` // the first of each class, interactive ones before
}

// Waiter is one place in a line.
type Waiter struct {
	ID         string    `json:"id"`
	Priority   string    `json:"priority"`
	Position   int64     `json:"position"`
	Cost       int64     `json:"cost"`
	PromisedAt time.Time `json:"promised_at"`
	Since      time.Time `json:"since"`
}

// QuotaView is a quota's state as JSON.
func QuotaView(s quota.State) Quota {
	q := Quota{
		Name: s.Name, Windows: usedOf(s.Windows), Remaining: s.Remaining, Reserve: s.Reserve,
		NextReleaseAt: instant(s.NextRelease), BlockedUntil: instant(s.BlockedUntil), BlockReason: s.BlockReason,
		Grants: s.Grants, Units: s.Units, Refusals: s.Refusals, Refunds: s.Refunds, RefundedUnits: s.Refunded, Blocks: s.Blocks,
		Snoozes:  histogram(s.Snoozes, float64(s.SnoozeSum)),
		Lateness: histogram(s.Lateness, s.LatenessSum.Seconds()),
		Line: Line{
			Waiting: s.Scheduled.Waiting + s.Interactive.Waiting, Units: s.Scheduled.Units + s.Interactive.Units,
			Scheduled: s.Scheduled.Waiting, Interactive: s.Interactive.Waiting,
			LongestWaitMS: s.LongestWait.Milliseconds(), First: make([]Waiter, len(s.Waiters)),
		},
	}
	for i, w := range s.Waiters {
		q.Line.First[i] = Waiter{
			ID: w.ID, Priority: w.Priority.String(), Position: w.Position, Cost: w.Cost,
			PromisedAt: w.Promised.UTC(), Since: w.Since.UTC(),
		}
	}
	return q
}

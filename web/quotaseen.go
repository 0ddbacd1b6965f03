package web

import (
	"context"
	"math"
	"time"

	"feedwarden/quota"
)

// Histogram is how many there were of each size.
type Histogram struct {
	Buckets []Bucket `json:"buckets"`
	Count   int64    `json:"count"` // of all
	Sum     float64  `json:"sum"`   // of all sizes
}

// Bucket counts what is no larger than UpTo, smaller buckets among them.
type Bucket struct {
	UpTo  *float64 `json:"up_to"` // null: any size
	Count int64    `json:"count"`
}

func histogram(buckets []quota.Bucket, sum float64) Histogram {
	h := Histogram{Buckets: make([]Bucket, len(buckets)), Sum: sum}
	for i, b := range buckets {
		h.Count = b.Count
		h.Buckets[i] = Bucket{Count: b.Count}
		if !math.IsInf(b.UpTo, 1) {
			h.Buckets[i].UpTo = &b.UpTo
		}
	}
	return h
}

// Running is a running limit as it stands: how many work at a time.
type Running struct {
	Name          string     `json:"name"` // quota:NAME, host:HOST, source:KIND
	Running       int64      `json:"running"`
	Limit         *int64     `json:"limit"` // null: none
	Waiting       int64      `json:"waiting"`
	LongestWaitMS int64      `json:"longest_wait_ms"`
	NextExpiryAt  *time.Time `json:"next_expiry_at"` // when a lease next ends by itself; null when none is held
	BlockedUntil  *time.Time `json:"blocked_until"`  // null when open
	BlockReason   string     `json:"block_reason"`
	Blocks        int64      `json:"blocks"`
}

// RunningView is a running limit's state as JSON.
func RunningView(s quota.RunningState) Running {
	r := Running{
		Name: s.Name, Running: s.Running, Waiting: s.Waiting, LongestWaitMS: s.LongestWait.Milliseconds(),
		NextExpiryAt: instant(s.NextExpiry), BlockedUntil: instant(s.BlockedUntil), BlockReason: s.BlockReason, Blocks: s.Blocks,
	}
	if s.Limit > 0 {
		r.Limit = &s.Limit
	}
	return r
}

// Point is what a quota did in a quarter of an hour.
type Point struct {
	Start         time.Time `json:"start"`
	Granted       int64     `json:"granted"`
	Units         int64     `json:"units"` // granted
	Refused       int64     `json:"refused"`
	RefundedUnits int64     `json:"refunded_units"`
}

// Share is what one label took of a quota, by the history's quarters of an hour.
type Share struct {
	Label         string  `json:"label"`
	Units         []int64 `json:"units"` // granted
	RefundedUnits []int64 `json:"refunded_units"`
}

// sharesShown bounds an answer: a quarter of an hour may know a thousand labels.
const sharesShown = 100

// SharesView is those that took the most, as JSON.
func SharesView(shares []quota.Share) []Share {
	views := make([]Share, 0, min(len(shares), sharesShown))
	for _, s := range shares[:cap(views)] {
		views = append(views, Share{Label: s.Label, Units: s.Units, RefundedUnits: s.Refunded})
	}
	return views
}

// PointsView is a quota's past day as JSON.
func PointsView(points []quota.Point) []Point {
	views := make([]Point, len(points))
	for i, p := range points {
		views[i] = Point{Start: p.Start, Granted: p.Granted, Units: p.Units, Refused: p.Refused, RefundedUnits: p.Refunded}
	}
	return views
}

// quota reads one as it stands, with who runs.
func (s *Server) quota(ctx context.Context, name string) (Quota, error) {
	st, err := s.p.Quotas.State(ctx, name)
	if err != nil {
		return Quota{}, err
	}
	view := QuotaView(st)
	if s.p.Leases != nil {
		running, err := s.p.Leases.State(ctx, "quota:"+name)
		if err != nil {
			return Quota{}, err
		}
		r := RunningView(running)
		view.Running = &r
	}
	return view, nil
}

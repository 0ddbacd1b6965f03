package quota

import (
	"math"
	"time"
)

// Seen is what a quota has done since it was first used, or was last at rest for
// 30 days. All of it only grows.
type Seen struct {
	Grants   int64 // charges granted
	Units    int64 // granted
	Refusals int64 // a waiter that asks too soon is refused each time
	Refunds  int64 // charges given back
	Refunded int64 // units given back
	Blocks   int64 // how often it was blocked

	// Snoozes are all grants by how often they were refused before, in their line.
	Snoozes   []Bucket
	SnoozeSum int64

	// Lateness are the grants of waiters by how long after their promise they came,
	// in seconds. One that was let in sooner was not late: 0.
	Lateness    []Bucket
	LatenessSum time.Duration
}

// Bucket is one step of a histogram.
type Bucket struct {
	UpTo  float64 // inclusive; +Inf is the last
	Count int64   // of all up to here, those in smaller buckets among them
}

var (
	snoozeBounds   = []float64{0, 1, 2, 3, 5, 10, math.Inf(1)}
	latenessBounds = []float64{0.01, 0.1, 1, 5, 30, math.Inf(1)}
)

// buckets sums up counts, one for each bound.
func buckets(bounds []float64, counts []int64) []Bucket {
	all, sum := make([]Bucket, len(bounds)), int64(0)
	for i, upTo := range bounds {
		sum += counts[i]
		all[i] = Bucket{UpTo: upTo, Count: sum}
	}
	return all
}

// seen reads the counters in the order in which seen.lua gives them. Scripts count
// waiters alone: who was granted at once is the rest.
func (r *reader) seen() Seen {
	s := Seen{Grants: r.int(), Units: r.int(), Refusals: r.int(), Refunds: r.int(), Refunded: r.int(), Blocks: r.int()}
	waited := r.ints(len(snoozeBounds) - 1)
	s.SnoozeSum = r.int()
	late := r.ints(len(latenessBounds))
	s.LatenessSum = time.Duration(r.int()) * time.Microsecond

	atOnce := s.Grants
	for _, n := range waited {
		atOnce -= n
	}
	s.Snoozes = buckets(snoozeBounds, append([]int64{max(atOnce, 0)}, waited...))
	s.Lateness = buckets(latenessBounds, late)
	return s
}

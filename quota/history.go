package quota

import (
	"context"
	"fmt"
	"time"
)

// Point is what a quota did in a quarter of an hour.
type Point struct {
	Start    time.Time // by Redis's clock, a whole quarter of UTC
	Granted  int64     // charges
	Units    int64     // granted
	Refused  int64     // charges
	Refunded int64     // units, whenever they were charged
}

const (
	quarter  = 15 * time.Minute
	quarters = 96
)

// History is a quota's past day: 96 quarters of an hour, the oldest first; the
// last is the present one, as yet.
func (l *Limiter) History(ctx context.Context, quota string) ([]Point, error) {
	b, err := l.find(quota)
	var reply []any
	if err == nil {
		reply, err = historyScript.Run(ctx, l.rdb, b.keys, l.args(b, 0)...).Slice()
	}
	var points []Point
	if err == nil {
		points, err = history(reply)
	}
	if err != nil {
		return nil, fmt.Errorf("quota: history %q: %w", quota, scriptError(err))
	}
	return points, nil
}

// tally is the counters at an instant.
type tally struct{ grants, units, refusals, back int64 }

func history(reply []any) ([]Point, error) {
	r := reader{rest: reply}
	now := r.int()
	counters := r.array()
	seen := counters.seen()
	list := r.array()
	begun := map[int64]tally{}
	for len(list.rest) > 0 && list.err == nil {
		var slot int64
		var t tally
		at, text := list.text(), list.text()
		if list.err != nil {
			break
		}
		if _, err := fmt.Sscan(at+" "+text, &slot, &t.grants, &t.units, &t.refusals, &t.back); err != nil {
			return nil, fmt.Errorf("%w: %q of quarter %q", errReply, text, at)
		}
		begun[slot] = t
	}
	for _, part := range []reader{r, counters, list} {
		if err := part.done(); err != nil {
			return nil, err
		}
	}
	return points(now/quarter.Microseconds(), begun, tally{seen.Grants, seen.Units, seen.Refusals, seen.Refunded}), nil
}

// points makes the series up to the quarter last from the counters as quarters
// began, and as they are now. A quarter in which nothing was counted is not in
// begun: so what was counted from one to the next belongs to the first.
func points(last int64, begun map[int64]tally, now tally) []Point {
	all := make([]Point, quarters)
	after := now
	for i := quarters - 1; i >= 0; i-- {
		slot := last - int64(quarters-1-i)
		all[i].Start = time.UnixMicro(slot * quarter.Microseconds()).UTC()
		t, ok := begun[slot]
		if !ok {
			continue
		}
		all[i].Granted, all[i].Units = after.grants-t.grants, after.units-t.units
		all[i].Refused, all[i].Refunded = after.refusals-t.refusals, after.back-t.back
		after = t
	}
	return all
}

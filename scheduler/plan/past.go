package plan

import (
	"fmt"
	"strconv"
	"time"

	"feedwarden/quota"
)

// Spent are units that a quota granted before the span, evenly between two instants.
type Spent struct {
	From, To time.Time
	Units    int64
}

// spentParts is in how many charges a Spent is laid out: of a quarter of an hour,
// one a minute.
const spentParts = 15

// seeded is a quota's ledger that knows its past. What was granted was granted:
// the past is charged under windows without a limit, which then get theirs.
func seeded(q quota.Config, past []Spent) (*quota.Ledger, error) {
	if len(past) == 0 {
		return quota.NewLedger(q)
	}
	open := q
	open.Reserve = 0
	open.Windows = append([]quota.Window(nil), q.Windows...)
	for i := range open.Windows {
		open.Windows[i].Limit = quota.MaxLimit
	}
	l, err := quota.NewLedger(open)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, p := range past {
		step := p.To.Sub(p.From) / spentParts
		for i := range int64(spentParts) {
			cost := p.Units*(i+1)/spentParts - p.Units*i/spentParts
			if cost <= 0 {
				continue
			}
			n++
			at := p.From.Add(time.Duration(i) * step)
			if _, err := l.Charge(at, quota.Request{ID: "past-" + strconv.Itoa(n), Cost: cost}); err != nil {
				return nil, fmt.Errorf("plan: the past of quota %q: %w", q.Name, err)
			}
		}
	}
	return l, l.Configure(q)
}

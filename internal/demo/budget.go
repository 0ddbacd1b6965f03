package demo

import "time"

// budget is one key's quota as the upstream counts it: an exact sliding
// window. A refusal costs nothing.
type budget struct {
	limit  int64
	window time.Duration // what is promised to the outside
	slack  time.Duration
	log    []spent
	peak   int64
}

type spent struct {
	at    time.Time
	units int64
}

// spend says whether the key may have units now. An entry counts while it is
// younger than the window less the slack.
func (b *budget) spend(now time.Time, units int64) bool {
	if b.used(now, b.window-b.slack)+units > b.limit {
		return false
	}
	b.log = append(b.log, spent{now, units})
	b.peak = max(b.peak, b.used(now, b.window))
	return true
}

// used counts what was spent within the last window, and forgets what no
// window reaches any more.
func (b *budget) used(now time.Time, window time.Duration) (n int64) {
	for len(b.log) > 0 && !b.log[0].at.Add(b.window).After(now) {
		b.log = b.log[1:]
	}
	for _, s := range b.log {
		if s.at.Add(window).After(now) {
			n += s.units
		}
	}
	return n
}

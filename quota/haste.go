package quota

import "sync/atomic"

// haste says whether a charge should try hot.lua first. Where that answers it is the
// shorter way; where it does not, a round trip was for nothing: while there is a line,
// say, or where an entry leaves a window at nearly every charge. So after a try that
// was for nothing, more and more charges go without one, until tries succeed again.
type haste struct {
	pause atomic.Int32 // how many charges go without a try after each
	left  atomic.Int32 // of them, now
}

// mostPause keeps what tries for nothing cost below a hundredth.
const mostPause = 63

// tries says whether this charge should.
func (h *haste) tries() bool {
	if h.left.Load() <= 0 {
		return true
	}
	h.left.Add(-1)
	return false
}

// tried notes how a try ended. Callers that come at once may count it as one.
func (h *haste) tried(answered bool) {
	next := nextPause(h.pause.Load(), answered)
	h.pause.Store(next)
	h.left.Store(next)
}

// nextPause doubles after a try for nothing, and loses an eighth after another: so it
// grows as long as fewer than five tries of six succeed, which is about what they are worth.
func nextPause(pause int32, answered bool) int32 {
	if answered {
		return pause - (pause+7)/8
	}
	return min(2*pause+1, mostPause)
}

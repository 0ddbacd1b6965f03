package scheduler

// outlook is what is known of a schedule when it is looked at. All times are
// Unix milliseconds.
type outlook struct {
	now  int64
	last int64 // every tick up to this instant is settled

	// No scheduler attended the schedule in gapFrom < t < gapTo.
	gapFrom, gapTo int64
	// Ticks in pauseFrom ≤ t < pauseTo do not run; pauseFrom 0 means never paused.
	pauseFrom, pauseTo int64

	catchUpCap int64 // how many missed ticks run at most
}

func (o outlook) paused(t int64) bool {
	return o.pauseFrom > 0 && o.pauseFrom <= t && t < o.pauseTo
}

// verdict is what to do with a schedule now.
type verdict int

const (
	wait verdict = iota // nothing before until
	skip                // settle instants up to upTo without a job, as asked for
	miss                // settle instants up to upTo without a job, as too late
	fire                // make the job of instant
)

type decision struct {
	verdict verdict
	until   int64 // wait
	upTo    int64 // skip, miss
	count   int64 // skip, miss
	instant int64 // fire
	misfire bool  // fire: nobody was up when it was due
}

// decide takes the oldest unsettled tick and says what becomes of it. The
// caller does it, moves last on, and asks again.
//
// A tick that was due while a scheduler attended is late at worst, and runs
// until within ends. One that was due in the gap is a misfire, and the policy
// decides.
func (p *planned) decide(o outlook) decision {
	instant, ok := p.after(o.last)
	if !ok {
		return decision{verdict: wait, until: never}
	}
	due := p.fireAt(instant)
	oldest := o.now - p.CatchUp.Within.Milliseconds()
	switch {
	case due > o.now:
		return decision{verdict: wait, until: due}
	case o.paused(o.now):
		upTo := p.firedBefore(o.now + 1)
		return p.settle(skip, o, upTo)
	case o.paused(instant):
		upTo, _ := p.before(o.pauseTo)
		return p.settle(skip, o, upTo)
	case due < oldest:
		upTo := p.firedBefore(oldest)
		return p.settle(miss, o, upTo)
	case due <= o.gapFrom || due >= o.gapTo:
		return decision{verdict: fire, instant: instant}
	}
	newest := p.firedBefore(o.gapTo)
	switch p.CatchUp.Policy {
	case CatchUpNone:
		return p.settle(miss, o, newest)
	case CatchUpLatest:
		if instant < newest {
			upTo, _ := p.before(newest)
			return p.settle(miss, o, upTo)
		}
	case CatchUpAll:
		if excess := p.count(o.last, newest) - o.catchUpCap; excess > 0 {
			upTo := newest
			for range o.catchUpCap {
				upTo, _ = p.before(upTo)
			}
			return p.settle(miss, o, upTo)
		}
	}
	return decision{verdict: fire, instant: instant, misfire: true}
}

func (p *planned) settle(v verdict, o outlook, upTo int64) decision {
	return decision{verdict: v, upTo: upTo, count: p.count(o.last, upTo)}
}

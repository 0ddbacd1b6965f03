package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// step is what was done about one schedule under one claim.
type step struct {
	item                              *item
	from, to                          int64 // last, as it was and as it is to be
	dispatched, skipped, missed, late int64
	instant, lateness                 int64  // of the dispatched tick
	hold                              string // why the next tick waits: "overlap", "full", "error" or ""
	rest                              int64  // for how long, ms
	ttl                               int64
	notes                             []note
}

// note is a log line to write once the step is settled.
type note struct {
	what     verdict
	instant  time.Time // of the tick that became a job; of ticks that were passed over, the last
	lateness int64     // ms
	misfire  bool
	count    int64
	reason   string
	job      string // the one that they would have overlapped
}

func (n note) write(log *slog.Logger, p *planned) {
	switch {
	case n.what == fire:
		log.Info("tick dispatched", "schedule", p.Name, "feed", p.Feed, "instant", n.instant, "lateness_ms", n.lateness, "misfire", n.misfire)
	case n.what == miss:
		log.Info("ticks missed", "schedule", p.Name, "feed", p.Feed, "count", n.count, "up_to", n.instant, "reason", n.reason)
	case n.job == "":
		log.Info("ticks skipped", "schedule", p.Name, "feed", p.Feed, "count", n.count, "up_to", n.instant, "reason", n.reason)
	default:
		log.Info("ticks skipped", "schedule", p.Name, "feed", p.Feed, "count", n.count, "up_to", n.instant, "reason", n.reason, "job", n.job)
	}
}

// outcome is a worker's report to the loop.
type outcome struct {
	items []*item
	fault bool          // Redis did not answer
	made  bool          // a job was made
	full  time.Duration // the queue is full for so long; 0 is not full
}

// view is what the loop knows and a worker needs.
type view struct {
	upFrom int64 // since when this dispatcher has been up without a stall
	peers  bool  // other dispatchers live
}

// work claims the next ticks of items, makes jobs of those that are to run,
// and settles them. A step that is not done by half the claim's time is given
// back, so that a process that was stopped on the way does not act on what it
// knew before.
func (d *Dispatcher) work(ctx context.Context, items []*item, v view) outcome {
	began := d.clock.Now().Round(0)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseMS/2*time.Millisecond)
	defer cancel()
	out := outcome{items: items}
	now, claims, err := d.store.claim(bounded, items, func(it *item) int64 { return max(it.since, v.upFrom) })
	if err != nil {
		return d.failed(out, err)
	}
	offset := now - d.clock.Now().UnixMilli()
	clock := func() int64 { return d.clock.Now().UnixMilli() + offset }
	fresh := func() bool {
		spent := d.clock.Now().Round(0).Sub(began)
		return ctx.Err() == nil && bounded.Err() == nil && spent < leaseMS/2*time.Millisecond
	}
	var steps []*step
	for i, it := range items {
		c := claims[i]
		switch c.code {
		case moved:
			it.last = c.last
			it.aim()
		case taken:
			it.look = now + max(50, min(c.wait, 250))
		case early:
			it.look = now + c.wait
		case claimed:
			o := outlook{
				now: clock(), last: it.last, gapFrom: c.gapFrom, gapTo: c.gapTo,
				pauseFrom: c.pauseFrom, pauseTo: c.pauseTo, catchUpCap: d.catchUpCap,
			}
			if o.pauseTo == 0 {
				o.pauseTo = never
			}
			if v.peers {
				o.gapTo = min(o.gapTo, o.now-slack.Milliseconds())
			}
			s := &step{item: it, from: it.last, to: it.last}
			if out.full == 0 && fresh() {
				out.full = d.settle(bounded, s, o, clock, fresh)
			} else {
				it.look = now + out.full.Milliseconds()
			}
			s.ttl = it.plan.keep(now)
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return out
	}
	// What was enqueued is settled even if the time is up or the dispatcher stops.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), leaseMS/2*time.Millisecond)
	defer cancelLast()
	done, err := d.store.advance(last, steps)
	if err != nil {
		return d.failed(out, err)
	}
	for i, s := range steps {
		out.made = out.made || s.dispatched > 0
		d.conclude(s, done[i])
	}
	return out
}

// failed leaves the items as they were: what they know of Redis still holds
// as far as anyone can tell, and the next claim says if not.
func (d *Dispatcher) failed(out outcome, err error) outcome {
	for _, it := range out.items {
		it.aim()
	}
	d.counters.faults.Add(1)
	d.log.Warn("scheduler cannot reach its state", "error", err, "schedules", len(out.items))
	out.fault = true
	return out
}

// settle decides about the ticks of one claimed schedule until one became a
// job or has to wait. It answers for how long the queue is full.
func (d *Dispatcher) settle(ctx context.Context, s *step, o outlook, clock func() int64, fresh func() bool) (full time.Duration) {
	p := s.item.plan
	hold := func(reason string, wait time.Duration) {
		s.hold, s.rest = reason, wait.Milliseconds()
		s.item.look = clock() + s.rest
	}
	for {
		o.last = s.to
		dec := p.decide(o)
		switch dec.verdict {
		case wait:
			s.item.fire, s.item.look = dec.until, dec.until
			return 0
		case skip:
			s.pass(dec, "paused", "")
			continue
		case miss:
			s.pass(dec, p.CatchUp.Policy, "")
			continue
		}
		tick := p.tick(dec.instant)
		known := false
		if p.Overlap != OverlapAllow {
			id, busy, err := d.enq.Busy(ctx, p.Feed)
			switch {
			case err != nil:
				d.fault(tick, err)
				hold("error", overlapPause)
				return 0
			case busy && id == tick.ID():
				known = true // enqueued before, by one that did not live to settle it
			case busy && dec.misfire && p.CatchUp.Policy == CatchUpAll:
				hold("overlap", overlapPause) // all of them run, one after the other
				return 0
			case busy && p.Overlap == OverlapQueueOne:
				newest := p.firedBefore(o.now + 1)
				if newest <= dec.instant {
					hold("overlap", overlapPause)
					return 0
				}
				upTo, _ := p.before(newest)
				s.pass(p.settle(skip, o, upTo), "overlap", "")
				continue
			case busy:
				s.pass(p.settle(skip, o, dec.instant), "overlap", id)
				continue
			}
		}
		if !known {
			if !fresh() {
				s.item.look = clock()
				return 0
			}
			if err := d.enq.EnqueueTick(ctx, tick); err != nil {
				var f *FullError
				if !errors.As(err, &f) {
					d.fault(tick, err)
					hold("error", overlapPause)
					return 0
				}
				d.counters.full.Add(1)
				full = f.rest()
				hold("full", full)
				return full
			}
		}
		s.to, s.instant, s.dispatched = dec.instant, dec.instant, 1
		s.lateness = max(0, clock()-tick.FireAt.UnixMilli())
		if s.lateness > lateAfter.Milliseconds() {
			s.late = 1
		}
		s.notes = append(s.notes, note{what: fire, instant: tick.Instant, lateness: s.lateness, misfire: dec.misfire})
		return 0
	}
}

// pass moves over ticks that make no job; job is what they would have overlapped,
// where it is known.
func (s *step) pass(dec decision, reason, job string) {
	if dec.verdict == skip {
		s.skipped += dec.count
	} else {
		s.missed += dec.count
	}
	s.notes = append(s.notes, note{what: dec.verdict, instant: time.UnixMilli(dec.upTo).UTC(), count: dec.count, reason: reason, job: job})
	s.to = dec.upTo
}

func (d *Dispatcher) fault(t Tick, err error) {
	d.counters.faults.Add(1)
	d.log.Warn("tick not enqueued", "schedule", t.Schedule, "feed", t.Feed, "instant", t.Instant, "error", err)
}

// conclude counts a step that was settled and aims at the next tick.
func (d *Dispatcher) conclude(s *step, done bool) {
	it := s.item
	if !done {
		// Another one settled it; the next claim says how far.
		return
	}
	if s.to != it.last {
		it.last = s.to
		look := it.look
		it.aim()
		if s.hold != "" {
			it.look = max(it.look, look)
		}
	}
	c := &d.counters
	c.dispatched.Add(s.dispatched)
	c.skipped.Add(s.skipped)
	c.missed.Add(s.missed)
	c.late.Add(s.late)
	c.lateness.Add(s.lateness)
	for _, n := range s.notes {
		n.write(d.log, it.plan)
	}
}

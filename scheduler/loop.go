package scheduler

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// loop is one Run: a heap of schedules, owned by one goroutine, and workers
// that take the due ones from it in batches.
type loop struct {
	d       *Dispatcher
	items   []*item // one for each schedule, in any order
	agenda  agenda
	edition int
	loading []*item // taken up, not yet known to Redis

	offset   int64 // Redis's clock minus ours, ms
	looked   int64 // when the loop last looked at our clock
	upFrom   int64 // since when it has done so without a stall, by Redis's clock
	lastBeat int64 // when Redis last answered a beat; 0 is never
	gate     int64 // nothing is launched before
	troubled bool  // the last beat failed
	full     bool  // the queue was full at the last answer

	live []string
	seat int // our place in live

	outcomes chan outcome
	underWay int
	batch    int
	byHand   sync.WaitGroup
	requests chan struct{} // holds one entry while requests are served
}

// One claim takes so many schedules: few for a short way to the queue, more
// when many are due.
const (
	smallestBatch = 4
	largestBatch  = 64
)

func newLoop(d *Dispatcher) *loop {
	return &loop{
		d: d, edition: -1, outcomes: make(chan outcome, d.workers),
		batch: smallestBatch, requests: make(chan struct{}, 1),
	}
}

// now is the time that decides what is due: the given clock, or Redis's as
// far as the last beat told.
func (l *loop) now() int64 { return l.d.clock.Now().UnixMilli() + l.offset }

func (l *loop) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.pass(ctx)
		select {
		case <-ctx.Done():
		case out := <-l.outcomes:
			l.take(out)
			for len(l.outcomes) > 0 {
				l.take(<-l.outcomes)
			}
		case <-l.d.wake:
		case <-l.d.clock.Alarm(l.sleep()):
		}
	}
	for l.underWay > 0 {
		l.take(<-l.outcomes)
	}
	l.byHand.Wait()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.d.store.leave(bounded) // a beat that stays is gone in three seconds
}

// pass reads the clock and does what is due.
func (l *loop) pass(ctx context.Context) {
	local := l.d.clock.Now().UnixMilli()
	if gap := local - l.looked; l.looked > 0 && (gap > stall.Milliseconds() || gap < -stall.Milliseconds()) {
		l.d.log.Warn("scheduler clock jumped", "by_ms", gap)
		l.upFrom = local + l.offset
	}
	l.looked = local
	if gap := l.now() - l.lastBeat; gap >= nap.Milliseconds() || gap < 0 {
		l.beat(ctx)
	}
	// Nothing is done on a view of the world that Redis has not confirmed lately, or that a stall has aged.
	now := l.now()
	if l.lastBeat == 0 || l.troubled || now < l.gate || now-l.offset-local > stall.Milliseconds() {
		return
	}
	l.configure()
	if l.load(ctx) && l.d.clock.Now().UnixMilli()-local <= stall.Milliseconds() {
		l.launch(ctx)
	}
}

// sleep is until when there is nothing to do, a nap at most.
func (l *loop) sleep() time.Time {
	now := l.looked + l.offset // what came due since then is not overslept
	until := now + nap.Milliseconds()
	if l.troubled || now < l.gate {
		until = min(until, max(l.gate, now+1))
	} else if len(l.agenda) > 0 && l.underWay < l.d.workers {
		until = min(until, max(l.agenda[0].look, now+grain.Milliseconds()))
	}
	return time.UnixMilli(until - l.offset)
}

// hold keeps the loop from Redis for a while.
func (l *loop) hold(d time.Duration) { l.gate = max(l.gate, l.now()+ms(d)) }

func (l *loop) beat(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, 2*nap)
	defer cancel()
	sent := l.d.clock.Now()
	now, requests, live, err := l.d.store.beat(bounded)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		l.d.counters.faults.Add(1)
		if !l.troubled {
			l.d.log.Warn("scheduler cannot reach redis", "error", err)
		}
		l.troubled = true
		l.hold(nap / 4)
		return
	}
	if l.troubled {
		l.d.log.Info("scheduler reaches redis again")
	}
	l.troubled = false
	if !l.d.given {
		// The answer was made between asking and now.
		l.offset = now - sent.Add(l.d.clock.Now().Sub(sent)/2).UnixMilli()
	}
	first := l.lastBeat == 0
	l.lastBeat = l.now()
	if first || l.upFrom > l.lastBeat {
		l.upFrom = l.lastBeat
	}
	l.live = live
	for i, name := range live {
		if name == l.d.store.owner {
			l.seat = i
		}
	}
	l.d.counters.peers.Store(int64(len(live)))
	if requests > 0 {
		l.serve(ctx)
	}
}

// serve works on requests by hand beside the loop, one round at a time.
func (l *loop) serve(ctx context.Context) {
	select {
	case l.requests <- struct{}{}:
	default:
		return
	}
	l.byHand.Go(func() {
		defer func() { <-l.requests }()
		l.d.serveRequests(ctx)
	})
}

// configure takes up what Reload brought.
func (l *loop) configure() {
	plans, edition := l.d.snapshot()
	if edition == l.edition {
		return
	}
	l.edition = edition
	held := make(map[string]bool, len(l.items))
	items := make([]*item, 0, len(plans))
	for _, it := range l.items {
		p := plans[it.plan.Name]
		if p == nil || p.revision != it.plan.revision {
			it.gone = true
			if it.index >= 0 {
				heap.Remove(&l.agenda, it.index)
			}
			continue
		}
		held[p.Name] = true
		items = append(items, it)
		if it.index >= 0 {
			it.plan = p
			it.aim()
			heap.Fix(&l.agenda, it.index)
		} else {
			it.next = p
		}
	}
	for name, p := range plans {
		if !held[name] {
			it := &item{plan: p, index: -1}
			items = append(items, it)
			l.loading = append(l.loading, it)
		}
	}
	l.items = items
	l.d.log.Info("schedules configured", "schedules", len(plans), "taken_up", len(l.loading))
}

// load tells Redis of the schedules that were taken up.
func (l *loop) load(ctx context.Context) bool {
	for len(l.loading) > 0 {
		batch := l.loading[:min(len(l.loading), largestBatch)]
		bounded, cancel := context.WithTimeout(ctx, 2*nap)
		now, last, err := l.d.store.load(bounded, batch, l.now())
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				l.d.counters.faults.Add(1)
				l.d.log.Warn("scheduler cannot take up schedules", "error", err)
				l.hold(nap / 2)
			}
			return false
		}
		for i, it := range batch {
			if it.gone {
				continue
			}
			if it.next != nil {
				it.plan, it.next = it.next, nil
			}
			it.last, it.since = last[i], now
			it.aim()
			heap.Push(&l.agenda, it)
		}
		l.loading = l.loading[len(batch):]
	}
	l.loading = nil
	return true
}

// launch hands due schedules to workers. A tick is left to the dispatcher
// whose turn it is for a moment, which only saves work: claims decide.
func (l *loop) launch(ctx context.Context) {
	now := l.now()
	v := view{upFrom: l.upFrom, peers: len(l.live) > 1}
	launched := false
	for l.underWay < l.d.workers {
		var items []*item
		for len(items) < l.batch && len(l.agenda) > 0 && l.agenda[0].look <= now {
			it := l.agenda[0]
			if n := uint64(len(l.live)); n > 1 && it.plan.hash%n != uint64(l.seat) && it.look == it.fire && now < it.fire+handover.Milliseconds() {
				it.look = it.fire + handover.Milliseconds()
				heap.Fix(&l.agenda, 0)
				continue
			}
			items = append(items, heap.Pop(&l.agenda).(*item))
		}
		if len(items) == 0 {
			break
		}
		launched = true
		l.underWay++
		go func() { l.outcomes <- l.d.work(ctx, items, v) }()
	}
	switch {
	case launched && l.underWay == l.d.workers:
		l.batch = min(largestBatch, l.batch*2)
	case l.underWay < l.d.workers:
		l.batch = max(smallestBatch, l.batch/2)
	}
}

// take puts what a worker had back.
func (l *loop) take(out outcome) {
	l.underWay--
	if out.fault {
		l.hold(nap / 4)
	}
	if out.full > 0 {
		l.hold(out.full)
		l.batch = smallestBatch
		if !l.full {
			l.d.log.Warn("queue full, ticks wait", "retry_after_ms", out.full.Milliseconds())
		}
		l.full = true
	} else if out.made && l.full {
		l.full = false
		l.d.log.Info("queue has room again")
	}
	for _, it := range out.items {
		if it.gone {
			continue
		}
		if it.next != nil {
			it.plan, it.next = it.next, nil
			it.aim()
		}
		heap.Push(&l.agenda, it)
	}
}

package plan

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"feedwarden/quota"
	"feedwarden/scheduler"
)

// short is a wait that is none: the job is done within its second.
const short = int64(time.Second / time.Microsecond)

// simulation runs the ticks of one quota's feeds through its ledger. Instants
// are in Unix µs.
type simulation struct {
	ledger   *quota.Ledger // nil: nothing is refused
	courses  []*course
	tracks   []track
	from, to int64
	calm     bool // stop at the first tick that does not run at once

	ticks  []due
	wakes  wakes
	asked  int64   // charges so far; each has an ID of its own
	grants []grant // in from ≤ t < to
	dry    dryness
	storm  bool  // calm, and something did not run at once
	slot   int64 // length of a slot; 0: none are kept
}

type due struct {
	at   int64
	feed int
}

type grant struct{ at, cost int64 }

// track is what became of one feed.
type track struct {
	live    int   // jobs that have not ended
	held    int64 // the tick that waits for the end of one, by queue-one; 0: none
	version int64 // when the newest version came
	worst   span  // the longest from version to version
	skipped int
	missed  int
	failed  int
	expired int
	granted int64   // units
	slots   []int64 // of them, by the slots of the span
	refused []Wait
}

type span struct{ from, to int64 }

func (s span) length() int64 { return s.to - s.from }

// job is one tick that runs.
type job struct {
	feed    int
	due     int64
	since   int64 // of the first refusal; 0: none
	page    int
	id      string
	wake    int64
	order   int64
	expires int64 // 0: never
}

func newSimulation(l *quota.Ledger, courses []*course, from, to time.Time) *simulation {
	s := &simulation{ledger: l, courses: courses, tracks: make([]track, len(courses)), from: from.UnixMicro(), to: to.UnixMicro()}
	n := 0
	for _, k := range courses {
		n += len(k.ticks)
	}
	s.ticks = make([]due, 0, n)
	for i, k := range courses {
		s.tracks[i].version = cmp.Or(k.before, s.from)
		for _, t := range k.ticks {
			s.ticks = append(s.ticks, due{t, i})
		}
	}
	slices.SortFunc(s.ticks, func(a, b due) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.feed, b.feed)) })
	return s
}

// run goes through the span, and then lets those who wait at its end have what
// they are promised.
func (s *simulation) run(ctx context.Context) error {
	for i := 0; i < len(s.ticks) || len(s.wakes) > 0; {
		if s.asked%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("plan: %w", context.Cause(ctx))
		}
		if s.storm {
			return nil
		}
		if len(s.wakes) > 0 && (i == len(s.ticks) || s.wakes[0].wake <= s.ticks[i].at) {
			j := heap.Pop(&s.wakes).(*job)
			if err := s.ask(j, j.wake); err != nil {
				return err
			}
			continue
		}
		t := s.ticks[i]
		i++
		if err := s.tick(t.feed, t.at); err != nil {
			return err
		}
	}
	s.dry.end(s.dry.promised) // nobody waited for it
	for i, k := range s.courses {
		s.age(i, k.after)
	}
	return nil
}

// tick is the scheduler's part: a job, or none by the feed's overlap.
func (s *simulation) tick(feed int, at int64) error {
	t := &s.tracks[feed]
	if t.live > 0 {
		switch s.courses[feed].Tick.Overlap {
		case scheduler.OverlapSkip:
			t.skipped++
			s.storm = s.storm || s.calm
			return nil
		case scheduler.OverlapQueueOne:
			if t.held != 0 {
				t.skipped++
			}
			t.held = at
			s.storm = s.storm || s.calm
			return nil
		}
	}
	return s.start(feed, at, at)
}

func (s *simulation) start(feed int, due, now int64) error {
	j := &job{feed: feed, due: due}
	if e := s.courses[feed].Expires.Microseconds(); e > 0 {
		j.expires = now + e
	}
	s.tracks[feed].live++
	return s.ask(j, now)
}

// ask is the worker's part: it charges page after page until one is refused.
func (s *simulation) ask(j *job, now int64) error {
	k, t := s.courses[j.feed], &s.tracks[j.feed]
	if j.expires > 0 && now >= j.expires && j.page == 0 {
		t.expired++
		s.ledger.Leave(j.id)
		return s.end(j, now, Expired)
	}
	for ; j.page < k.Pages; j.page++ {
		if s.ledger == nil {
			s.take(t, now, k.Cost)
			continue
		}
		if j.id == "" {
			s.asked++
			j.id = strconv.FormatInt(s.asked, 10)
		}
		d, err := s.ledger.Charge(time.UnixMicro(now), quota.Request{ID: j.id, Cost: k.Cost})
		if err != nil {
			return fmt.Errorf("plan: feed %q: %w", k.Name, err)
		}
		if !d.Granted {
			return s.refuse(j, now, d)
		}
		j.id = ""
		s.take(t, now, k.Cost)
	}
	s.age(j.feed, s.arrived(j, now))
	t.version = s.arrived(j, now)
	return s.end(j, now, Granted)
}

// arrived is when a job's version came: waits that are none are left out.
func (s *simulation) arrived(j *job, now int64) int64 {
	if now-j.due < short {
		return j.due
	}
	return now
}

func (s *simulation) take(t *track, now, cost int64) {
	if now < s.to {
		t.granted += cost
		if s.slot > 0 {
			if t.slots == nil {
				t.slots = make([]int64, (s.to-s.from+s.slot-1)/s.slot)
			}
			t.slots[(now-s.from)/s.slot] += cost
		}
		s.grants = append(s.grants, grant{now, cost})
	}
	s.dry.end(now)
}

func (s *simulation) refuse(j *job, now int64, d quota.Decision) error {
	k, t := s.courses[j.feed], &s.tracks[j.feed]
	j.wake = now + d.RetryAfter.Microseconds()
	if j.since == 0 {
		j.since = now
	}
	s.dry.begin(now, j.wake)
	s.storm = s.storm || s.calm && j.wake-j.due >= short
	if k.MaxSnooze > 0 && j.wake-j.since > k.MaxSnooze.Microseconds() {
		t.failed++
		s.ledger.Leave(j.id)
		return s.end(j, now, Failed)
	}
	s.asked++
	j.order = s.asked
	heap.Push(&s.wakes, j)
	return nil
}

// end closes a job; a tick that was held for it runs now.
func (s *simulation) end(j *job, now int64, how End) error {
	k, t := s.courses[j.feed], &s.tracks[j.feed]
	if how != Granted || now-j.due >= short {
		until := now
		if how == Failed {
			until = j.wake
		}
		t.refused = append(t.refused, Wait{Tick: instant(j.due), Until: instant(until), End: how})
		s.storm = s.storm || s.calm
	}
	t.live--
	held := t.held
	if held == 0 {
		return nil
	}
	t.held = 0
	if now-held > k.within {
		t.missed++
		return nil
	}
	return s.start(j.feed, held, now)
}

// age notes how old the newest version is when the next one comes.
func (s *simulation) age(feed int, at int64) {
	t := &s.tracks[feed]
	if g := (span{t.version, at}); g.length() > t.worst.length() {
		t.worst = g
	}
}

func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// dryness is when nothing was granted though somebody asked.
type dryness struct {
	since          int64 // 0: units are to be had
	promised       int64 // to the first who was refused
	times          int
	first, longest span
}

func (d *dryness) begin(now, promised int64) {
	if d.since == 0 {
		d.since, d.promised = now, promised
	}
}

func (d *dryness) end(now int64) {
	if d.since == 0 {
		return
	}
	g := span{d.since, now}
	d.since = 0
	if g.length() < short {
		return
	}
	if d.times++; d.times == 1 {
		d.first = g
	}
	if g.length() > d.longest.length() {
		d.longest = g
	}
}

// wakes is a heap of those who sleep, the next to wake on top.
type wakes []*job

func (w wakes) Len() int { return len(w) }
func (w wakes) Less(i, j int) bool {
	return w[i].wake < w[j].wake || w[i].wake == w[j].wake && w[i].order < w[j].order
}
func (w wakes) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push is for container/heap.
func (w *wakes) Push(x any) { *w = append(*w, x.(*job)) }

// Pop is for container/heap.
func (w *wakes) Pop() any {
	old := *w
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*w = old[:len(old)-1]
	return j
}

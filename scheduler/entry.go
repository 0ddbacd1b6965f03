package scheduler

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"strconv"
	"time"
)

// What an Entry's CatchUp.Policy and Overlap may be.
const (
	CatchUpNone   = "none"   // what was missed is counted
	CatchUpLatest = "latest" // the last missed tick runs
	CatchUpAll    = "all"    // every missed tick runs, in order

	OverlapSkip     = "skip"      // the tick is counted as skipped
	OverlapQueueOne = "queue-one" // the newest such tick waits for the end
	OverlapAllow    = "allow"     // the tick runs beside the job
)

// DefaultWithin is how old a tick may be and still run, where an Entry says
// nothing.
const DefaultWithin = time.Hour

// Entry is one schedule as configured.
type Entry struct {
	Name       string // unique
	Expression string
	Timezone   string // a name of the tz database; "" is UTC
	Feed       string // "" is Name

	// Jitter delays each tick by less than this, by a hash of schedule and
	// instant; never up to the next tick.
	Jitter time.Duration
	// Phase delays every tick by this much; an @every's instants move by
	// its whole seconds. Where it is 0, Spread gives a phase below itself by
	// a hash of the name. PhaseOf lays out feeds whose number is known.
	Phase, Spread time.Duration

	CatchUp CatchUp
	Overlap string // "" is OverlapSkip
}

// CatchUp says what becomes of ticks whose instants passed with no scheduler
// up.
type CatchUp struct {
	Policy string        // "" is CatchUpLatest
	Within time.Duration // how old a tick may be and still run, late for whatever reason; 0 is DefaultWithin
}

// EntryError is one fault of one Entry.
type EntryError struct {
	Name  string
	Field string // the Entry's field in lower case, such as "timezone"
	Err   error
}

func (e *EntryError) Error() string {
	if expr := (*ExpressionError)(nil); errors.As(e.Err, &expr) {
		return fmt.Sprintf("scheduler: schedule %q: %v", e.Name, e.Err) // it names the expression itself
	}
	return fmt.Sprintf("scheduler: schedule %q: %s: %v", e.Name, e.Field, e.Err)
}

func (e *EntryError) Unwrap() error { return e.Err }

// PhaseOf lays count feeds evenly over spread: the phase of number index.
func PhaseOf(spread time.Duration, index, count int) time.Duration {
	if count < 1 || index < 0 || spread < 0 {
		return 0
	}
	// Of a long spread and many feeds the product does not fit into 64 bits.
	high, low := bits.Mul64(uint64(spread), uint64(index%count))
	phase, _ := bits.Div64(high, low, uint64(count))
	return time.Duration(phase).Truncate(time.Millisecond)
}

// planned is an Entry that was checked and read.
type planned struct {
	Entry
	schedule *Schedule
	delay    int64  // the phase, as far as it is not in the instants, in milliseconds
	revision uint64 // changes when the instants do
	hash     uint64 // of the name
}

// plan checks all entries and gives every fault at once, joined, each an
// *EntryError.
func plan(entries []Entry) (map[string]*planned, error) {
	type text struct{ expression, zone string }
	type shifted struct {
		*Schedule
		phase int64
	}
	// Entries of one expression share what was read of it.
	read := make(map[text]*Schedule)
	moved := make(map[shifted]*Schedule)
	plans := make(map[string]*planned, len(entries))
	var faults []error
	for i := range entries {
		e := entries[i]
		fail := func(field string, err error) {
			faults = append(faults, &EntryError{Name: e.Name, Field: field, Err: err})
		}
		e.check(fail)
		if plans[e.Name] != nil {
			fail("name", errors.New("it is given twice; each schedule has a name of its own"))
			continue
		}
		key := text{e.Expression, e.Timezone}
		s := read[key]
		if s == nil {
			zone, err := LoadZone(e.Timezone)
			if err != nil {
				fail("timezone", err)
			}
			if s, err = Parse(e.Expression, zone); err != nil {
				fail("expression", err)
				continue
			}
			read[key] = s
		}
		p := e.plan(s)
		same := shifted{s, p.schedule.phase}
		if moved[same] == nil {
			moved[same] = p.schedule
		}
		p.schedule = moved[same]
		plans[e.Name] = p
	}
	return plans, errors.Join(faults...)
}

// check fills in what is empty and reports what is wrong.
func (e *Entry) check(fail func(field string, err error)) {
	if e.Name == "" {
		fail("name", errors.New("it is empty"))
	}
	if e.Feed == "" {
		e.Feed = e.Name
	}
	if e.Overlap == "" {
		e.Overlap = OverlapSkip
	}
	if e.CatchUp.Policy == "" {
		e.CatchUp.Policy = CatchUpLatest
	}
	if e.CatchUp.Within == 0 {
		e.CatchUp.Within = DefaultWithin
	}
	switch e.CatchUp.Policy {
	case CatchUpNone, CatchUpLatest, CatchUpAll:
	default:
		fail("catch_up", fmt.Errorf("policy %q is not known; none, latest or all is wanted", e.CatchUp.Policy))
	}
	switch e.Overlap {
	case OverlapSkip, OverlapQueueOne, OverlapAllow:
	default:
		fail("overlap", fmt.Errorf("%q is not known; skip, queue-one or allow is wanted", e.Overlap))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"jitter", e.Jitter}, {"phase", e.Phase}, {"spread", e.Spread}, {"catch_up", e.CatchUp.Within}} {
		if d.value < 0 {
			fail(d.field, fmt.Errorf("%v is below 0", d.value))
		}
	}
}

func (e *Entry) plan(s *Schedule) *planned {
	p := &planned{Entry: *e, hash: hashOf(e.Name)}
	p.delay = e.Phase.Milliseconds()
	if room := e.Spread.Milliseconds(); e.Phase == 0 && room > 0 {
		p.delay = int64(p.hash % uint64(room))
	}
	p.schedule = s.WithPhase(time.Duration(p.delay) * time.Millisecond)
	if s.every > 0 {
		p.delay %= 1000 // its instants have moved by the whole seconds
	}
	p.revision = hashOf(p.schedule.text, p.schedule.loc.String(), strconv.FormatInt(p.schedule.phase, 10))
	return p
}

// hashOf is the same on every replica and of every release. The last steps
// spread FNV's bits, whose low ones are weak for short texts.
func hashOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, t := range texts {
		_, _ = h.Write([]byte(t))
		_, _ = h.Write([]byte{0})
	}
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// after is the first nominal instant after ms; all in Unix milliseconds.
func (p *planned) after(ms int64) (int64, bool) {
	u, _, ok := p.schedule.next((ms-floorMod(ms, 1000))/1000 + 1)
	return u * 1000, ok
}

// before is the last nominal instant before ms.
func (p *planned) before(ms int64) (int64, bool) {
	u, _, ok := p.schedule.previous((ms - 1 - floorMod(ms-1, 1000)) / 1000)
	return u * 1000, ok
}

// fireAt is when the tick of a nominal instant is due. It grows with the
// instant, since jitter stays below the distance to the next.
func (p *planned) fireAt(instant int64) int64 {
	at := instant + p.delay
	room := p.Jitter.Milliseconds()
	if room <= 0 {
		return at
	}
	if next, ok := p.after(instant); ok {
		room = min(room, next-instant)
	}
	return at + int64(hashOf(p.Name, strconv.FormatInt(instant, 10))%uint64(room))
}

// firedBefore is the last nominal instant that was due before ms. There must
// be one.
func (p *planned) firedBefore(ms int64) int64 {
	instant, ok := p.before(ms - p.delay)
	if ok && p.fireAt(instant) >= ms {
		instant, _ = p.before(instant)
	}
	return instant
}

// mostCounted bounds the counting of passed ticks.
const mostCounted = 100_000

// count is the number of instants in after < t ≤ upTo, at most mostCounted.
func (p *planned) count(after, upTo int64) int64 {
	if every := p.schedule.every * 1000; every > 0 {
		first, _ := p.after(after)
		return min(mostCounted, max(0, (upTo-first+every)/every))
	}
	n := int64(0)
	for t, ok := p.after(after); ok && t <= upTo && n < mostCounted; t, ok = p.after(t) {
		n++
	}
	return n
}

func (p *planned) tick(instant int64) Tick {
	return Tick{
		Schedule: p.Name, Feed: p.Feed,
		Instant: time.UnixMilli(instant).UTC(), FireAt: time.UnixMilli(p.fireAt(instant)).UTC(),
	}
}

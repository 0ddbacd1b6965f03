package quota

import (
	"slices"
	"sort"
	"time"
)

// sheet is a quota's whole state, with the sums that a decision asks for:
// running totals in log and line, so that each is a difference of two reads, and
// an instant is found by halving. Instants are in µs.
type sheet struct {
	log    []entry          // by stamp, which rise
	total  int64            // units of the log, since it began
	ids    map[string]int64 // ID → stamp of its newest charge
	lines  [2]line          // by class
	closed int64            // blocked until; 0 when open
	days   map[*time.Location][]calendarDate
}

// entry is a grant. Refunded, it counts nothing and its ID is free again.
type entry struct {
	id          string
	cost, stamp int64
	before      int64 // units of all entries before it, since the log began
	refunded    bool
}

// line is those of a class who wait, in order of asking.
type line struct {
	places []place
	ids    map[string]int64 // ID → seq
	seq    int64            // of the last who joined
	total  int64            // units of all places, and of those that left in front
	due    int64            // no deadline is earlier
}

// place is a waiter.
type place struct {
	id                       string
	cost                     int64
	promise, deadline, since int64
	follows                  int64 // what those behind count on: it rises, and is the promise, but where somebody before sleeps
	seq                      int64
	before                   int64 // units of all places before it, as in line.total
}

// calendarDate is a day of a zone: from ≤ t < to.
type calendarDate struct{ from, to int64 }

func (s *sheet) last() int64 {
	if len(s.log) == 0 {
		return 0
	}
	return s.log[len(s.log)-1].stamp
}

// find is the index of the first entry at or after stamp.
func (s *sheet) find(stamp int64) int {
	return sort.Search(len(s.log), func(i int) bool { return s.log[i].stamp >= stamp })
}

// upTo is what the entries before index i come to.
func (s *sheet) upTo(i int) int64 {
	if i < len(s.log) {
		return s.log[i].before
	}
	return s.total
}

// remembered is the charge of an ID, or nil.
func (s *sheet) remembered(c Config, now int64, id string) *entry {
	stamp, ok := s.ids[id]
	if !ok || stamp+c.keep().Microseconds() <= now {
		return nil
	}
	if e := &s.log[s.find(stamp)]; !e.refunded {
		return e
	}
	return nil
}

// grant writes an entry after all others.
func (s *sheet) grant(id string, cost, stamp int64) {
	if s.ids == nil {
		s.ids = map[string]int64{}
	}
	s.log = append(s.log, entry{id: id, cost: cost, stamp: stamp, before: s.total})
	s.ids[id] = stamp
	s.total += cost
}

// refund takes an entry out of the sums.
func (s *sheet) refund(e *entry) {
	e.refunded = true
	s.total -= e.cost
	for i := s.find(e.stamp + 1); i < len(s.log); i++ {
		s.log[i].before -= e.cost
	}
}

// trim forgets the entries up to an instant, but never the last.
func (s *sheet) trim(upTo int64) {
	n := 0
	for ; n < len(s.log)-1 && s.log[n].stamp <= upTo; n++ {
		if e := &s.log[n]; s.ids[e.id] == e.stamp {
			delete(s.ids, e.id)
		}
	}
	s.log = s.log[n:]
}

// uses is what each window counts at now.
func (s *sheet) uses(c Config, now int64) []Use {
	uses := make([]Use, len(c.Windows))
	for i, w := range c.Windows {
		start, length := s.span(w, now)
		uses[i] = Use{
			Limit: w.Limit, Per: time.Duration(length) * time.Microsecond, Calendar: w.Calendar, Location: w.Location,
			Used: s.total - s.upTo(s.find(start)),
		}
	}
	return uses
}

// ahead is how many of each class are granted before a waiter: Interactive ones
// first.
type ahead struct{ interactive, scheduled int }

func (s *sheet) waiting(a ahead) int64 {
	return s.lines[Interactive].units(a.interactive) + s.lines[Scheduled].units(a.scheduled)
}

// room is the instant at which a window has room for cost, once those ahead
// have been granted, each at its promise; 0 when it has it now.
func (s *sheet) room(w Window, now int64, a ahead, cost int64) int64 {
	start, _ := s.span(w, now)
	first := s.find(start)
	base := s.upTo(first)
	logged := s.total - base
	need := logged + s.waiting(a) + cost - w.Limit
	switch {
	case need <= 0:
		return 0
	case need <= logged:
		i := sort.Search(len(s.log)-first, func(i int) bool { return s.upTo(first+i+1)-base >= need })
		return s.release(w, s.log[first+i].stamp)
	}
	need -= logged
	if units := s.lines[Interactive].units(a.interactive); need > units {
		need -= units
		return s.release(w, max(now, s.lines[Scheduled].reaching(need).follows))
	}
	return s.release(w, max(now, s.lines[Interactive].reaching(need).follows))
}

// span is the first stamp that a window counts at now, and its length.
func (s *sheet) span(w Window, now int64) (start, length int64) {
	if w.Calendar == "" {
		per := w.Per.Microseconds()
		return now - per + 1, per
	}
	d := s.date(w.Location, now)
	return d.from, d.to - d.from
}

// release is the instant at which an entry leaves a window.
func (s *sheet) release(w Window, stamp int64) int64 {
	if w.Calendar == "" {
		return stamp + w.Per.Microseconds()
	}
	return s.date(w.Location, stamp).to
}

// mostDates bounds the dates that are kept of a zone.
const mostDates = 1000

// date is the day of a zone that an instant lies in. What was worked out is kept.
func (s *sheet) date(zone *time.Location, at int64) calendarDate {
	known := s.days[zone]
	i := sort.Search(len(known), func(i int) bool { return known[i].to > at })
	if i < len(known) && known[i].from <= at {
		return known[i]
	}
	edges := dayEdges(zone, instant(at), 0, 2)
	d := calendarDate{edges[0].UnixMicro(), edges[1].UnixMicro()}
	if len(known) >= mostDates {
		known, i = nil, 0
	}
	if s.days == nil {
		s.days = map[*time.Location][]calendarDate{}
	}
	s.days[zone] = slices.Insert(known, i, d)
	return d
}

func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// units is what the first n places come to.
func (l *line) units(n int) int64 {
	switch {
	case n == 0:
		return 0
	case n < len(l.places):
		return l.places[n].before - l.places[0].before
	}
	return l.total - l.places[0].before
}

// reaching is the place with which the units of the line come to n.
func (l *line) reaching(n int64) *place {
	return &l.places[sort.Search(len(l.places), func(i int) bool { return l.units(i+1) >= n })]
}

// find is the index of an ID's place, or -1.
func (l *line) find(id string) int {
	seq, ok := l.ids[id]
	if !ok {
		return -1
	}
	return sort.Search(len(l.places), func(i int) bool { return l.places[i].seq >= seq })
}

// join puts a waiter at the end.
func (l *line) join(p place) {
	if l.ids == nil {
		l.ids = map[string]int64{}
	}
	l.seq++
	p.seq, p.before = l.seq, l.total
	l.ids[p.id] = p.seq
	l.total += p.cost
	l.places = append(l.places, p)
	l.expect(p.deadline)
}

func (l *line) expect(deadline int64) {
	if len(l.places) == 1 || deadline < l.due {
		l.due = deadline
	}
}

// promise gives a place another promise.
func (l *line) promise(i int, p *place) {
	l.places[i].promise, l.places[i].follows, l.places[i].deadline = p.promise, p.follows, p.deadline
	l.expect(p.deadline)
}

// leave takes a place out. The first leaves in constant time.
func (l *line) leave(i int) {
	p := l.places[i]
	delete(l.ids, p.id)
	if i == 0 {
		l.places = l.places[1:]
		return
	}
	l.places = slices.Delete(l.places, i, i+1)
	l.total -= p.cost
	for j := i; j < len(l.places); j++ {
		l.places[j].before -= p.cost
	}
}

// sweep drops those whose deadline has passed.
func (l *line) sweep(now int64) {
	if len(l.places) == 0 || l.due > now {
		return
	}
	kept := l.places[:0]
	l.total, l.due = 0, 0
	for _, p := range l.places {
		if p.deadline <= now {
			delete(l.ids, p.id)
			continue
		}
		p.before = l.total
		l.total += p.cost
		if len(kept) == 0 || p.deadline < l.due {
			l.due = p.deadline
		}
		kept = append(kept, p)
	}
	l.places = kept
}

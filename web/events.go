package web

import (
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Pages hear of changes by server-sent events. One loop reads Redis for all of
// them, only while somebody listens, and says which parts of what is shown have
// changed; a page then fetches itself again and swaps what differs.
const (
	eventType = "text/event-stream"
	// eventsAtOnce bounds the listeners of one server: each is a connection that stays.
	// Where all places are taken, a client that has fewer than another gets one of the
	// other's: nobody can hold them all, and who is alone may.
	eventsAtOnce = 100
	// eventsEvery is how often the loop looks.
	eventsEvery = 2 * time.Second
	// eventsIdle is how long a page may stand still: ages on it go on though nothing changes.
	eventsIdle = 20 * time.Second
	// eventsLife is how long a stream lasts. The browser then comes again, and so
	// shows its login again.
	eventsLife = 10 * time.Minute
	// eventsRetry is when a browser comes again.
	eventsRetry = 3 * time.Second
)

// parts are what a page may show of the world.
var parts = []string{"feeds", "quotas", "pools", "schedules", "jobs"}

var allParts = strings.Join(parts, " ")

// events tells listeners what has changed.
type events struct {
	shots *snapshots
	every time.Duration
	idle  time.Duration
	life  time.Duration
	most  int

	mu        sync.Mutex
	listeners map[*listener]bool
	come      int64              // how many have come, ever
	cancel    context.CancelFunc // ends the loop; nil while there is none
	done      chan struct{}
}

// listener is one page. What it has not heard yet adds up: a slow one misses no
// change, and costs no more than a set of names.
type listener struct {
	client  string
	came    int64         // who came before has a lower one
	sent    chan struct{} // closed: its place is another's
	wake    chan struct{} // holds one
	changed map[string]bool
}

func newEvents(shots *snapshots) *events {
	return &events{shots: shots, every: eventsEvery, idle: eventsIdle, life: eventsLife, most: eventsAtOnce, listeners: map[*listener]bool{}}
}

// listen adds a listener; nil where there is no place for it, with how many its
// client has.
func (e *events) listen(client string) (*listener, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.listeners) >= e.most {
		last, own := placeFor(e.listeners, client)
		if last == nil {
			return nil, own
		}
		close(last.sent)
		delete(e.listeners, last)
	}
	e.come++
	l := &listener{client: client, came: e.come, sent: make(chan struct{}), wake: make(chan struct{}, 1), changed: map[string]bool{}}
	e.listeners[l] = true
	if e.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		e.cancel, e.done = cancel, make(chan struct{})
		go e.loop(ctx, e.done)
	}
	return l, 0
}

// placeFor is the listener whose place a client gets where all are taken: the newest
// of the client that has the most, if it has more than the other will have; nil where
// none has. own is how many places the client has.
func placeFor(all map[*listener]bool, client string) (last *listener, own int) {
	has := map[string]int{}
	for l := range all {
		has[l.client]++
	}
	for l := range all {
		if has[l.client] <= has[client]+1 {
			continue
		}
		if last == nil || has[l.client] > has[last.client] || has[l.client] == has[last.client] && l.came > last.came {
			last = l
		}
	}
	return last, has[client]
}

// client is for whom a page listens: the token's name, by which all that has it is one
// wherever it comes from; where there are no tokens, the address.
func (s *Server) client(r *http.Request) string {
	if s.access.open() {
		return sender(r).String()
	}
	return whoAsks(r.Context()).Name
}

// leave takes a listener out; with the last one the loop ends.
func (e *events) leave(l *listener) {
	e.mu.Lock()
	delete(e.listeners, l)
	var done chan struct{}
	if len(e.listeners) == 0 && e.cancel != nil {
		e.cancel()
		e.cancel, done = nil, e.done
	}
	e.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (e *events) loop(ctx context.Context, done chan struct{}) {
	defer close(done)
	seed := maphash.MakeSeed()
	var before map[string]uint64
	tick := time.NewTicker(e.every)
	defer tick.Stop()
	for {
		if shot, err := e.shots.all.get(ctx, e.every/2); err == nil {
			now := digests(seed, shot)
			e.tell(changedParts(before, now))
			before = now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *events) tell(names []string) {
	if len(names) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		for _, name := range names {
			l.changed[name] = true
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// take gives what a listener has not heard yet.
func (e *events) take(l *listener) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, name := range parts {
		if l.changed[name] {
			names = append(names, name)
		}
	}
	clear(l.changed)
	return strings.Join(names, " ")
}

// streamEvents is GET /events.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", eventType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	client := s.client(r)
	l, own := s.events.listen(client) //nolint:contextcheck // the loop is everybody's, and ends with the last of them
	switch {
	case l != nil:
	case own > 0:
		s.fail(w, r, problem(http.StatusTooManyRequests, "too-many-pages", fmt.Sprintf("as many pages listen as may, %d, and %d of them are of %s; the page goes on by asking now and then",
			s.events.most, own, client)).after(eventsIdle))
		return
	default:
		s.fail(w, r, problem(http.StatusServiceUnavailable, "busy", "as many pages listen as may; the page goes on by asking now and then").after(eventsIdle))
		return
	}
	defer s.events.leave(l)
	ctx, cancel := context.WithTimeout(r.Context(), s.events.life)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)() //nolint:contextcheck // the server's own end, beside the request's
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(s.events.life + s.pace.body))
	n := 0
	send := func(text string) bool {
		_ = rc.SetWriteDeadline(time.Now().Add(s.pace.write)) // who does not read is dropped
		_, err := w.Write([]byte(text))
		return err == nil && rc.Flush() == nil
	}
	if !send("retry: " + strconv.FormatInt(eventsRetry.Milliseconds(), 10) + "\n\n") {
		return
	}
	idle := time.NewTicker(s.events.idle)
	defer idle.Stop()
	for {
		var text string
		select {
		case <-ctx.Done():
			return
		case <-l.sent:
			return
		case <-l.wake:
			n++
			text = fmt.Sprintf("id: %d\nevent: change\ndata: %s\n\n", n, s.events.take(l))
			idle.Reset(s.events.idle)
		case <-idle.C:
			text = "event: idle\ndata: \n\n"
		}
		if !send(text) {
			return
		}
	}
}

// digests sum up each part of a reading, without what time alone changes.
func digests(seed maphash.Seed, s *snapshot) map[string]uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	out := map[string]uint64{}
	sum := func(name string, write func()) {
		h.Reset()
		fmt.Fprint(&h, s.RedisErr != nil)
		write()
		out[name] = h.Sum64()
	}
	sum("feeds", func() {
		for _, f := range s.Feeds {
			version := int64(0)
			if f.Version != nil {
				version = *f.Version
			}
			fmt.Fprint(&h, f.Name, f.State, version, f.Items, moments(f.FetchedAt, f.NextAt, f.JobAt), f.Job, f.JobState, f.LastError, f.Paused != nil)
		}
	})
	sum("quotas", func() {
		for _, q := range s.Quotas {
			v := q.View
			fmt.Fprint(&h, q.Name, q.Err != nil, v.Remaining, v.Grants, v.Refusals, v.Refunds, v.Line.Waiting, v.Windows, moments(v.BlockedUntil))
		}
	})
	sum("pools", func() {
		for _, p := range s.Pools {
			v := p.View
			fmt.Fprint(&h, p.Name, p.Err != nil, v.Total, v.Eligible, v.Quarantined, v.AuthFailed, v.Disabled, v.Candidates, moments(v.NextEligibleAt))
		}
		fmt.Fprint(&h, s.Counters["done"], s.Counters["failed"]) // each took an endpoint
	})
	sum("schedules", func() {
		for _, v := range s.Schedules {
			fmt.Fprint(&h, v.Name, v.State, v.Hold, v.Dispatched, v.Skipped, v.Missed, moments(v.NextAt, v.LastAt, v.DueAt, v.PausedUntil))
		}
	})
	sum("jobs", func() {
		fmt.Fprint(&h, s.Queues, s.Counters)
	})
	return out
}

func moments(all ...*time.Time) []int64 {
	out := make([]int64, len(all))
	for i, t := range all {
		if t != nil {
			out[i] = t.UnixMilli()
		}
	}
	return out
}

// changedParts are the names whose digests differ; none before the first reading.
func changedParts(before, now map[string]uint64) []string {
	var names []string
	for _, name := range parts {
		if before != nil && before[name] != now[name] {
			names = append(names, name)
		}
	}
	return names
}

package web

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// stream opens /events and gives its lines.
func (w *world) stream(ctx context.Context, url string, header ...string) (*http.Response, <-chan string) {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Accept", eventType)
	for name, value := range pairs(header) {
		r.Header.Set(name, value)
	}
	resp, err := w.client().Do(r)
	if err != nil {
		w.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return resp, lines
}

func (w *world) client() *http.Client {
	tr := &http.Transport{}
	w.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// hear waits for a line that begins so.
func (w *world) hear(lines <-chan string, begins string) string {
	w.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case l, ok := <-lines:
			if !ok {
				w.Fatalf("the stream ended before %q", begins)
			}
			if strings.HasPrefix(l, begins) {
				return l
			}
		case <-late:
			w.Fatalf("no %q within 10 s", begins)
		}
	}
}

func TestEventsSayWhatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.events.every, w.server.events.life = 20*time.Millisecond, time.Minute
	url := w.start()
	resp, lines := w.stream(t.Context(), url)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != eventType || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, %v", resp.StatusCode, resp.Header)
	}
	w.hear(lines, "retry: 3000")
	// A change before the first reading is no change: wait until the loop has looked.
	w.until("the loop looks", func() bool {
		w.server.shots.all.mu.Lock()
		defer w.server.shots.all.mu.Unlock()
		return !w.server.shots.all.at.IsZero()
	})
	w.put("news", time.Minute, nil, item("a", "A"))
	if got := w.hear(lines, "data: "); !strings.Contains(got, "feeds") || strings.Contains(got, "quotas") {
		t.Errorf("%q, want feeds alone of what changed", got)
	}
	w.charge(`{"id":"a","cost":1}`)
	if got := w.hear(lines, "data: "); !strings.Contains(got, "quotas") || strings.Contains(got, "feeds") {
		t.Errorf("%q, want quotas", got)
	}
}

func TestAHEADOfTheStreamIsAnsweredAndListensToNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.events.life = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, w.start()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != eventType {
		t.Errorf("status %d, %v", resp.StatusCode, resp.Header)
	}
	w.server.events.mu.Lock()
	defer w.server.events.mu.Unlock()
	if n := len(w.server.events.listeners); n != 0 {
		t.Errorf("%d listeners", n)
	}
}

func TestOneLoopReadsForAllListenersAndEndsWithTheLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.events.every, w.server.events.life = 10*time.Millisecond, time.Minute
	url := w.start()
	ctx, cancel := context.WithCancel(t.Context())
	var all []<-chan string
	for range 20 {
		_, lines := w.stream(ctx, url)
		all = append(all, lines)
	}
	for _, lines := range all {
		w.hear(lines, "retry:")
	}
	e := w.server.events
	loops := func() (listeners int, runs bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.listeners), e.cancel != nil
	}
	if n, runs := loops(); n != 20 || !runs {
		t.Errorf("%d listeners, loop %v", n, runs)
	}
	cancel()
	w.until("the loop ends", func() bool { n, runs := loops(); return n == 0 && !runs })
	// And begins anew.
	_, lines := w.stream(t.Context(), url)
	w.hear(lines, "retry:")
	if n, runs := loops(); n != 1 || !runs {
		t.Errorf("%d listeners, loop %v after one came again", n, runs)
	}
}

func TestListenersAreBoundedAndEndByTheirTimeOrWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.events.most, w.server.events.life = 2, time.Minute
	url := w.start()
	_, one := w.stream(t.Context(), url)
	_, two := w.stream(t.Context(), url)
	w.hear(one, "retry:")
	w.hear(two, "retry:")
	resp, _ := w.stream(t.Context(), url)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: status %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := w.server.Stop(ctx); err != nil {
		t.Errorf("stop with listeners: %v", err)
	}
	for _, lines := range []<-chan string{one, two} {
		for range lines { //nolint:revive // until the stream has ended
		}
	}
}

func TestOneClientCannotHoldEveryPlaceAgainstAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	w.server.events.most, w.server.events.life = 3, time.Minute
	url := w.start()
	as := func(token string) (*http.Response, <-chan string) {
		return w.stream(t.Context(), url, "Authorization", "Bearer "+token)
	}
	var greedy []<-chan string
	for range 3 {
		_, lines := as(readToken)
		w.hear(lines, "retry:")
		greedy = append(greedy, lines)
	}
	resp, _ := as(readToken)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a fourth of one client: %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	_, other := as(writeToken)
	w.hear(other, "retry:")
	for range greedy[2] { //nolint:revive // the newest of the other client ends, the older stay
	}
	for range 2 { // by whatever way it comes, it is the same client, and has its share
		resp, _ := as(readToken)
		if resp.StatusCode != 429 {
			t.Errorf("the greedy one again: %d", resp.StatusCode)
		}
	}
	e := w.server.events
	e.mu.Lock()
	defer e.mu.Unlock()
	has := map[string]int{}
	for l := range e.listeners {
		has[l.client]++
	}
	if has["reader"] != 2 || has["writer"] != 1 {
		t.Errorf("places: %v, want two and one", has)
	}
}

func TestAPlaceIsTakenOnlyFromWhoHasMore(t *testing.T) {
	t.Parallel()
	all := map[*listener]bool{}
	var came int64
	add := func(client string, n int) {
		for range n {
			came++
			all[&listener{client: client, came: came}] = true
		}
	}
	add("a", 5)
	add("b", 3)
	add("c", 1)
	for client, want := range map[string]struct {
		from string
		own  int
	}{"a": {"", 5}, "b": {"a", 3}, "c": {"a", 1}, "d": {"a", 0}} {
		l, own := placeFor(all, client)
		if l == nil {
			l = &listener{}
		} else if l.came != 5 {
			t.Errorf("%s gets the place of who came as number %d, want the newest of a", client, l.came)
		}
		if l.client != want.from || own != want.own {
			t.Errorf("%s gets a place of %q and has %d, want %+v", client, l.client, own, want)
		}
	}
	few := map[*listener]bool{{client: "a"}: true, {client: "b"}: true}
	if l, own := placeFor(few, "c"); l != nil || own != 0 {
		t.Errorf("where all have one: %v, %d", l, own)
	}
}

func TestAStreamEndsByItsTimeSoThatTheLoginIsShownAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	w.wantStatus(w.get("/events", "Accept", eventType), 401)
	w.server.events.life, w.server.events.idle = 100*time.Millisecond, 20*time.Millisecond
	rec := w.get("/events", "Accept", eventType, "Authorization", "Bearer "+readToken)
	w.wantStatus(rec, 200)
	if got := rec.Body.String(); !strings.HasPrefix(got, "retry: 3000\n\n") || !strings.Contains(got, "event: idle\ndata: \n\n") {
		t.Errorf("the stream: %q", got)
	}
}

func TestASlowListenerMissesNothing(t *testing.T) {
	t.Parallel()
	e := newEvents(nil)
	l := &listener{wake: make(chan struct{}, 1), changed: map[string]bool{}}
	e.listeners[l] = true
	e.tell([]string{"feeds"})
	e.tell([]string{"jobs"})
	e.tell(nil)
	if got := e.take(l); got != "feeds jobs" {
		t.Errorf("%q, want both at once", got)
	}
	if got := changedParts(map[string]uint64{"feeds": 1, "jobs": 2}, map[string]uint64{"feeds": 1, "jobs": 3}); len(got) != 1 || got[0] != "jobs" {
		t.Errorf("changed %v", got)
	}
	if got := changedParts(nil, map[string]uint64{"feeds": 1}); got != nil {
		t.Errorf("changed %v before the first reading", got)
	}
}

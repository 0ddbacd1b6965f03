package jobs

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/quota"
)

// crowded is an upstream's own count of the requests that it serves at a time,
// by path and in all.
type crowded struct {
	mu        sync.Mutex
	now, most map[string]int
}

func (c *crowded) serve(rw http.ResponseWriter, r *http.Request, takes time.Duration) {
	c.count(r.URL.Path, 1)
	defer c.count(r.URL.Path, -1)
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
	}
	writeFeed(rw, 1)
}

func (c *crowded) count(path string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range []string{path, "all"} {
		c.now[k] += n
		c.most[k] = max(c.most[k], c.now[k])
	}
}

func (c *crowded) peak(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most[path]
}

// watch makes the upstream count; a request takes up to most.
func (w *world) watch(most time.Duration) *crowded {
	c := &crowded{now: map[string]int{}, most: map[string]int{}}
	w.upstream.on(func(_ int, rw http.ResponseWriter, r *http.Request) bool {
		c.serve(rw, r, most/2+rand.N(most/2))
		return true
	})
	return c
}

// withTwoFeeds gives the feeds "free" and "paid", of which paid has the quota
// that the world has; a request's path says which.
func withTwoFeeds(w *world) {
	free := w.cfg.Feeds[0]
	paid := free
	free.Name, free.Quota, free.Source.URL = "free", "", w.upstream.URL+"/free"
	paid.Name, paid.Source.URL = "paid", w.upstream.URL+"/paid"
	w.cfg.Feeds = []Feed{free, paid}
}

func (w *world) host() string { return strings.TrimPrefix(w.upstream.URL, "http://") }

// idle waits until nothing is held and nobody waits at a running limit.
func (w *world) idle(name string) {
	w.t.Helper()
	leases := quota.NewLeases(w.rdb)
	w.eventually(30*time.Second, func() string {
		s, err := leases.State(w.t.Context(), name)
		if err != nil || s.Running != 0 || s.Waiting != 0 {
			return fmt.Sprintf("%s: %+v %v", name, s, err)
		}
		return ""
	})
}

func TestNeverMoreRunThanMayOverSeveralWorkers(t *testing.T) {
	t.Parallel()
	const jobs = 240
	w := newWorld(t, withQuota(60, time.Second), withTwoFeeds, withFeed(func(f *Feed) {
		if f.Quota != "" {
			f.QuotaRunning = 3
		}
	}), withConfig(func(c *Config) {
		c.Concurrency, c.InteractiveSlots = 12, 2
		c.PerHost.Running, c.PerSource = 7, map[string]int64{"syndication": 5}
	}))
	seen := w.watch(30 * time.Millisecond)
	w.crowd("job", jobs, func(i int) string { return []string{"free", "paid"}[i%2] })
	w.crew(3)
	w.ended(jobs, 5*time.Minute)
	t.Logf("at most %d at a time, %d of them paid; runs: %v", seen.peak("all"), seen.peak("/paid"), counted(w.runs(jobs)))
	if n := seen.peak("all"); n != 5 {
		t.Errorf("the upstream saw %d requests at a time, its source may make 5", n)
	}
	if n := seen.peak("/paid"); n != 3 {
		t.Errorf("the upstream saw %d requests of the quota at a time, want 3", n)
	}
	for _, name := range []string{quotaName("q"), hostName(w.host()), sourceName("syndication")} {
		w.idle(name)
	}
	if n := w.upstream.count(); n != jobs {
		t.Errorf("%d requests for %d jobs", n, jobs)
	}
}

func counted(all []int) map[int]int {
	out := map[int]int{}
	for _, n := range all {
		out[n]++
	}
	return out
}

// With leases of twenty seconds, a place that nobody calls costs twenty seconds.
func TestNextInLineIsCalledWhenALeaseComesFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.PerHost.Running = 1 }))
	seen := w.watch(10 * time.Millisecond)
	w.crowd("job", 40, func(int) string { return "news" })
	w.crew(2)
	w.ended(40, 3*leaseLife)
	if n := seen.peak("all"); n != 1 {
		t.Errorf("%d at a time, want 1", n)
	}
	t.Logf("runs: %v", counted(w.runs(40)))
}

func TestJobOverARunningLimitSnoozesWithItsTryUntouchedAndSaysWhichAndWhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world)
		says   func(*world) string
	}{
		"host":   {func(w *world) { w.cfg.PerHost.Running = 1 }, func(w *world) string { return hostName(w.host()) }},
		"source": {func(w *world) { w.cfg.PerSource = map[string]int64{"syndication": 1} }, func(*world) string { return "source:syndication" }},
		"quota":  {func(w *world) { w.cfg.Feeds[0].QuotaRunning = 1 }, func(*world) string { return "quota:q" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withQuota(100, time.Hour), c.change)
			arrived, go_on := make(chan struct{}, 9), make(chan struct{})
			w.upstream.on(func(n int, _ http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					arrived <- struct{}{}
					<-go_on
				}
				return false
			})
			first := w.enqueue(Spec{})
			w.work()
			<-arrived
			second := w.until(w.enqueue(Spec{}).ID, Snoozed)
			third := w.until(w.enqueue(Spec{}).ID, Snoozed)
			want := c.says(w) + ": 1 run, which is its limit, place 2 in the line"
			if third.Attempts != 0 || third.Snoozes != 1 || !strings.HasSuffix(third.LastError, want) {
				t.Errorf("%+v, want a snooze because of %q", third, want)
			}
			if n := w.charged(0); n != 1 {
				t.Errorf("%d units charged, those who do not run pay nothing", n)
			}
			close(go_on)
			for _, id := range []string{first.ID, second.ID, third.ID} {
				w.until(id, Done)
			}
			w.idle(c.says(w))
		})
	}
}

func TestLaterRefusalGivesTheLeasesBack(t *testing.T) {
	t.Parallel()
	t.Run("no units", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, withQuota(10, time.Hour), withConfig(func(c *Config) { c.PerHost.Running = 1 }))
		w.fill(10)
		j := w.enqueue(Spec{})
		w.work()
		w.until(j.ID, Snoozed)
		w.idle(hostName(w.host()))
	})
	t.Run("no endpoint", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, withQuota(10, time.Hour), withFeed(func(f *Feed) { f.Pool = "proxies" }), withConfig(func(c *Config) {
			c.PerHost = PerHost{Running: 1, Delay: time.Hour}
		}))
		j := w.enqueue(Spec{})
		w.work()
		if j = w.until(j.ID, Snoozed); !strings.Contains(j.LastError, "no eligible endpoint") {
			t.Errorf("reason %q", j.LastError)
		}
		w.idle(hostName(w.host()))
		w.eventually(30*time.Second, func() string {
			l, name, err := newPacer(w.rdb, time.Hour).of(w.host())
			if err != nil {
				return err.Error()
			}
			s, err := l.State(t.Context(), name)
			if err != nil || s.Remaining != 1 || w.charged(0) != 0 {
				return fmt.Sprintf("start and units are kept: %+v %d %v", s, w.charged(0), err)
			}
			return ""
		})
	})
}

func TestCancelledAndExpiredJobsLeaveTheLineOfARunningLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.PerHost.Running = 1 }))
	arrived, go_on := make(chan struct{}, 9), make(chan struct{})
	w.upstream.on(func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			arrived <- struct{}{}
			<-go_on
		}
		return false
	})
	first := w.enqueue(Spec{})
	w.work()
	<-arrived
	cancelled := w.until(w.enqueue(Spec{}).ID, Snoozed)
	expires := w.until(w.enqueue(Spec{Expires: 700 * time.Millisecond}).ID, Snoozed)
	last := w.until(w.enqueue(Spec{}).ID, Snoozed)
	if _, err := w.client.Cancel(t.Context(), cancelled.ID); err != nil {
		t.Fatal(err)
	}
	leases := quota.NewLeases(w.rdb)
	if s, err := leases.State(t.Context(), hostName(w.host())); err != nil || s.Waiting > 2 { // and the second may have expired
		t.Errorf("line after the cancel: %+v %v", s, err)
	}
	w.eventually(30*time.Second, func() string {
		now, err := w.rdb.Time(t.Context()).Result()
		if err != nil || now.Before(time.UnixMilli(w.expiry(expires.ID))) {
			return "it may still begin"
		}
		return ""
	})
	close(go_on)
	w.until(first.ID, Done)
	w.until(expires.ID, Expired)
	w.until(last.ID, Done)
	w.idle(hostName(w.host()))
}

// expiry is the instant by which a job must have begun, ms.
func (w *world) expiry(id string) int64 {
	w.t.Helper()
	info, err := w.client.inspector.GetTaskInfo(QueueInteractive, id)
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := decodePayload(info.Payload)
	if err != nil {
		w.t.Fatal(err)
	}
	return p.ExpiresAt
}

func TestLeaseIsExtendedWhileItsJobRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.PerHost.Running = 1 }))
	seen := w.watch(1200 * time.Millisecond)
	h := w.handler()
	h.leaseLife = 300 * time.Millisecond
	w.crowd("job", 3, func(int) string { return "news" })
	w.start(NewWorker(w.cfg, h, w.rdb, w.log))
	w.ended(3, 30*time.Second)
	if n := seen.peak("all"); n != 1 {
		t.Errorf("%d at a time: a lease ended under a job that ran", n)
	}
}

func TestTargetsRetryAfterClosesTheHostOfFeedsWithoutAQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		other := w.cfg.Feeds[0]
		other.Name, other.Source.URL = "other", w.upstream.URL+"/other"
		w.cfg.Feeds = append(w.cfg.Feeds, other)
	})
	w.upstream.on(func(n int, rw http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			rw.Header().Set("Retry-After", "120")
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
		return n == 1
	})
	w.work()
	ids := []string{w.until(w.enqueue(Spec{}).ID, Snoozed).ID}
	for i := range 20 {
		j := w.until(w.enqueue(Spec{Feed: []string{"news", "other"}[i%2]}).ID, Snoozed)
		if !strings.Contains(j.LastError, hostName(w.host())+" is closed until ") || !strings.Contains(j.LastError, "503") {
			t.Fatalf("the reason %q does not say what is closed, until when and why", j.LastError)
		}
		if wait := time.Until(*j.NextAt); wait < 100*time.Second || wait > 125*time.Second {
			t.Errorf("comes back in %s, want about 120 s", wait)
		}
		ids = append(ids, j.ID)
	}
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d probes of a host that said 120 s, want 1", n)
	}
	s, err := w.client.Host(t.Context(), w.host())
	if err != nil || s.BlockedUntil.IsZero() || !strings.Contains(s.BlockReason, "503") {
		t.Errorf("host: %+v %v", s, err)
	}
	if err := w.client.UnblockHost(t.Context(), w.host()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:] {
		w.until(id, Done)
	}
}

func TestDelayBetweenTwoStartsAtOneHostHoldsOverAllWorkers(t *testing.T) {
	t.Parallel()
	const jobs, delay = 25, 200 * time.Millisecond
	w := newWorld(t, withConfig(func(c *Config) { c.PerHost.Delay = delay }))
	var mu sync.Mutex
	var starts []time.Time
	w.upstream.on(func(int, http.ResponseWriter, *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		starts = append(starts, time.Now())
		return false
	})
	w.crowd("job", jobs, func(int) string { return "news" })
	w.crew(3)
	w.ended(jobs, 5*time.Minute)
	slices.SortFunc(starts, time.Time.Compare)
	// From the start of a request to the upstream's handler a connection may have to be made, on a machine that is busy.
	const way = 50 * time.Millisecond
	least := time.Hour
	for i, from := range starts {
		for k, to := range starts[i+1:] {
			if least = min(least, to.Sub(from)); paced && to.Sub(from) < delay*time.Duration(k+1)-way {
				t.Errorf("start %d came %s after start %d", i+k+2, to.Sub(from), i+1)
			}
		}
	}
	all := starts[len(starts)-1].Sub(starts[0])
	c, err := w.client.Counters(t.Context())
	t.Logf("least gap %s; %s for all, at best %s; runs %v, %d waits in a slot", least, all, (delay+lead)*(jobs-1), counted(w.runs(jobs)), c["waits"])
	if err != nil || len(starts) != jobs || all < delay*(jobs-1)-way {
		t.Errorf("%d starts in %s; want %s between two, %v", len(starts), all, delay, err)
	}
	if c["waits"] == 0 {
		t.Error("nobody waited in a slot though slots were free")
	}
}

func TestJobWaitsInItsSlotOnlyWhileNobodyNeedsThat(t *testing.T) {
	t.Parallel()
	b := newBay(2)
	b.enter()
	if !b.wait(t.Context(), time.Millisecond) {
		t.Error("no wait though a slot is free")
	}
	waited := make(chan bool)
	go func() { waited <- b.wait(t.Context(), time.Hour) }()
	b.enter()
	if <-waited {
		t.Error("it waited an hour")
	}
	if b.wait(t.Context(), time.Millisecond) {
		t.Error("it waits in the last slot")
	}
	b.leave()
	if !b.wait(t.Context(), time.Millisecond) {
		t.Error("no wait though a slot is free again")
	}
	r := &run{bay: b, local: time.Now(), BeganUS: time.Now().UnixMicro()}
	if r.wait(t.Context(), r.now().Add(waitMost+time.Second)) {
		t.Error("it waits longer than a second")
	}
}

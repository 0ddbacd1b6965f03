package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
)

// asked is what one charge was answered.
type asked struct {
	id       string
	cost     int64
	asked    time.Time // first
	promised time.Time // at the first refusal; zero when the first answer was a grant
	granted  time.Time
}

// first is the charge's place in the order of asking: promises rise with the
// place in the line.
func (a asked) first() time.Time {
	if a.promised.IsZero() {
		return a.granted
	}
	return a.promised
}

// book writes down what the limiters of all workers answer.
type book struct {
	mu  sync.Mutex
	all map[string]*asked
}

// listed is one process's limiter, whose answers go into the book.
type listed struct {
	*quota.Limiter
	book *book
}

func (l listed) Charge(ctx context.Context, r quota.Request) (quota.Decision, error) {
	d, err := l.Limiter.Charge(ctx, r)
	if err != nil {
		return d, err
	}
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	a := l.book.all[r.ID]
	if a == nil {
		a = &asked{id: r.ID, cost: r.Cost, asked: d.At.Add(-d.RetryAfter)}
		l.book.all[r.ID] = a
		if !d.Granted {
			a.promised = d.At
		}
	}
	if d.Granted {
		a.granted = d.At
	}
	return d, nil
}

// entries are all charges in the order in which they were first asked for.
func (b *book) entries() []asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []asked
	for _, a := range b.all {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b asked) int { return a.first().Compare(b.first()) })
	return out
}

// crew starts n workers, each with connections, limiter and fetcher of its
// own, as so many processes would.
func (w *world) crew(n int) *book {
	w.t.Helper()
	b := &book{all: map[string]*asked{}}
	for range n {
		rdb := w.redis.Client()
		w.t.Cleanup(func() { _ = rdb.Close() })
		limiter, err := quota.New(rdb, w.quotas)
		if err != nil {
			w.t.Fatal(err)
		}
		h := w.handler()
		h.rdb, h.desk = rdb, luarun.NewDesk(rdb)
		h.store, h.limiter = feed.New(rdb, h.desk), listed{limiter, b}
		h.leases, h.pacer = quota.NewLeases(rdb), newPacer(rdb, w.cfg.PerHost.Delay)
		w.start(NewWorker(w.cfg, h, rdb, w.log))
	}
	return b
}

// crowd enqueues n scheduled jobs; name gives each one's feed.
func (w *world) crowd(prefix string, n int, name func(i int) string) {
	w.t.Helper()
	c := asynq.NewClientFromRedisClient(w.rdb)
	for i := range n {
		body, err := payload{Feed: name(i)}.encode()
		if err != nil {
			w.t.Fatal(err)
		}
		t := asynq.NewTask(TaskType, body)
		if _, err := c.Enqueue(t, asynq.TaskID(fmt.Sprintf("%s-%04d", prefix, i)), asynq.Queue(QueueScheduled), asynq.MaxRetry(maxRetry)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// ended waits until n jobs are done.
func (w *world) ended(n int, limit time.Duration) {
	w.t.Helper()
	w.eventually(limit, func() string {
		c, err := w.client.Counters(w.t.Context())
		if err != nil || c[string(Done)] != int64(n) {
			return fmt.Sprintf("%d of %d done (%v), %v", c[string(Done)], n, c, err)
		}
		return ""
	})
}

// runs are how often each of n jobs of a crowd ran: a run that does not end the
// job is a snooze.
func (w *world) runs(n int) []int {
	w.t.Helper()
	pipe := w.rdb.Pipeline()
	for i := range n {
		pipe.HGet(w.t.Context(), recordKey(fmt.Sprintf("job-%04d", i)), "snoozes")
	}
	cmds, _ := pipe.Exec(w.t.Context())
	out := make([]int, n)
	for i, cmd := range cmds {
		snoozes, err := cmd.(*redis.StringCmd).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			w.t.Fatal(err)
		}
		out[i] = 1 + snoozes
	}
	return out
}

// withFeeds makes n feeds like the first, all of which answer the same.
func withFeeds(n int) option {
	return func(w *world) {
		first := w.cfg.Feeds[0]
		w.cfg.Feeds = nil
		for i := range n {
			first.Name = fmt.Sprintf("feed-%d", i)
			w.cfg.Feeds = append(w.cfg.Feeds, first)
		}
		w.upstream.on(func(_ int, rw http.ResponseWriter, _ *http.Request) bool { writeFeed(rw, 1); return true })
	}
}

func feedOf(n int) func(int) string { return func(i int) string { return fmt.Sprintf("feed-%d", i%n) } }

func TestFourThousandJobsOnAThousandPerTenSeconds(t *testing.T) {
	t.Parallel()
	const jobs, limit, per = 4000, 1000, 10 * time.Second
	w := newWorld(t, withFeeds(20), withQuota(limit, per), withConfig(func(c *Config) { c.Concurrency, c.InteractiveSlots = 16, 2 }))
	w.crowd("job", jobs, feedOf(20))
	b := w.crew(2)
	w.ended(jobs, 5*time.Minute)

	all := b.entries()
	if len(all) != jobs {
		for _, a := range all {
			if !strings.HasSuffix(a.id, "/1") {
				t.Logf("%+v", a)
			}
		}
		t.Fatalf("%d charges asked for by %d jobs", len(all), jobs)
	}
	var times []int
	sum := 0
	begun, ended := all[0].granted, all[0].granted
	runs := w.runs(jobs)
	for i, a := range all {
		times = append(times, runs[i])
		sum += runs[i]
		if a.granted.Before(begun) {
			begun = a.granted
		}
		if a.granted.After(ended) {
			ended = a.granted
		}
	}
	slices.Sort(times)
	median, mean := float64(times[jobs/2]), float64(sum)/jobs
	least := (jobs/limit - 1) * per
	took := ended.Sub(begun)
	back, far, held := disorder(all)
	t.Logf("runs a job: median %.1f, mean %.2f, most %d; last grant after %s, least possible %s; %d overtaken, by %d places and %s at most",
		median, mean, times[jobs-1], took, least, back, far, held)
	if median > 2.1 || mean > 2.5 {
		t.Errorf("runs a job: median %.1f, mean %.2f; want at most 2.1 and 2.5", median, mean)
	}
	// Those that run at the same time can overtake each other; and one that comes a moment before its units are
	// free sleeps once more, a tenth of a second, in which hundreds pass.
	if paced && held > per/20 {
		t.Errorf("one that asked first was granted %s later than in its turn, want at most %s", held, per/20)
	}
	if took < least || paced && took > least*11/10 {
		t.Errorf("took %s, want from %s to a tenth more", took, least)
	}
}

// A heavy job is one that costs forty; its like come with every fortieth, and
// newcomers all the while.
func TestHeavyJobsWaitNoLongerThanTheirPlaceSaysWhateverComes(t *testing.T) {
	t.Parallel()
	const limit, per, cost, rounds = 400, 2 * time.Second, 40, 25
	// What a promise cannot know is that those before it come a moment late: once in the time of each window that it waits.
	const late = 300 * time.Millisecond
	w := newWorld(t, withFeeds(40), withQuota(limit, per), withConfig(func(c *Config) {
		c.Concurrency, c.InteractiveSlots = 16, 2
		c.Feeds[0].Cost = cost
	}))
	b := w.crew(2)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for round := range rounds {
		w.crowd(fmt.Sprintf("round-%02d", round), 40, feedOf(40))
		<-tick.C
	}
	w.ended(40*rounds, 5*time.Minute)
	var worst time.Duration
	waited := 0
	for _, a := range b.entries() {
		if a.promised.IsZero() || a.cost == 1 {
			continue
		}
		waited++
		over := a.granted.Sub(a.promised)
		worst = max(worst, over)
		if wait := a.promised.Sub(a.asked); paced && over > late*(1+wait/per) {
			t.Errorf("%s was to wait %s, and waited %s longer", a.id, wait, over)
		}
	}
	t.Logf("%d heavy ones waited, at most %s longer than promised", waited, worst)
	if paced && waited < rounds/2 { // or those that come may come too slowly to be refused
		t.Errorf("only %d heavy ones had to wait", waited)
	}
}

// disorder counts the charges that one which asked later was granted before, and
// how far the worst of them fell back: in places, and in time behind its turn.
func disorder(all []asked) (count, far int, held time.Duration) {
	granted := slices.Clone(all)
	slices.SortFunc(granted, func(x, y asked) int { return x.granted.Compare(y.granted) })
	place := map[string]int{}
	for i, a := range granted {
		place[a.id] = i
	}
	for i, a := range all {
		if d := place[a.id] - i; d > 0 {
			count, far = count+1, max(far, d)
			held = max(held, a.granted.Sub(granted[i].granted))
		}
	}
	return count, far, held
}

func TestFiveHundredJobsOnFiftyPerSecond(t *testing.T) {
	t.Parallel()
	const jobs, limit, per = 500, 50, time.Second
	w := newWorld(t, withFeeds(20), withQuota(limit, per), withConfig(func(c *Config) { c.Concurrency, c.InteractiveSlots = 16, 2 }))
	w.crowd("job", jobs, feedOf(20))
	b := w.crew(2)
	w.ended(jobs, 5*time.Minute)
	all := b.entries()
	begun, ended, sum := all[0].granted, all[0].granted, 0
	for _, n := range w.runs(jobs) {
		sum += n
	}
	for _, a := range all {
		if a.granted.After(ended) {
			ended = a.granted
		}
	}
	ideal, took := (jobs/limit-1)*per, ended.Sub(begun)
	back, far, held := disorder(all)
	t.Logf("%s, ideally %s: %.0f %%; %.2f runs a job; %d overtaken, by %d places and %s at most", took, ideal, 100*ideal.Seconds()/took.Seconds(), float64(sum)/jobs, back, far, held)
	if took < ideal || paced && took > ideal*10/8 {
		t.Errorf("took %s, want 80 %% of the ideal pace: from %s to %s", took, ideal, ideal*10/8)
	}
}

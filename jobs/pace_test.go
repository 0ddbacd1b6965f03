package jobs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
)

// asked is what one charge was answered, and how often.
type asked struct {
	id       string
	cost     int64
	times    int
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
		a = &asked{id: r.ID, cost: r.Cost}
		l.book.all[r.ID] = a
		if !d.Granted {
			a.promised = d.At
		}
	}
	a.times++
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
		worker := NewWorker(w.cfg, h, rdb, w.log)
		if err := worker.Start(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			if err := worker.Stop(context.Background()); err != nil {
				w.t.Error(err)
			}
		})
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
	w.ended(jobs, 2*time.Minute)

	all := b.entries()
	if len(all) != jobs {
		t.Fatalf("%d charges asked for by %d jobs", len(all), jobs)
	}
	var times []int
	sum := 0
	begun, ended := all[0].granted, all[0].granted
	for _, a := range all {
		times = append(times, a.times)
		sum += a.times
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
	back, far := disorder(all)
	t.Logf("runs a job: median %.1f, mean %.2f, most %d; last grant after %s, least possible %s; %d overtaken, by %d places at most",
		median, mean, times[jobs-1], took, least, back, far)
	if median > 2.1 || mean > 2.5 {
		t.Errorf("runs a job: median %.1f, mean %.2f; want at most 2.1 and 2.5", median, mean)
	}
	if took < least || took > least*11/10 {
		t.Errorf("took %s, want from %s to a tenth more", took, least)
	}
}

// disorder counts the charges that one which asked later was granted before,
// and the places by which the worst of them fell back.
func disorder(all []asked) (count, far int) {
	granted := slices.Clone(all)
	slices.SortFunc(granted, func(x, y asked) int { return x.granted.Compare(y.granted) })
	place := map[string]int{}
	for i, a := range granted {
		place[a.id] = i
	}
	for i, a := range all {
		if d := place[a.id] - i; d > 0 {
			count, far = count+1, max(far, d)
		}
	}
	return count, far
}

func TestFiveHundredJobsOnFiftyPerSecond(t *testing.T) {
	t.Parallel()
	const jobs, limit, per = 500, 50, time.Second
	w := newWorld(t, withFeeds(20), withQuota(limit, per), withConfig(func(c *Config) { c.Concurrency, c.InteractiveSlots = 16, 2 }))
	w.crowd("job", jobs, feedOf(20))
	b := w.crew(2)
	w.ended(jobs, time.Minute)
	all := b.entries()
	begun, ended, sum := all[0].granted, all[0].granted, 0
	for _, a := range all {
		sum += a.times
		if a.granted.After(ended) {
			ended = a.granted
		}
	}
	ideal, took := (jobs/limit-1)*per, ended.Sub(begun)
	back, far := disorder(all)
	t.Logf("%s, ideally %s: %.0f %%; %.2f runs a job; %d overtaken, by %d places at most", took, ideal, 100*ideal.Seconds()/took.Seconds(), float64(sum)/jobs, back, far)
	if took > ideal*10/8 {
		t.Errorf("took %s, want 80 %% of the ideal pace: %s", took, ideal*10/8)
	}
}

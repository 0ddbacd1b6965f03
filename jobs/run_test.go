package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

func TestJobRunsFromQueueToStoredVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour))
	j := w.enqueue(Spec{})
	if j.State != Pending || j.Queue != QueueInteractive {
		t.Errorf("enqueued as %+v", j)
	}
	w.work()
	j = w.until(j.ID, Done)
	var res Result
	if err := json.Unmarshal(j.Result, &res); err != nil || res.What != "new version" || res.Version != 1 || res.Items != 1 || res.Units != 1 {
		t.Errorf("result %s %v", j.Result, err)
	}
	v, err := w.store.Get(t.Context(), "news", 0)
	if err != nil || v.Version != 1 || len(v.Items) != 1 || v.Items[0].Title != "Number 1" || v.Items[0].FirstSeen.IsZero() {
		t.Errorf("stored %+v %v", v, err)
	}
	if !strings.Contains(string(v.Page(1)), "<rss") {
		t.Errorf("raw answer %q", v.Raw)
	}
	w.eventually(30*time.Second, func() string {
		info, err := w.client.inspector.GetTaskInfo(QueueInteractive, j.ID)
		if err != nil || !strings.Contains(string(info.Result), `"new version"`) {
			return fmt.Sprintf("asynqmon shows %+v %v", info, err)
		}
		return ""
	})
	if n := w.charged(0); n != 1 {
		t.Errorf("%d units charged", n)
	}
	if _, shares, err := w.limiter.Shares(t.Context(), "q"); err != nil || len(shares) != 1 || shares[0].Label != "news" {
		t.Errorf("the units went to %+v, %v", shares, err)
	}
}

func TestEqualAnswerRenewsTheVersionAndMakesNoNewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upstream.on(func(_ int, rw http.ResponseWriter, _ *http.Request) bool { writeFeed(rw, 7); return true })
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	before, err := w.store.Head(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	w.until(w.enqueue(Spec{}).ID, Done)
	after, err := w.store.Head(t.Context(), "news")
	if err != nil || after.Version != 1 || !after.FetchedAt.After(before.FetchedAt) {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
}

func TestBadTasksAreArchivedAtOnceWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := asynq.NewClientFromRedisClient(w.rdb)
	bad := map[string]*asynq.Task{
		"type":    asynq.NewTask("email:send", nil),
		"json":    asynq.NewTask(TaskType, []byte(`{"feed":`)),
		"empty":   asynq.NewTask(TaskType, []byte(`{}`)),
		"unknown": asynq.NewTask(TaskType, []byte(`{"feed":"nosuch"}`)),
	}
	for id, task := range bad {
		if _, err := c.Enqueue(task, asynq.TaskID(id), asynq.Queue(QueueScheduled)); err != nil {
			t.Fatal(err)
		}
	}
	w.work()
	for id := range bad {
		w.eventually(30*time.Second, func() string {
			info, err := w.client.inspector.GetTaskInfo(QueueScheduled, id)
			if err != nil || info.State != asynq.TaskStateArchived || info.LastErr == "" {
				return fmt.Sprintf("%s: %+v %v", id, info, err)
			}
			return ""
		})
		if j := w.get(id); j.State != Failed || j.LastError == "" {
			t.Errorf("%s: %+v", id, j)
		}
	}
}

func TestRealFailuresUseUpTheFeedsAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Attempts = 2 }))
	w.upstream.on(func(_ int, rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(500); return true })
	j := w.enqueue(Spec{})
	w.work()
	j = w.until(j.ID, Failed)
	if j.Attempts != 2 || w.upstream.count() != 2 || !strings.Contains(j.LastError, "attempt 2 of 2") {
		t.Errorf("%+v after %d requests", j, w.upstream.count())
	}
	h, err := w.store.Head(t.Context(), "news")
	if err != nil || h.LastError == "" || !h.Empty() {
		t.Errorf("head %+v %v", h, err)
	}
}

func TestPermanentFailureIsNotTriedAgainAndTheNextJobRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upstream.on(func(n int, rw http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			rw.WriteHeader(http.StatusNotFound)
		}
		return n == 1
	})
	w.work()
	if j := w.until(w.enqueue(Spec{}).ID, Failed); j.Attempts != 1 {
		t.Errorf("%+v", j)
	}
	w.until(w.enqueue(Spec{}).ID, Done)
}

func TestGoodVersionStaysWhenAnAnswerIsEmptyOrNoFeed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"empty": `<?xml version="1.0"?><rss version="2.0"><channel><title>t</title></channel></rss>`,
		"html":  `<!doctype html><p>Service is down`,
		"cut":   `<?xml version="1.0"?><rss version="2.0"><channel><item><guid>1</guid><tit`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withFeed(func(f *Feed) { f.Attempts = 1 }))
			w.upstream.on(func(n int, rw http.ResponseWriter, _ *http.Request) bool {
				if n > 1 {
					fmt.Fprint(rw, body)
				}
				return n > 1
			})
			w.work()
			w.until(w.enqueue(Spec{}).ID, Done)
			w.until(w.enqueue(Spec{}).ID, Failed)
			if v, err := w.store.Get(t.Context(), "news", 0); err != nil || v.Version != 1 || len(v.Items) != 1 {
				t.Errorf("%+v %v", v, err)
			}
		})
	}
}

func TestNotModifiedRenewsTheAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upstream.on(func(n int, rw http.ResponseWriter, r *http.Request) bool {
		rw.Header().Set("ETag", `"one"`)
		if r.Header.Get("If-None-Match") == `"one"` {
			rw.WriteHeader(http.StatusNotModified)
			return true
		}
		return false
	})
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	j := w.until(w.enqueue(Spec{}).ID, Done)
	if !strings.Contains(string(j.Result), "not modified") {
		t.Errorf("result %s", j.Result)
	}
	if h, err := w.store.Head(t.Context(), "news"); err != nil || h.Version != 1 || h.ETag != `"one"` {
		t.Errorf("%+v %v", h, err)
	}
}

func TestJobThatWasNotStartedInTimeEndsAsExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.enqueue(Spec{Expires: time.Millisecond})
	w.work()
	if j = w.until(j.ID, Expired); w.upstream.count() != 0 || !strings.Contains(j.LastError, "not started by") {
		t.Errorf("%+v", j)
	}
}

// A tick that is enqueued again after asynq has forgotten it runs once.
func TestDeliveryAfterTheEndDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour))
	w.work()
	j := w.until(w.enqueue(Spec{ID: "once", Priority: Background}).ID, Done)
	w.eventually(30*time.Second, func() string {
		if err := w.client.inspector.DeleteTask(QueueScheduled, j.ID); err != nil {
			return err.Error()
		}
		return ""
	})
	own, err := payload{Feed: "news"}.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.asynq.Enqueue(asynq.NewTask(TaskType, own), asynq.TaskID("once"), asynq.Queue(QueueScheduled)); err != nil {
		t.Fatal(err)
	}
	w.gone("once")
	if w.upstream.count() != 1 || w.charged(0) != 1 {
		t.Errorf("%d requests, %d charged", w.upstream.count(), w.charged(0))
	}
}

// gone waits until asynq has ended a task without retention.
func (w *world) gone(id string) {
	w.t.Helper()
	w.eventually(30*time.Second, func() string {
		_, err := w.client.inspector.GetTaskInfo(QueueScheduled, id)
		if errors.Is(err, asynq.ErrTaskNotFound) {
			return ""
		}
		return fmt.Sprint("still there: ", err)
	})
}

func TestForeignTaskThatUsesItsIDAgainRunsAgainAndPaysAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour))
	w.work()
	for n := 1; n <= 3; n++ {
		w.foreign("nightly")
		w.gone("nightly")
		if w.upstream.count() != n || w.charged(0) != int64(n) {
			t.Fatalf("run %d: %d requests, %d charged", n, w.upstream.count(), w.charged(0))
		}
		// Its end was hours ago.
		w.rdb.HSet(t.Context(), recordKey("nightly"), "ended_ms", time.Now().Add(-time.Hour).UnixMilli())
	}
}

func TestFailedJobThatAPersonRunsAgainRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upstream.on(func(n int, rw http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			rw.WriteHeader(http.StatusNotFound)
		}
		return n == 1
	})
	w.work()
	w.until(w.enqueue(Spec{ID: "broken"}).ID, Failed)
	w.eventually(30*time.Second, func() string {
		if err := w.client.inspector.RunTask(QueueInteractive, "broken"); err != nil {
			return err.Error()
		}
		return ""
	})
	if j := w.until("broken", Done); j.Attempts != 0 {
		t.Errorf("%+v", j)
	}
}

func TestUnsentChargeThatItsWindowForgotIsPaidAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(1, 300*time.Millisecond))
	w.unsentChargeIsForgotten(func() time.Time { return time.Now().Add(400 * time.Millisecond) })
}

// The day in which it was charged is over, though it is seconds ago.
func TestUnsentChargeOfYesterdayIsPaidAnew(t *testing.T) {
	t.Parallel()
	midnight := time.Now().Truncate(time.Second).Add(2 * time.Second)
	zone := time.FixedZone("new-day", int(24*3600-midnight.Unix()%(24*3600)))
	w := newWorld(t, func(w *world) {
		w.quotas = []quota.Config{{Name: "q", Windows: []quota.Window{{Limit: 1, Calendar: "day", Location: zone}}}}
		w.cfg.Feeds[0].Quota = "q"
	})
	w.unsentChargeIsForgotten(func() time.Time { return midnight })
}

// unsentChargeIsForgotten has a worker die between its charge and its request, and another begin when the
// window no longer counts the charge, at the instant that over gives after it.
func (w *world) unsentChargeIsForgotten(over func() time.Time) {
	t := w.t
	h := w.handler()
	f, src, _ := h.catalog.find("news")
	dead := &run{ID: "j", Queue: QueueScheduled, Feed: "news", Key: "news", token: "dead"}
	if err := h.begin(t.Context(), dead, false); err != nil {
		t.Fatal(err)
	}
	if err := h.charge(t.Context(), dead, f, w.log); err != nil {
		t.Fatal(err)
	}
	at := over() // and its worker dies
	w.eventually(30*time.Second, func() string {
		if time.Now().Before(at) {
			return "the window still counts it"
		}
		return ""
	})
	again := &run{ID: "j", Queue: QueueScheduled, Feed: "news", Key: "news", token: "again"}
	if err := h.begin(t.Context(), again, false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.travel(t.Context(), again, f, src, w.log); err != nil {
		t.Fatal(err)
	}
	if n := w.charged(0); n != 1 {
		t.Errorf("%d units count for the request that went out", n)
	}
}

func TestRequestThatNeverLeftIsNotPaidFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour), withFeed(func(f *Feed) { f.Pool, f.Attempts = "proxies", 1 }))
	if _, err := w.pools.Import(t.Context(), "proxies", strings.NewReader("http://127.0.0.1:1"), nil); err != nil {
		t.Fatal(err)
	}
	w.work()
	if j := w.until(w.enqueue(Spec{}).ID, Failed); j.Sent != 0 || w.charged(0) != 0 {
		t.Errorf("%+v, %d charged though its proxy is dead", j, w.charged(0))
	}
}

func TestEmptyFeedStaysGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Attempts = 1 }))
	w.upstream.on(func(_ int, rw http.ResponseWriter, _ *http.Request) bool {
		fmt.Fprint(rw, `<?xml version="1.0"?><rss version="2.0"><channel><title>nothing yet</title></channel></rss>`)
		return true
	})
	w.work()
	for range 2 {
		w.until(w.enqueue(Spec{}).ID, Done)
	}
}

func TestInteractiveJobIsServedWhileLongJobsHoldEverySharedSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		slow := w.cfg.Feeds[0]
		slow.Name, slow.Source.URL = "slow", w.upstream.URL+"/slow"
		w.cfg.Feeds = append(w.cfg.Feeds, slow)
	})
	w.upstream.on(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return true
		}
		return false
	})
	for range 20 {
		w.enqueue(Spec{Feed: "slow", Priority: Background})
	}
	w.cfg.Shutdown = time.Millisecond
	w.work()
	w.eventually(30*time.Second, func() string {
		if n := w.upstream.count(); n < 6 {
			return fmt.Sprintf("%d slow ones run", n)
		}
		return ""
	})
	w.until(w.enqueue(Spec{}).ID, Done)
}

// Each page of a list is a request of its own, and is charged; validators of
// one page do not speak for all; no page is stored without the others.
func TestEachPageOfAListIsCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour), withFeed(func(f *Feed) {
		f.Cost = 2
		f.Source.Kind, f.Source.Items, f.Source.Paging = "json", ".[]", &source.Paging{LinkHeader: true}
	}))
	w.upstream.on(func(n int, rw http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("If-None-Match") != "" {
			t.Errorf("request %d asks whether one page has changed", n)
		}
		page := r.URL.Query().Get("p")
		next := map[string]string{"": "2", "2": "3"}[page]
		if next != "" {
			rw.Header().Set("Link", fmt.Sprintf(`<?p=%s>; rel="next"`, next))
		}
		rw.Header().Set("ETag", `"x"`)
		fmt.Fprintf(rw, `[{"id":"page %s"},{"id":"common"}]`, page)
		return true
	})
	w.work()
	for job := int64(1); job <= 2; job++ {
		j := w.until(w.enqueue(Spec{}).ID, Done)
		var res Result
		if err := json.Unmarshal(j.Result, &res); err != nil || res.Items != 4 || res.Units != 6 || res.Requests != 3 {
			t.Errorf("result %s %v", j.Result, err)
		}
		if n := w.charged(0); n != 6*job {
			t.Errorf("%d units charged after %d jobs", n, job)
		}
	}
	v, err := w.store.Get(t.Context(), "news", 0)
	if err != nil || len(v.Items) != 4 || v.Items[3].ID != "page 3" || v.Items[3].Rank != 4 {
		t.Errorf("stored %+v %v", v, err)
	}
}

func TestNotModifiedThatNobodyAskedForIsAFailureAndTheGoodVersionStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Attempts = 1 }))
	var validators atomic.Int64
	w.upstream.on(func(n int, rw http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" {
			validators.Add(1)
		}
		if n > 1 {
			rw.WriteHeader(http.StatusNotModified)
		}
		return n > 1
	})
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	j := w.until(w.enqueue(Spec{}).ID, Failed)
	if !strings.Contains(j.LastError, "304") || validators.Load() != 0 {
		t.Errorf("%q, %d requests with validators", j.LastError, validators.Load())
	}
	if v, err := w.store.Get(t.Context(), feed.Key("news", nil), 0); err != nil || v.Version != 1 || len(v.Items) != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

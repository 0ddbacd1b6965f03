package jobs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/jobs/sink"
)

// receiver is a webhook's other side: it drops what it has by the version key.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []time.Time
	first  []string       // keys, in the order in which they first came
	times  map[string]int // how often each came
	answer func(n int) (status int, retryAfter string)
}

const hookSecret = "canary-hook-secret"

func newReceiver(t *testing.T, answer func(n int) (int, string)) *receiver {
	r := &receiver{times: map[string]int{}, answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, time.Now())
		status, after := http.StatusOK, ""
		if r.answer != nil {
			status, after = r.answer(len(r.calls))
		}
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		if status != http.StatusOK {
			return
		}
		if !signed(req.Header.Get(sink.HeaderSignature), body) {
			t.Errorf("%s is not signed rightly", req.Header.Get(sink.HeaderKey))
		}
		key := req.Header.Get(sink.HeaderKey)
		if r.times[key]++; r.times[key] == 1 {
			r.first = append(r.first, key)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func signed(header string, body []byte) bool {
	at, mac, _ := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	h := hmac.New(sha256.New, []byte(hookSecret))
	fmt.Fprintf(h, "%s.%s", at, body)
	return hex.EncodeToString(h.Sum(nil)) == mac
}

func (r *receiver) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.first)
}

// came is when each call came, and how often each key did.
func (r *receiver) came() (calls []time.Time, times map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls), maps.Clone(r.times)
}

func withSinks(all ...sink.Config) option { return withFeed(func(f *Feed) { f.Sinks = all }) }

// states are the feed's sinks by kind.
func (w *world) states() map[string]sink.State {
	w.t.Helper()
	all, err := w.client.Sinks(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]sink.State{}
	for _, s := range all["news"] {
		out[s.Kind] = s
	}
	return out
}

// delivered waits until every sink has the version.
func (w *world) delivered(version int64) {
	w.t.Helper()
	w.eventually(30*time.Second, func() string {
		for kind, s := range w.states() {
			if s.Delivered < version {
				return fmt.Sprintf("%s has %+v", kind, s)
			}
		}
		return ""
	})
}

func TestEveryVersionComesToEverySinkOnceWhileNothingFails(t *testing.T) {
	t.Parallel()
	hook, dir := newReceiver(t, nil), t.TempDir()
	w := newWorld(t, withSinks(
		sink.Config{Webhook: hook.URL, Secret: hookSecret},
		sink.Config{File: dir + "/{feed}/{version}.ndjson"},
		sink.Config{Stream: "out"},
	))
	w.work()
	for n := int64(1); n <= 3; n++ {
		w.until(w.enqueue(Spec{}).ID, Done)
		w.delivered(n)
	}
	calls, _ := hook.came()
	if got := hook.keys(); fmt.Sprint(got) != "[news@1 news@2 news@3]" || len(calls) != 3 {
		t.Errorf("%v in %d calls", got, len(calls))
	}
	if names, _ := filepath.Glob(dir + "/news/*"); len(names) != 3 {
		t.Errorf("%q", names)
	}
	if n := w.rdb.XLen(t.Context(), "out").Val(); n != 3 {
		t.Errorf("%d entries", n)
	}
	// A delivery's job ends after what it delivers.
	w.eventually(30*time.Second, func() string {
		jobs, err := w.client.List(t.Context(), Filter{State: Done})
		if err != nil || len(jobs) != 12 {
			return fmt.Sprintf("%d jobs, %v: three fetches and nine deliveries", len(jobs), err)
		}
		return ""
	})
}

func TestWebhookThatWasDownHasEachVersionOnceItIsUp(t *testing.T) {
	t.Parallel()
	down := true
	hook := newReceiver(t, nil)
	hook.answer = func(int) (int, string) {
		if down {
			return http.StatusBadGateway, ""
		}
		return http.StatusOK, ""
	}
	w := newWorld(t, withSinks(sink.Config{Webhook: hook.URL, Secret: hookSecret}))
	w.work()
	for range 3 {
		w.until(w.enqueue(Spec{}).ID, Done)
	}
	w.eventually(20*time.Second, func() string {
		if s := w.states()["webhook"]; s.Failures < 3 || s.LastError == "" {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if h, err := w.store.Head(t.Context(), "news"); err != nil || h.LastError != "" || h.Version != 3 {
		t.Errorf("the feed has come to harm: %+v %v", h, err)
	}
	hook.mu.Lock()
	down = false
	hook.mu.Unlock()
	w.eventually(30*time.Second, func() string {
		if got := hook.keys(); len(got) != 3 {
			return fmt.Sprint(got)
		}
		return ""
	})
	w.eventually(30*time.Second, func() string {
		if s := w.states()["webhook"]; s.LastError != "" || s.Delivered != 3 || s.Lost != 0 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	_, times := hook.came()
	for key, n := range times {
		if n != 1 {
			t.Errorf("%s came %d times", key, n)
		}
	}
}

func TestRetryAfterOfAWebhookIsRespected(t *testing.T) {
	t.Parallel()
	hook := newReceiver(t, func(n int) (int, string) {
		if n == 1 {
			return http.StatusServiceUnavailable, "4"
		}
		return http.StatusOK, ""
	})
	w := newWorld(t, withSinks(sink.Config{Webhook: hook.URL, Secret: hookSecret}))
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	w.delivered(1)
	calls, _ := hook.came()
	if gap := calls[1].Sub(calls[0]); len(calls) != 2 || gap < 4*time.Second {
		t.Errorf("%d calls, the second %s after the first", len(calls), gap)
	}
}

func TestSinkThatNeverWorksEndsVisiblyAndHarmsNobody(t *testing.T) {
	t.Parallel()
	hook := newReceiver(t, func(int) (int, string) { return http.StatusInternalServerError, "" })
	dir := t.TempDir()
	bad := sink.Config{Webhook: hook.URL + "/canary-path?token=canary-query", Secret: hookSecret}
	w := newWorld(t, withSinks(bad, sink.Config{File: dir + "/{feed}/{version}.json"}), withConfig(func(c *Config) { c.SinkAttempts = 2 }))
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	id := deliveryID("news", 1, bad.Name())
	j := w.until(id, Failed)
	if j.Attempts != 2 || !strings.Contains(j.LastError, "answered 500") || j.Feed != "news" || j.Queue != QueueSinks {
		t.Errorf("%+v", j)
	}
	w.eventually(30*time.Second, func() string {
		if s := w.states()["webhook"]; s.Lost != 1 || s.Failures != 2 || s.LastError == "" || s.Delivered != 0 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if s := w.states()["file"]; s.Delivered != 1 {
		t.Errorf("the other sink: %+v", s)
	}
	if h, err := w.store.Head(t.Context(), "news"); err != nil || h.LastError != "" {
		t.Errorf("the feed: %+v %v", h, err)
	}
	w.noCanary()
}

// noCanary looks through all of Redis: payloads, records, ledgers, results.
func (w *world) noCanary() {
	w.t.Helper()
	ctx := w.t.Context()
	keys, err := w.rdb.Keys(ctx, "*").Result()
	if err != nil || len(keys) == 0 {
		w.t.Fatal(err)
	}
	for _, key := range keys {
		text := key
		if dump, err := w.rdb.Dump(ctx, key).Result(); err == nil {
			text += dump
		}
		if all, err := w.rdb.HGetAll(ctx, key).Result(); err == nil {
			text += fmt.Sprint(all) // a dump may be packed
		}
		if strings.Contains(text, "canary") {
			w.t.Errorf("%s holds a secret", key)
		}
	}
}

func TestCrashBetweenStoringAndQueueingLosesNoVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := sink.Config{File: dir + "/{feed}/{version}.json"}
	w := newWorld(t)
	// Workers that do not know the sink store the first version and, as one that dies between the two steps, no delivery.
	first := w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	w.cfg.Feeds[0].Sinks = []sink.Config{c}
	ledger := sink.NewLedger(w.rdb, w.desk)
	if due, err := ledger.Due(t.Context(), "news", c.Name(), 0, 10, false); err != nil || due != 1 {
		t.Fatal(due, err) // as it was while the feed was empty
	}
	for range 2 {
		w.until(w.enqueue(Spec{}).ID, Done)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.work()
	w.eventually(20*time.Second, func() string {
		names, _ := filepath.Glob(dir + "/news/*.json")
		if len(names) != 3 {
			return fmt.Sprint(names)
		}
		return ""
	})
}

func TestNewSinkBeginsWithTheNewestVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t)
	first := w.work()
	for range 3 {
		w.until(w.enqueue(Spec{}).ID, Done)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.cfg.Feeds[0].Sinks = []sink.Config{{File: dir + "/{feed}/{version}.json"}}
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	w.eventually(20*time.Second, func() string {
		names, _ := filepath.Glob(dir + "/news/*.json")
		if fmt.Sprint(names) != fmt.Sprintf("[%[1]s/news/3.json %[1]s/news/4.json]", dir) {
			return fmt.Sprint(names)
		}
		return ""
	})
}

func TestHangingSinkTakesNoSlotFromFetches(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer hang.Close()
	defer close(release)
	w := newWorld(t, withSinks(sink.Config{Webhook: hang.URL}), withConfig(func(c *Config) { c.Concurrency, c.InteractiveSlots = 1, 0 }))
	w.work()
	for range 2 * sinkSlots {
		w.until(w.enqueue(Spec{}).ID, Done)
	}
}

func TestVersionThatIsNoLongerKeptIsAFailureThatSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSinks(sink.Config{Stdout: true}), withFeed(func(f *Feed) { f.History = 1 }))
	h := w.handler()
	h.outlet = sink.NewOutlet(w.rdb, http.DefaultTransport, io.Discard)
	if err := h.enqueueDelivery(t.Context(), "news", 7, "stdout"); err != nil {
		t.Fatal(err)
	}
	w.start(NewWorker(w.cfg, h, w.rdb, w.log))
	if j := w.until(deliveryID("news", 7, "stdout"), Failed); !strings.Contains(j.LastError, "no longer kept") {
		t.Errorf("%+v", j)
	}
}

func TestDeliveryIsCancelledAndFoundAsOtherJobsAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSinks(sink.Config{Stdout: true}))
	if err := w.handler().enqueueDelivery(t.Context(), "news", 1, "stdout"); err != nil {
		t.Fatal(err)
	}
	id := deliveryID("news", 1, "stdout")
	if jobs, err := w.client.List(t.Context(), Filter{Feed: "news"}); err != nil || len(jobs) != 1 || jobs[0].ID != id || jobs[0].State != Pending {
		t.Errorf("%+v %v", jobs, err)
	}
	if _, err := w.client.Cancel(t.Context(), id); err != nil {
		t.Error(err)
	}
	if j := w.get(id); j.State != Cancelled {
		t.Errorf("%+v", j)
	}
}

const (
	childHook = "FW_TEST_HOOK" // beside childSocket: a worker that delivers, until it is killed
	childDir  = "FW_TEST_DIR"
)

// delivering is the config of both processes of the test.
func delivering(target, hook, dir string) Config {
	c := polite(target)
	c.PerHost = PerHost{}
	c.Feeds[0].History = 100
	c.Feeds[0].Sinks = []sink.Config{{Webhook: hook, Secret: hookSecret}, {File: dir + "/{feed}/{version}.ndjson"}}
	return c
}

func TestKilledWorkersLoseNoDelivery(t *testing.T) {
	t.Parallel()
	const versions = 6
	hook, dir := newReceiver(t, nil), t.TempDir()
	w := newWorld(t)
	w.cfg = delivering(w.upstream.URL, hook.URL, dir)
	var err error
	if w.client, err = NewClient(w.cfg, w.rdb, w.store, w.limiter, w.log); err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= versions; n++ {
		child := exec.Command(os.Args[0], "-test.run", "^$")
		child.Env = append(os.Environ(), childSocket+"="+w.redis.Socket(), childTarget+"="+w.upstream.URL, childHook+"="+hook.URL, childDir+"="+dir)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = child.Process.Kill() })
		w.enqueue(Spec{})
		// Killed as soon as the version is stored: before, within or after its deliveries.
		w.eventually(20*time.Second, func() string {
			if h, err := w.store.Head(t.Context(), "news"); err != nil || h.Version < n {
				return fmt.Sprintf("version %d %v", h.Version, err)
			}
			return ""
		})
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	w.work()
	// A fetch that was killed after it stored runs again, and makes one more version.
	var newest int64
	w.eventually(60*time.Second, func() string {
		living, err := w.client.List(t.Context(), Filter{})
		living = slices.DeleteFunc(living, func(j Job) bool { return j.State.Ended() })
		h, herr := w.store.Head(t.Context(), "news")
		newest = h.Version
		names, _ := filepath.Glob(dir + "/news/*.ndjson")
		got := hook.keys()
		if err != nil || herr != nil || len(living) > 0 || int64(len(got)) != newest || int64(len(names)) != newest {
			return fmt.Sprint(err, herr, living, newest, got, names)
		}
		return ""
	})
	if newest < versions {
		t.Errorf("%d versions", newest)
	}
	for n := range newest {
		text, err := os.ReadFile(fmt.Sprintf("%s/news/%d.ndjson", dir, n+1))
		if err != nil || !json.Valid(text) || !slices.Contains(hook.keys(), fmt.Sprintf("news@%d", n+1)) {
			t.Errorf("%d: %q %v", n+1, text, err)
		}
	}
	if left, _ := filepath.Glob(dir + "/news/.*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	calls, _ := hook.came()
	t.Logf("webhook calls: %d for %d versions", len(calls), newest)
}

package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// hangAfter makes Redis hang as soon as it has answered a command.
type hangAfter struct {
	w    *world
	last string // the beginning of its name; one that Redis refused does not count
	once sync.Once
}

func (h *hangAfter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *hangAfter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return next(ctx, cmds) }
}

func (h *hangAfter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), h.last) {
			h.once.Do(h.w.hang)
		}
		return err
	}
}

// change is one request that changes something, and that a server which works would take.
type change struct{ method, path, contentType, body string }

const formType = "application/x-www-form-urlencoded"

// everyChange is one of each route that changes something, and of each form; a route
// that is not here fails the test.
func everyChange(w *world) []change {
	w.Helper()
	all := []change{
		{"POST", "/v1/jobs", jsonType, `{"feed":"news"}`}, {"DELETE", "/v1/jobs/asleep", "", ""},
		{"PUT", "/v1/feeds/pushed", jsonType, `[]`}, {"POST", "/v1/warm", jsonType, `{"client":"c"}`},
		{"POST", "/v1/quotas/youtube/charge", jsonType, `{"id":"a","cost":1}`}, {"POST", "/v1/quotas/youtube/refund", jsonType, `{"id":"a"}`},
		{"POST", "/v1/schedules/news/pause", jsonType, `{}`}, {"POST", "/v1/schedules/news/resume", "", ""}, {"POST", "/v1/schedules/news/trigger", "", ""},
		{"POST", "/monitor/api/queues/scheduled:pause", "", ""}, {"DELETE", "/monitor/api/queues/scheduled/archived_tasks:delete_all", "", ""},
		{"POST", "/v1/jobs", ndjsonType, `{"feed":"news"}` + "\n"},
	}
	for path := range acts {
		all = append(all, change{"POST", "/act/" + path, formType, "name=news&id=x&pool=public&target=t&back=/"})
	}
	seen := map[string]bool{"POST /login": true, "POST /logout": true} // neither asks Redis to change anything
	mux := http.NewServeMux()
	for _, rt := range routes(w.server, http.NotFoundHandler()) {
		if rt.method != get {
			mux.HandleFunc(rt.method+" "+rt.path, func(http.ResponseWriter, *http.Request) {})
		}
	}
	for _, c := range all {
		_, pattern := mux.Handler(httptest.NewRequest(c.method, c.path, nil))
		seen[pattern] = true
	}
	for _, rt := range routes(w.server, http.NotFoundHandler()) {
		if rt.method != get && !seen[rt.method+" "+rt.path] {
			w.Errorf("%s %s is not looked at", rt.method, rt.path)
		}
	}
	return all
}

// quickly asks and fails where there is no answer long before the client alone,
// which would wait for a minute, had given up.
func (w *world) quickly(c change) *httptest.ResponseRecorder {
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		answered <- w.do(ask{method: c.method, path: c.path, header: map[string]string{"Content-Type": c.contentType}, body: c.body})
	}()
	select {
	case rec := <-answered:
		return rec
	case <-time.After(40 * time.Second):
		w.Errorf("%s %s: no answer", c.method, c.path)
		return httptest.NewRecorder()
	}
}

func TestAChangeIsNotBegunWhileRedisHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, _ *Parts, p *pace) { p.look = 200 * time.Millisecond })
	w.hang()
	var all sync.WaitGroup
	for _, c := range everyChange(w) {
		all.Go(func() {
			rec := w.quickly(c)
			if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || !strings.Contains(rec.Body.String(), "nothing was done") {
				t.Errorf("%s %s: %d %s, want 503, Retry-After, and that nothing was done", c.method, c.path, rec.Code, rec.Body)
			}
		})
	}
	all.Wait()
	if rec := w.quickly(change{"POST", "/logout", formType, ""}); rec.Code != 303 {
		t.Errorf("a log-out while Redis hangs: %d %s", rec.Code, rec.Body)
	}
}

func TestAChangeThatRedisDidNotAnswerIsSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []change{
		{"POST", "/v1/jobs", jsonType, `{"feed":"news"}`},
		{"POST", "/v1/quotas/youtube/charge", jsonType, `{"id":"a","cost":1}`},
		{"DELETE", "/v1/jobs/asleep", "", ""},
		{"POST", "/act/quota/block", formType, "name=youtube&back=/"},
		{"POST", "/monitor/api/queues/scheduled:pause", "", ""},
		{"POST", "/v1/jobs", ndjsonType, `{"feed":"news"}` + "\n" + `{"feed":"news"}` + "\n"},
	} {
		t.Run(c.method+c.path+c.contentType, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(_ *Config, _ *Parts, p *pace) { p.look = 9 * time.Second }) // longer than asynqmon waits by itself
			w.snoozed("asleep", "news", "", time.Now().Add(time.Hour))
			w.rdb.AddHook(&hangAfter{w: w, last: "ping"})
			rec := w.quickly(c)
			if !strings.Contains(rec.Body.String(), notKnown) {
				t.Errorf("%d %s, want that it is not known", rec.Code, rec.Body)
			}
			if c.contentType != ndjsonType {
				w.wantStatus(rec, 503)
				return
			}
			lines := strings.Split(strings.TrimSpace(rec.Body.String()), "\n")
			if rec.Code != 202 || len(lines) != 2 || !strings.Contains(lines[1], `{"line":2,"error":"Redis does not answer any more: this line and what follows was not enqueued"`) {
				t.Errorf("many jobs: %d %s", rec.Code, rec.Body)
			}
		})
	}
}

func TestWhatWasDoneBeforeRedisHungIsSaidToBeDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, _ *Parts, p *pace) { p.look = 20 * time.Second })
	w.rdb.AddHook(&hangAfter{w: w, last: "eval"})
	rec := w.quickly(change{"POST", "/act/quota/block", formType, "name=youtube&back=/"})
	if rec.Code != 503 || !strings.Contains(rec.Body.String(), "it was done; since then") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestASlowSenderOfABodyHasItsTimeAndTheChangeItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // its time passes only while all wait
		r, end := hurried(httptest.NewRequest("POST", "/v1/jobs", strings.NewReader("body")), 50*time.Millisecond)
		defer end()
		h, _ := r.Context().(*hurry)
		h.pause()
		before, _ := h.Deadline()
		time.Sleep(time.Until(before) + 100*time.Millisecond)
		if err := h.Err(); err != nil {
			t.Fatalf("while the body comes: %v", err)
		}
		h.resume()
		if after, _ := h.Deadline(); !after.After(before) {
			t.Error("its time did not begin anew")
		}
		<-h.Done()
		if err := h.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
		child, cancel := context.WithTimeout(h, time.Hour)
		defer cancel()
		<-child.Done()
		if !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("what is made of it ended with %v", child.Err())
		}
	})
}

func TestAChangeWhoseSenderHasGoneEndsAsThatDid(t *testing.T) {
	t.Parallel()
	own, leave := context.WithCancel(t.Context())
	r, end := hurried(httptest.NewRequestWithContext(own, "POST", "/v1/jobs", nil), time.Hour)
	leave()
	<-r.Context().Done()
	if err := r.Context().Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	end()
	end() // what has ended stays so
}

func TestAChangeWithoutAnyTimeEndsAtOnce(t *testing.T) {
	t.Parallel()
	for range 1000 { // its end may come before it is whole
		r, end := hurried(httptest.NewRequest("POST", "/v1/jobs", strings.NewReader("body")), 0)
		<-r.Context().Done()
		if err := r.Context().Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("ended with %v", err)
		}
		end()
	}
}

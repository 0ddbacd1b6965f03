package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// offClock is a machine's clock that a test sets.
type offClock struct{ off atomic.Int64 }

func (c *offClock) now() time.Time        { return time.Now().Add(time.Duration(c.off.Load())) }
func (c *offClock) set(off time.Duration) { c.off.Store(int64(off)) }

// workBy starts a worker whose machine has that clock, and looks at it often.
func (w *world) workBy(c *offClock) *Worker {
	w.t.Helper()
	worker := NewWorker(w.cfg, w.handler(), w.rdb, w.log)
	worker.clock, worker.lookEvery = c.now, 20*time.Millisecond
	return w.start(worker)
}

func TestWorkerWithAWrongClockStartsButTakesNothingUntilItIsRight(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{5 * time.Minute, -5 * time.Minute, 6 * time.Second, -6 * time.Second} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := &offClock{}
			c.set(off)
			j := w.enqueue(Spec{})
			worker := w.workBy(c)
			var wrong *ClockError
			if err := worker.Ready(t.Context()); !errors.As(err, &wrong) || (wrong.Off-off).Abs() > time.Second {
				t.Errorf("ready: %v, want that the clock is %s off", err, off)
			}
			if j := w.get(j.ID); j.State != Pending {
				t.Errorf("%+v", j)
			}
			c.set(0)
			w.until(j.ID, Done)
			if err := worker.Ready(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClockThatStepsInMidRunStopsTheTakingInGoodOrderAndJobsAreTakenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour), withConfig(func(c *Config) { c.Shutdown = 100 * time.Millisecond; c.PerHost.Running = 8 }))
	arrived := make(chan struct{}, 9)
	var hang atomic.Bool
	w.upstream.on(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		hangs := hang.CompareAndSwap(true, false)
		if hangs {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
		return hangs
	})
	c := &offClock{}
	worker := w.workBy(c)
	for round, off := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		hang.Store(true)
		slow := w.enqueue(Spec{ID: fmt.Sprint("slow-", round), Priority: Background})
		<-arrived
		c.set(off)
		w.eventually(30*time.Second, func() string {
			info, err := w.client.inspector.GetTaskInfo(QueueScheduled, slow.ID)
			if err != nil || info.State != asynq.TaskStatePending || info.Retried != 0 || worker.taking() {
				return fmt.Sprintf("its task is not back: %+v %v", info, err)
			}
			return ""
		})
		var wrong *ClockError
		if err := worker.Ready(t.Context()); !errors.As(err, &wrong) {
			t.Errorf("ready: %v", err)
		}
		if j := w.get(slow.ID); j.State != Pending || j.Attempts != 0 || j.Crashes != 0 {
			t.Errorf("%+v", j)
		}
		w.idle(hostName(w.host()))
		other := w.enqueue(Spec{})
		c.set(0)
		if j := w.until(slow.ID, Done); j.Attempts != 0 || j.Crashes != 0 || j.Sent != 2 {
			t.Errorf("%+v", j)
		}
		w.until(other.ID, Done)
	}
	if n := w.charged(0); n != int64(w.upstream.count()) {
		t.Errorf("%d charged for %d requests", n, w.upstream.count())
	}
}

// asynq's own leases and delays are stamped by the machine's clock, within the
// bound that a worker keeps; promises are not.
func TestPromisesAreRedissWhateverTheMachinesClockSays(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{4 * time.Second, -4 * time.Second} {
		for _, err := range []error{&SnoozeError{Until: time.Now().Add(time.Minute)}, &retryError{at: time.Now().Add(time.Minute), err: errors.New("x")}} {
			// A worker that is ahead forwards early by as much: not before the promise.
			local := time.Now().Add(off)
			due := local.Add(retryDelay(err, local)).Truncate(time.Second)
			forwarded := due.Add(-max(off, 0)) // when a worker that is that much ahead sees it due
			if early := time.Minute - time.Until(forwarded); early > 0 {
				t.Errorf("clock %s off: asynq would release it %s before its promise", off, early)
			}
		}
	}
}

// An enqueuer's or a web server's clock that is off by minutes changes nothing: what
// is counted from now is counted by Redis's clock.
func TestAClientsClockDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} { // of Redis's clock, seen from here
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withFeed(func(f *Feed) { f.TTL = time.Minute }))
			rdb := testredis.OffClock(t, off, "--save", "", "--appendonly", "no").Client()
			t.Cleanup(func() { _ = rdb.Close() })
			store := feed.New(rdb, luarun.NewDesk(rdb))
			client, err := NewClient(w.cfg, rdb, store, w.limiter, w.log)
			if err != nil {
				t.Fatal(err)
			}
			theirs := func() time.Time {
				now, err := rdb.Time(t.Context()).Result()
				if err != nil {
					t.Fatal(err)
				}
				return now
			}
			near := func(what string, at, want time.Time) {
				t.Helper()
				if at.Sub(want).Abs() > 2*time.Minute {
					t.Errorf("%s: %s, want about %s", what, at, want)
				}
			}
			for _, s := range []Spec{
				{Feed: "news", ID: "expires", Expires: 5 * time.Minute},
				{Feed: "news", ID: "later", Expires: 5 * time.Minute, In: 5 * time.Minute},
			} {
				j, err := client.Enqueue(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				info, err := client.inspector.GetTaskInfo(j.Queue, j.ID)
				if err != nil {
					t.Fatal(err)
				}
				p, err := decodePayload(info.Payload)
				if err != nil {
					t.Fatal(err)
				}
				near(s.ID+" expires", fromMillis(p.ExpiresAt), theirs().Add(s.In+s.Expires))
				if s.In > 0 {
					if j.State != Scheduled || j.NextAt == nil {
						t.Fatalf("%+v", j)
					}
					near(s.ID+" is due", *j.NextAt, theirs().Add(s.In))
				}
			}

			now := theirs()
			if _, err := store.Put(t.Context(), feed.Head{Key: "news"}, now, now, feed.Content{Items: []source.Item{{ID: "a"}}}, 1); err != nil {
				t.Fatal(err)
			}
			got, err := client.Read(t.Context(), "news", nil, 0)
			if err != nil || got.State != "fresh" {
				t.Errorf("what has just come is %s, %v", got.State, err)
			}
			warmed, err := client.warm(t.Context(), w.cfg.Feeds[0], got.Head, client.now(t.Context()))
			if err != nil || warmed.Action != WarmFresh {
				t.Errorf("and to be warmed %+v, %v", warmed, err)
			}
			if err := store.Fail(t.Context(), "empty", "j", "no", now); err != nil {
				t.Fatal(err)
			}
			var not *NotReadyError
			err = client.await(t.Context(), Feed{Name: "empty"}, "empty", nil, 0)
			if !errors.As(err, &not) || not.RetryAfter > refreshPause || !strings.Contains(not.Reason, "failed") {
				t.Errorf("a feed that has just failed: %v", err)
			}
		})
	}
}

func TestFailureOfAClockThatRanAheadDoesNotShutItsFeed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for ago, want := range map[time.Duration]time.Duration{
		0: refreshPause, 10 * time.Second: refreshPause - 10*time.Second, refreshPause: 0, time.Hour: 0,
		-time.Second: refreshPause, -6 * time.Hour: 0,
	} {
		if got := pauseOf(feed.Head{LastErrorAt: now.Add(-ago)}, now); got != want {
			t.Errorf("%s after it failed: a pause of %s, want %s", ago, got, want)
		}
	}
	if got := pauseOf(feed.Head{}, now); got != 0 {
		t.Errorf("never failed: %s", got)
	}
}

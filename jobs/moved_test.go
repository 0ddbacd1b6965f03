package jobs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/quota"
)

// moved is a world in which forty jobs of a feed wait in the line of q, and one of
// another feed behind them; then the config that change makes holds. It answers the
// jobs of the feed that changed.
func moved(t *testing.T, change func([]Feed) []Feed) (*world, []Job) {
	t.Helper()
	w := newWorld(t, func(w *world) {
		hour := []quota.Window{{Limit: 100, Per: time.Hour}}
		w.quotas = []quota.Config{{Name: "q", Windows: hour}, {Name: "p", Windows: hour}}
		news := w.cfg.Feeds[0]
		news.Quota = "q"
		stays := news
		stays.Name = "stays"
		w.cfg.Feeds = []Feed{news, stays}
	})
	w.fill(100)
	h := w.handler()
	w.start(NewWorker(w.cfg, h, w.rdb, w.log))
	var all []Job
	for range 40 {
		all = append(all, w.enqueue(Spec{}))
	}
	for _, j := range all {
		w.until(j.ID, Snoozed)
		long := time.Now().Add(-configLag).UnixMilli()
		if err := w.rdb.HSet(t.Context(), recordKey(j.ID), "snoozed_ms", long).Err(); err != nil {
			t.Fatal(err)
		}
	}
	w.until(w.enqueue(Spec{Feed: "stays"}).ID, Snoozed)
	anew := change(w.cfg.Feeds)
	if err := errors.Join(h.catalog.Reload(anew), w.client.catalog.Reload(anew)); err != nil {
		t.Fatal(err)
	}
	if err := w.client.WakeMoved(t.Context()); err != nil { // as a reload does
		t.Fatal(err)
	}
	return w, all
}

func (w *world) onlyOneWaits() {
	w.t.Helper()
	w.eventually(30*time.Second, func() string {
		s, err := w.limiter.State(w.t.Context(), "q")
		if err != nil || s.Interactive.Waiting != 1 {
			return fmt.Sprintf("%d wait for q, %v", s.Interactive.Waiting, err)
		}
		return ""
	})
}

func TestJobsOfAFeedThatHasAnotherQuotaLeaveTheOldOnesLine(t *testing.T) {
	t.Parallel()
	w, all := moved(t, func(f []Feed) []Feed {
		news := f[0]
		news.Quota = "p"
		return []Feed{news, f[1]}
	})
	for _, j := range all {
		w.until(j.ID, Done)
	}
	w.onlyOneWaits()
}

func TestJobsWhoseQuotaIsRenamedNeedNotSleepToTheOldOnesPromise(t *testing.T) {
	t.Parallel()
	w, all := moved(t, func(f []Feed) []Feed {
		for i := range f {
			f[i].Quota = "p"
		}
		return f
	})
	if err := w.limiter.Reload(w.quotas[1:]); err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		w.until(j.ID, Done)
	}
}

func TestJobsOfAFeedThatIsNoMoreLeaveTheLine(t *testing.T) {
	t.Parallel()
	w, all := moved(t, func(f []Feed) []Feed { return f[1:] })
	for _, j := range all {
		w.until(j.ID, Failed)
	}
	w.onlyOneWaits()
}

func TestCancelledJobLeavesTheLineThatItStandsInThoughItsFeedHasAnotherQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour))
	w.fill(100)
	w.work()
	j := w.until(w.enqueue(Spec{}).ID, Snoozed)
	anew := w.cfg.Feeds[0]
	anew.Quota = ""
	if err := w.client.catalog.Reload([]Feed{anew}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Cancel(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	if s, err := w.limiter.State(t.Context(), "q"); err != nil || s.Interactive.Waiting != 0 {
		t.Errorf("%d wait for q, %v", s.Interactive.Waiting, err)
	}
}

// reloading is an allocator that changes the config while a job asks for an endpoint.
type reloading struct {
	Allocator
	change func()
}

func (a reloading) Take(ctx context.Context, pool string, o allocation.TakeOptions) (allocation.Allocation, error) {
	a.change()
	return a.Allocator.Take(ctx, pool, o)
}

func TestUnitsGoBackToTheQuotaThatGaveThemThoughTheConfigChangesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(Feed) []Feed{
		"another quota": func(f Feed) []Feed { f.Quota = "p"; return []Feed{f} },
		"no quota":      func(f Feed) []Feed { f.Quota = ""; return []Feed{f} },
		"no such feed":  func(Feed) []Feed { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				hour := []quota.Window{{Limit: 100, Per: time.Hour}}
				w.quotas = []quota.Config{{Name: "q", Windows: hour}, {Name: "p", Windows: hour}}
				w.cfg.Feeds[0].Quota, w.cfg.Feeds[0].Pool = "q", "proxies" // in which there is nothing
			})
			h := w.handler()
			h.pools = reloading{h.pools, func() {
				if err := h.catalog.Reload(change(w.cfg.Feeds[0])); err != nil {
					t.Error(err)
				}
			}}
			r := &run{ID: "j", Feed: "news", Key: "news", Queue: QueueInteractive, token: newToken(), payload: payload{Schema: 1, Feed: "news"}}
			if err := h.begin(t.Context(), r, false); err != nil {
				t.Fatal(err)
			}
			f, src, err := h.catalog.find("news")
			if err != nil {
				t.Fatal(err)
			}
			var s *SnoozeError
			if _, err := h.travel(t.Context(), r, f, src, w.log); !errors.As(err, &s) {
				t.Fatalf("travelled: %v", err)
			}
			if n := w.charged(0); n != 0 {
				t.Errorf("%d units are charged for no request", n)
			}
		})
	}
}

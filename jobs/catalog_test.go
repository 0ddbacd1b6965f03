package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/jobs/source"
)

func syndicated(names ...string) (feeds []Feed) {
	for _, n := range names {
		feeds = append(feeds, Feed{Name: n, Source: source.Config{Kind: "syndication", URL: "https://example.org/" + n}})
	}
	return feeds
}

func TestCatalogReplacesItsFeedsAtOnce(t *testing.T) {
	t.Parallel()
	c, err := NewCatalog(syndicated("b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	// Each reader sees one config or the other, never a feed without its source.
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if f, src, err := c.find("a"); err != nil || src == nil || f.Pool != Direct {
					t.Errorf("%+v %v %v", f, src, err)
					return
				}
				if n := len(c.Feeds()); n != 2 {
					t.Errorf("%d feeds", n)
					return
				}
			}
		})
	}
	for i := range 200 {
		if err := c.Reload(syndicated("a", fmt.Sprintf("n%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
	var unknown *UnknownFeedError
	if _, _, err := c.find("b"); !errors.As(err, &unknown) {
		t.Errorf("a feed that was taken out: %v", err)
	}
	if f := c.Feeds(); f[0].Name != "a" || f[1].Name != "n199" || f[1].Cost != 1 || f[1].Attempts != 1 {
		t.Errorf("%+v", f)
	}
}

func TestCatalogKeepsItsFeedsWhenNewOnesAreWrong(t *testing.T) {
	t.Parallel()
	c, err := NewCatalog(syndicated("a"))
	if err != nil {
		t.Fatal(err)
	}
	bad := append(syndicated("b", "twice", "twice"), Feed{Name: "odd", Source: source.Config{Kind: "none"}})
	err = c.Reload(bad)
	if err == nil || !strings.Contains(err.Error(), `"twice"`) || !strings.Contains(err.Error(), `"odd"`) {
		t.Errorf("want both faults: %v", err)
	}
	if f := c.Feeds(); len(f) != 1 || f[0].Name != "a" {
		t.Errorf("%+v", f)
	}
	if _, err := NewCatalog(bad); err == nil {
		t.Error("a catalog of faults")
	}
}

// knowsLess is a worker that has not read the config of its client yet.
func knowsLess(t *testing.T) (*world, *Handler) {
	t.Helper()
	w := newWorld(t)
	h := w.handler()
	if err := h.catalog.Reload(syndicated("other")); err != nil {
		t.Fatal(err)
	}
	worker := NewWorker(w.cfg, h, w.rdb, w.log)
	if err := worker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Stop(context.Background()) })
	return w, h
}

func TestJobOfAFeedThatItsWorkerWillKnowSoonWaits(t *testing.T) {
	t.Parallel()
	w, h := knowsLess(t)
	j := w.enqueue(Spec{})
	if j = w.until(j.ID, Snoozed); !strings.Contains(j.LastError, `no feed "news"`) || j.Attempts != 0 {
		t.Errorf("%+v", j)
	}
	if err := h.catalog.Reload(w.cfg.Feeds); err != nil {
		t.Fatal(err)
	}
	if j = w.until(j.ID, Done); j.Attempts != 0 {
		t.Errorf("%+v", j)
	}
}

func TestJobOfAFeedThatStaysUnknownFails(t *testing.T) {
	t.Parallel()
	w, _ := knowsLess(t)
	j := w.until(w.enqueue(Spec{}).ID, Snoozed)
	long := time.Now().Add(-configLag).UnixMilli()
	if err := w.rdb.HSet(t.Context(), recordKey(j.ID), "snoozed_ms", long).Err(); err != nil {
		t.Fatal(err)
	}
	if j = w.until(j.ID, Failed); !strings.Contains(j.LastError, `no feed "news"`) {
		t.Errorf("%+v", j)
	}
}

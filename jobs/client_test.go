package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestEnqueueRefusesWhatCannotBeRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, s := range map[string]Spec{
		"a priority that is none": {Feed: "news", Priority: "urgent"},
		"an id with a blank":      {Feed: "news", ID: "a b"},
		"an id with a brace":      {Feed: "news", ID: "a{b}"},
		"an id too long":          {Feed: "news", ID: strings.Repeat("x", 129)},
		"a nameless parameter":    {Feed: "news", Params: map[string]string{"": "v"}},
		"a year without a name":   {Feed: "news", At: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))},
		"a payload too large":     {Feed: "news", Params: map[string]string{"k": strings.Repeat("x", MaxPayload)}},
	} {
		var se *SpecError
		if _, err := w.client.Enqueue(t.Context(), s); !errors.As(err, &se) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var uf *UnknownFeedError
	for _, name := range []string{"new", "nesw"} {
		if _, err := w.client.Enqueue(t.Context(), Spec{Feed: name}); !errors.As(err, &uf) || uf.Near != "news" {
			t.Errorf("unknown feed: %v", err)
		}
	}
}

func TestOneIDIsOneJobHoweverOftenItIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		other := w.cfg.Feeds[0]
		other.Name = "other"
		w.cfg.Feeds = append(w.cfg.Feeds, other)
	})
	for range 3 {
		if j := w.enqueue(Spec{ID: "same"}); j.ID != "same" || j.State != Pending {
			t.Fatalf("%+v", j)
		}
	}
	var taken *IDTakenError
	if _, err := w.client.Enqueue(t.Context(), Spec{Feed: "other", ID: "same"}); !errors.As(err, &taken) {
		t.Errorf("another feed took the ID: %v", err)
	}
	w.work()
	w.until("same", Done)
	if j := w.enqueue(Spec{ID: "same"}); j.State != Done || w.upstream.count() != 1 {
		t.Errorf("%+v after %d requests", j, w.upstream.count())
	}
}

func TestFullQueueRefusesAndTakesAgainWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.QueueLimits[QueueInteractive] = 2 }))
	w.enqueue(Spec{})
	w.enqueue(Spec{At: time.Now().Add(time.Hour)})
	var full *FullError
	if _, err := w.client.Enqueue(t.Context(), Spec{Feed: "news"}); !errors.As(err, &full) || full.RetryAfter <= 0 || full.Limit != 2 {
		t.Fatalf("a third job: %v", err)
	}
	w.enqueue(Spec{Priority: Background})
	w.work()
	w.eventually(30*time.Second, func() string {
		if _, err := w.client.Enqueue(t.Context(), Spec{Feed: "news"}); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestJobForLaterRunsAtItsInstantAndNotBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := time.Now().Add(1300 * time.Millisecond)
	j := w.enqueue(Spec{At: at})
	if j.State != Scheduled || j.NextAt == nil || !j.NextAt.Equal(at) {
		t.Errorf("%+v", j)
	}
	w.work()
	if got := w.get(j.ID); got.State != Scheduled {
		t.Errorf("at once: %+v", got)
	}
	j = w.until(j.ID, Done)
	if late := j.EndedAt.Sub(at); late < -time.Millisecond {
		t.Errorf("%s before its instant", -late)
	}
}

// A job that ends between two reads stands among those that live and among
// those that have ended.
func TestJobThatMovesWhileItIsListedIsListedOnce(t *testing.T) {
	l := &listing{f: Filter{Limit: 3}, skip: 1, seen: map[string]bool{}}
	for _, id := range []string{"a", "a", "b", "b", "c", "a"} {
		l.add(Job{ID: id})
	}
	if len(l.out) != 2 || l.out[0].ID != "b" || l.out[1].ID != "c" {
		t.Errorf("listed %+v, want b and c: a is on the page before", l.out)
	}
}

func TestListFindsJobsByFeedAndState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		other := w.cfg.Feeds[0]
		other.Name = "other"
		w.cfg.Feeds = append(w.cfg.Feeds, other)
	})
	for i := range 5 {
		w.enqueue(Spec{ID: fmt.Sprintf("n%d", i)})
		w.enqueue(Spec{Feed: "other", ID: fmt.Sprintf("o%d", i), Priority: Background, At: time.Now().Add(time.Hour)})
	}
	list := func(f Filter) int {
		t.Helper()
		jobs, err := w.client.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return len(jobs)
	}
	for _, c := range []struct {
		f    Filter
		want int
	}{
		{Filter{}, 10}, {Filter{Feed: "other"}, 5}, {Filter{State: Pending}, 5}, {Filter{State: Scheduled, Feed: "news"}, 0},
		{Filter{Limit: 3}, 3}, {Filter{Limit: 3, Page: 4}, 1}, {Filter{State: Done}, 0},
	} {
		if n := list(c.f); n != c.want {
			t.Errorf("%+v: %d jobs, want %d", c.f, n, c.want)
		}
	}
	w.work()
	for i := range 5 {
		w.until(fmt.Sprintf("n%d", i), Done)
	}
	// The list follows the record that says done.
	w.eventually(30*time.Second, func() string {
		if n := list(Filter{State: Done, Feed: "news"}); n != 5 {
			return fmt.Sprintf("%d done", n)
		}
		return ""
	})
	if n := list(Filter{State: Done, Feed: "other"}); n != 0 {
		t.Errorf("%d of another feed done", n)
	}
}

func TestParametersOfAJobFillAKeyOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.until(w.enqueue(Spec{Params: map[string]string{"q": "a b&c}"}}).ID, Done)
	if h, err := w.store.Head(t.Context(), "news"); err != nil || !h.Empty() {
		t.Errorf("the feed itself was filled: %+v %v", h, err)
	}
	if r, err := w.client.Read(t.Context(), "news", map[string]string{"q": "a b&c}"}, 0); err != nil || len(r.Items) != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestReaderOfAFeedWhoseQuotaRefusesHearsTheJobsInstantAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(10, time.Hour))
	w.fill(10)
	w.work()
	var nr *NotReadyError
	begun := time.Now()
	if _, err := w.client.Read(t.Context(), "news", nil, time.Minute); !errors.As(err, &nr) {
		t.Fatal(err)
	}
	if nr.RetryAfter < 50*time.Minute || time.Since(begun) > 20*time.Second {
		t.Errorf("%v after %s", nr, time.Since(begun))
	}
	// The refresh is under way: no further reader makes another.
	if _, err := w.client.Read(t.Context(), "news", nil, 0); !errors.As(err, &nr) || nr.RetryAfter < 50*time.Minute {
		t.Errorf("second reader: %v", err)
	}
	if jobs, err := w.client.List(t.Context(), Filter{}); err != nil || len(jobs) != 1 {
		t.Errorf("%d jobs %v", len(jobs), err)
	}
}

func TestReadersOfAFailingFeedDoNotSpendItsQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withQuota(100, time.Hour), withFeed(func(f *Feed) { f.Attempts = 1 }))
	w.upstream.on(func(_ int, rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusNotFound)
		return true
	})
	w.work()
	for range 10 {
		var nr *NotReadyError
		if _, err := w.client.Read(t.Context(), "news", nil, 5*time.Second); !errors.As(err, &nr) {
			t.Fatal(err)
		}
	}
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d requests for ten readers", n)
	}
}

func TestStaleFeedIsServedAtOnceAndRefreshedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.TTL = time.Millisecond }))
	first := w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r, err := w.client.Read(t.Context(), "news", nil, time.Minute)
		if err != nil || r.Version.Version != 1 || r.State != "updating" {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if jobs, err := w.client.List(t.Context(), Filter{State: Pending}); err != nil || len(jobs) != 1 {
		t.Errorf("%d refreshes %v", len(jobs), err)
	}
}

func TestRequestTextsAreReadStrictly(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		``, `[]`, `"news"`, `{"feed":"news"} {}`, `{"feed":"news","tok":1}`, `{"feed":1}`, `{"feed":"news","params":{"a":[1]}}`, `{"feed":"news","params":{"a":null}}`, `{"feed":"news","params":"a=b"}`, `{"feed":"news","feed":"other"}`, `{"feed":"news","FEED":"other"}`, `{`, "{\"feed\":\"news\"",
	} {
		var se *SpecError
		if _, err := DecodeRequest([]byte(bad)); !errors.As(err, &se) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, r := range []Request{
		{}, {Feed: "f", In: "5"}, {Feed: "f", In: "-5s"}, {Feed: "f", At: "tomorrow"}, {Feed: "f", In: "5s", At: "2026-01-01T00:00:00Z"}, {Feed: "f", Expires: "0s"},
	} {
		var se *SpecError
		if _, err := r.Spec(); !errors.As(err, &se) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	r, err := DecodeRequest([]byte(`{"feed":"f","params":{"a":"b","n":5,"t":true},"param":{"c":"d"},"priority":"scheduled","in":"1d","expires":"90s","id":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.Spec(); err != nil || s.In != 24*time.Hour || s.Expires != 90*time.Second || s.Priority != Background || fmt.Sprint(s.Params) != "map[a:b c:d n:5 t:true]" {
		t.Errorf("%+v %v", s, err)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"feed":"f","params":{"a":"b"},"at":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRequest(b)
		if err != nil {
			return
		}
		if s, err := r.Spec(); err == nil && s.Feed == "" {
			t.Error("a job without a feed")
		}
	})
}

func FuzzDecodePayload(f *testing.F) {
	f.Add([]byte(`{"feed":"f","v":1,"tick":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decodePayload(b); err == nil && p.Feed == "" {
			t.Error("a payload without a feed")
		}
	})
}

package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// A reader of a feed that nobody fetches waits for whoever fills it.
func TestReadersOfAPushFeedWaitForItsContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Source = source.Config{Kind: "push"} }))
	var nr *NotReadyError
	if _, err := w.client.Read(t.Context(), "news", nil, 0); !errors.As(err, &nr) || nr.Reason != nothingPushed {
		t.Errorf("%v", err)
	}
	if _, err := w.client.Read(t.Context(), "news", nil, 10*time.Millisecond); !errors.As(err, &nr) || !strings.HasSuffix(nr.Reason, nothingPushed) {
		t.Errorf("after a wait: %v", err)
	}
	// Nor does anybody else make a job of it.
	var wrong *SpecError
	if _, err := w.client.Enqueue(t.Context(), Spec{Feed: "news"}); !errors.As(err, &wrong) || !strings.Contains(wrong.Problem, "feeds put news") {
		t.Errorf("a job that can only fail: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		r, err := w.client.Read(t.Context(), "news", nil, 20*time.Second)
		if err == nil && r.Version.Version != 1 {
			err = fmt.Errorf("%+v", r)
		}
		done <- err
	}()
	w.eventually(30*time.Second, func() string {
		if n := waiting(w.client, "news"); n != 1 {
			return fmt.Sprint(n, " wait")
		}
		return ""
	})
	if _, err := w.client.Push(t.Context(), "news", Put{Body: []byte(`[{"id":"a"}]`)}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	// Stale, it is given as it is: there is nobody to ask.
	h := feed.Head{Key: "news", Version: 1, FetchedAt: time.Now().Add(-2 * time.Hour)}
	f, _ := w.client.Feed("news")
	if state := w.client.Freshen(t.Context(), f, nil, h); state != "stale" {
		t.Error(state)
	}
	if list, err := w.client.List(t.Context(), Filter{}); err != nil || len(list) != 0 {
		t.Errorf("jobs of a feed that nobody fetches: %v %v", list, err)
	}
}

func TestEachOfManyPutsAtATimeIsAVersionOfItsOwn(t *testing.T) {
	t.Parallel()
	const writers = 40
	w := newWorld(t, withFeed(func(f *Feed) { f.Source, f.History = source.Config{Kind: "push"}, writers }))
	versions := make(chan int64, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			got, err := w.client.Push(t.Context(), "news", Put{Body: fmt.Appendf(nil, `[{"id":"%d"}]`, i)})
			if err != nil || !got.New {
				t.Errorf("%d: %+v %v", i, got, err)
			}
			v, err := w.store.Get(t.Context(), "news", got.Version)
			if err != nil || len(v.Items) != 1 || v.Items[0].ID != strconv.Itoa(i) {
				t.Errorf("%d: version %d holds %+v, %v", i, got.Version, v.Items, err)
			}
			versions <- got.Version
		})
	}
	all.Wait()
	close(versions)
	seen := map[int64]bool{}
	for v := range versions {
		seen[v] = true
	}
	if len(seen) != writers {
		t.Errorf("%d versions of %d puts", len(seen), writers)
	}
}

func TestPutThatCannotBeTheNewestSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Source = source.Config{Kind: "push"} }))
	ahead := time.Now().Add(time.Minute) // the clock of a Redis that has failed over since
	if _, err := w.store.Put(t.Context(), feed.Head{Key: "news"}, ahead, ahead, feed.Content{Items: []source.Item{{ID: "a"}}}, 3); err != nil {
		t.Fatal(err)
	}
	if got, err := w.client.Push(t.Context(), "news", Put{Body: []byte(`[{"id":"b"}]`)}); !errors.Is(err, errPushedBefore) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestPushIsAVersionAsAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Source = source.Config{Kind: "push"} }), withConfig(func(c *Config) {
		f := c.Feeds[0]
		f.Name, f.Source = "fetched", source.Config{Kind: "syndication", URL: "https://example.org/"}
		c.Feeds = append(c.Feeds, f)
	}))
	push := func(p Put) (Pushed, error) { return w.client.Push(t.Context(), "news", p) }
	got, err := push(Put{Body: []byte(`[{"id":"a","title":"A"},{"id":"b"}]`)})
	if err != nil || got != (Pushed{Feed: "news", Version: 1, New: true, Items: 2, First: true}) {
		t.Fatalf("%+v %v", got, err)
	}
	v1, err := w.store.Get(t.Context(), "news", 0)
	if err != nil || v1.ContentType != "application/json" || string(v1.Page(1)) != `[{"id":"a","title":"A"},{"id":"b"}]` {
		t.Errorf("%+v %v", v1, err)
	}
	if got, err = push(Put{Body: []byte(`{"id":"b"}` + "\n" + `{"id":"a","title":"A"}` + "\n" + `{"id":"c"}`), ContentType: "application/x-ndjson"}); err != nil || got.Version != 2 || !got.New || got.First {
		t.Errorf("%+v %v", got, err)
	}
	v2, err := w.store.Get(t.Context(), "news", 0)
	if err != nil || len(v2.Items) != 3 || !v2.Items[1].FirstSeen.Equal(v1.Items[0].FirstSeen) || v2.Items[0].RankChange == nil || *v2.Items[0].RankChange != 1 || v2.Items[2].RankChange != nil {
		t.Errorf("%+v %v", v2.Items, err)
	}
	h, err := w.store.Head(t.Context(), "news")
	if err != nil || h.State(time.Now(), time.Hour) != "fresh" {
		t.Errorf("%+v %v", h, err)
	}
	// The same again renews its age.
	if got, err = push(Put{Body: []byte(`[{"id":"b"},{"id":"a","title":"A"},{"id":"c"}]`)}); err != nil || got.New || got.Version != 2 {
		t.Errorf("%+v %v", got, err)
	}
	var empty *EmptyPutError
	if _, err = push(Put{Body: []byte(`[]`)}); !errors.As(err, &empty) || empty.Items != 3 {
		t.Errorf("an empty list: %v", err)
	}
	one, two := int64(1), int64(2)
	if _, err = push(Put{Body: []byte(`[{"id":"z"}]`), Onto: &one}); !errors.Is(err, ErrMoved) {
		t.Errorf("onto version 1: %v", err)
	}
	if got, err = push(Put{Body: []byte(`[]`), Onto: &two, AllowEmpty: true}); err != nil || got.Version != 3 {
		t.Errorf("%+v %v", got, err)
	}
	var unread *source.AnswerError
	if _, err = push(Put{Body: []byte(`<html><body>no`)}); !errors.As(err, &unread) {
		t.Errorf("a page: %v", err)
	}
	var other *NotPushedError
	if _, err = w.client.Push(t.Context(), "fetched", Put{Body: []byte(`[]`)}); !errors.As(err, &other) || other.Source != "syndication" {
		t.Errorf("a feed that is fetched: %v", err)
	}
	var unknown *UnknownFeedError
	if _, err = w.client.Push(t.Context(), "nosuch", Put{}); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
}

func TestAnswersThatLieAreKeptAsideAndTheGoodVersionStays(t *testing.T) {
	t.Parallel()
	const secret = "very-secret-token-4711"
	w := newWorld(t, withFeed(func(f *Feed) {
		f.Attempts = 1
		f.Source.Headers = map[string]string{"Authorization": "Bearer " + secret}
	}))
	w.upstream.on(func(n int, rw http.ResponseWriter, r *http.Request) bool {
		switch n {
		case 2: // a page where a feed was, which repeats what it was asked with
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(rw, "<html><title>Log in</title>%s %s</html>", r.Header.Get("Authorization"), strings.Repeat("x", 100<<10))
		case 3: // empty where there were items
			rw.Header().Set("Content-Type", "application/rss+xml")
			fmt.Fprintf(rw, `<?xml version="1.0"?><rss version="2.0"><channel><title>for %s</title></channel></rss>`, r.Header.Get("Authorization"))
		case 4: // cut short
			fmt.Fprint(rw, `<?xml version="1.0"?><rss version="2.0"><channel><item><guid>`)
		default:
			return false
		}
		return true
	})
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	for range 3 {
		id := w.enqueue(Spec{}).ID
		w.until(id, Failed)
		if j, err := w.client.Get(t.Context(), id); err != nil || strings.Contains(fmt.Sprintf("%+v", j), secret) {
			t.Errorf("the job shows what its target echoed: %+v %v", j, err)
		}
	}
	all, err := w.store.Asides(t.Context(), "news")
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v %v", all, err)
	}
	for i, want := range []string{"truncated", "truncated", "not-a-feed"} {
		if a := all[i]; a.Kind != want || a.Job == "" || a.Reason == "" || time.Since(a.At).Abs() > time.Minute || len(a.Body) == 0 || len(a.Body) > 64<<10 {
			t.Errorf("%d: kind %q, %d bytes, reason %q, job %q, at %s", i, a.Kind, len(a.Body), a.Reason, a.Job, a.At)
		}
		if a := all[i]; strings.Contains(string(a.Body)+a.Reason, secret) {
			t.Errorf("%d: a secret of the request is kept: %s %.200s", i, a.Reason, a.Body)
		}
	}
	if body := string(all[2].Body); !strings.Contains(body, "<title>Log in") || all[2].Type != "text/html" {
		t.Errorf("%s %.200s", all[2].Type, body)
	}
	if v, err := w.store.Get(t.Context(), "news", 0); err != nil || v.Version != 1 || len(v.Items) != 1 {
		t.Errorf("the good version: %+v %v", v, err)
	}
}

package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// noted waits until what clients read is written.
func (w *world) noted(client string, feeds int) {
	w.t.Helper()
	w.eventually(10*time.Second, func() string {
		names, err := w.client.Reads(w.t.Context(), client)
		if err != nil || len(names) != feeds {
			return fmt.Sprintf("%v %v", names, err)
		}
		return ""
	})
}

func TestTheFirstVisitIsColdAndLaterOnesAreWarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.TTL = 400 * time.Millisecond }))
	w.work()
	if all, err := w.client.Warm(t.Context(), "phone"); err != nil || len(all) != 0 {
		t.Errorf("a client that was never seen: %v %v", all, err)
	}
	// The first visit waits for the upstream.
	if _, err := w.client.Read(t.Context(), "news", nil, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	w.client.Note("phone", "news")
	w.noted("phone", 1)
	w.eventually(10*time.Second, func() string {
		h, err := w.store.Head(t.Context(), "news")
		if err != nil || h.State(time.Now(), 400*time.Millisecond) != "stale" {
			return fmt.Sprint(h, err)
		}
		return ""
	})
	// Before the next one it is refreshed, and nobody waits for that.
	all, err := w.client.Warm(t.Context(), "phone")
	if err != nil || len(all) != 1 || all[0].Action != WarmRefreshing || all[0].Job == "" || all[0].Feed != "news" {
		t.Fatalf("%+v %v", all, err)
	}
	if j := w.until(all[0].Job, Done); j.Queue != QueueInteractive {
		t.Errorf("%+v", j)
	}
	r, err := w.client.Read(t.Context(), "news", nil, 0)
	if err != nil || r.Version.Version != 2 {
		t.Errorf("the visit finds %+v %v", r.Version.Version, err)
	}
}

func TestWarmSaysWhatHappensToEachFeed(t *testing.T) {
	t.Parallel()
	names := []string{"fresh", "ageing", "stale", "empty", "failing", "pushed", "for-ever"}
	w := newWorld(t, withConfig(func(c *Config) {
		base := c.Feeds[0]
		c.Feeds = nil
		for _, name := range names {
			f := base
			f.Name = name
			switch name {
			case "pushed":
				f.Source = source.Config{Kind: "push"}
			case "for-ever":
				f.TTL = 0
			}
			c.Feeds = append(c.Feeds, f)
		}
		c.QueueLimits[QueueInteractive] = 3
	}))
	for name, age := range map[string]time.Duration{"fresh": 44 * time.Minute, "ageing": 46 * time.Minute, "stale": 2 * time.Hour, "failing": 2 * time.Hour, "pushed": 2 * time.Hour, "for-ever": 1000 * time.Hour} {
		at := time.Now().Add(-age)
		if _, err := w.store.Put(t.Context(), feed.Head{Key: name}, at, at, feed.Content{Items: []source.Item{{ID: "a"}}}, 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.store.Fail(t.Context(), "failing", "j", "broken", time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "no-longer-in-the-config") {
		w.client.Note("tab-1", name)
	}
	w.noted("tab-1", len(names)+1)
	got := func() map[string]Warmed {
		t.Helper()
		all, err := w.client.Warm(t.Context(), "tab-1")
		if err != nil || len(all) != len(names) {
			t.Fatalf("%+v %v", all, err)
		}
		m := map[string]Warmed{}
		for _, one := range all {
			m[one.Feed] = one
		}
		return m
	}
	first := got()
	for name, want := range map[string]string{"fresh": WarmFresh, "ageing": WarmRefreshing, "stale": WarmRefreshing, "empty": WarmRefreshing, "failing": WarmFailing, "pushed": WarmPushed, "for-ever": WarmFresh} {
		if first[name].Action != want {
			t.Errorf("%s: %+v, want %s", name, first[name], want)
		}
	}
	if first["failing"].RetryAfterMS <= 0 || first["ageing"].TTLMS != 3_600_000 || first["ageing"].AgeMS < 2_760_000 {
		t.Errorf("%+v", first)
	}
	// Asked again, the same jobs are under way: one a feed.
	if again := got(); again["stale"].Job != first["stale"].Job || again["empty"].Job != first["empty"].Job {
		t.Errorf("%+v, then %+v", first, again)
	}
	if list, err := w.client.List(t.Context(), Filter{}); err != nil || len(list) != 3 {
		t.Errorf("%d jobs %v", len(list), err)
	}
	// A full queue is told, feed by feed.
	if err := w.rdb.Del(t.Context(), "fw:{feed:ageing}:refresh").Err(); err != nil {
		t.Fatal(err)
	}
	if full := got(); full["ageing"].Action != WarmFull || full["ageing"].RetryAfterMS <= 0 || full["stale"].Action != WarmRefreshing {
		t.Errorf("%+v", full)
	}
}

func TestWhatClientsReadIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 250 {
		w.client.Note("greedy", fmt.Sprintf("feed-%03d", i))
	}
	batch := map[read]int64{}
	for i := range clientsKept + 20 {
		batch[read{fmt.Sprint("c", i), "news"}] = time.Now().UnixMilli() + int64(i)
	}
	w.noted("greedy", readsKept)
	if err := saveReads(t.Context(), w.rdb, batch, w.log); err != nil {
		t.Fatal(err)
	}
	n, err := w.rdb.ZCard(t.Context(), clientsKey).Result()
	if err != nil || n != clientsKept {
		t.Errorf("%d clients %v", n, err)
	}
	keys, err := w.rdb.Keys(t.Context(), "fw:{client:*}:reads").Result()
	if err != nil || len(keys) != clientsKept {
		t.Errorf("%d keys %v", len(keys), err)
	}
	if names, err := w.client.Reads(t.Context(), "c0"); err != nil || len(names) != 0 {
		t.Errorf("the client that has not read for longest: %v %v", names, err)
	}
	last := fmt.Sprint("c", clientsKept+19)
	if ttl, err := w.rdb.TTL(t.Context(), readsKey(last)).Result(); err != nil || ttl < 29*24*time.Hour || ttl > 30*24*time.Hour {
		t.Errorf("for %s %v", ttl, err)
	}
	for range readsHeld + 10 {
		w.client.Note(NewID(), "news")
	}
	w.client.reads.mu.Lock()
	held := len(w.client.reads.pending)
	w.client.reads.mu.Unlock()
	if held > readsHeld {
		t.Errorf("%d reads wait", held)
	}
	w.client.FlushReads()
	w.client.Note("late", "news") // after the end: nothing
	w.client.FlushReads()
}

func TestNotingAReadNeverWaitsForRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redis.Kill()
	begun := time.Now()
	for i := range 1000 {
		w.client.Note("phone", fmt.Sprint(i))
	}
	if took := time.Since(begun); took > readsTime {
		t.Errorf("a thousand reads took %s", took)
	}
	w.client.FlushReads() // ends though nothing can be written
}

func TestClientsHaveNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, ok := range map[string]bool{"phone": true, "a.b-c_d:e@f~g+h=i": true, "0": true, "": false, "a b": false, "}:x{": false, "-a": false, "é": false, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false} {
		_, err := w.client.Warm(t.Context(), name)
		var bad *ClientError
		if errors.As(err, &bad) == ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A reader of a feed that nobody fetches waits for whoever fills it.
func TestReadersOfAPushFeedWaitForItsContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFeed(func(f *Feed) { f.Source = source.Config{Kind: "push"} }))
	var nr *NotReadyError
	if _, err := w.client.Read(t.Context(), "news", nil, 0); !errors.As(err, &nr) || nr.Reason != nothingPushed {
		t.Errorf("%v", err)
	}
	done := make(chan error, 1)
	go func() {
		r, err := w.client.Read(t.Context(), "news", nil, 20*time.Second)
		if err == nil && r.Version.Version != 1 {
			err = fmt.Errorf("%+v", r)
		}
		done <- err
	}()
	w.eventually(10*time.Second, func() string {
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
	if state := w.client.Freshen(t.Context(), f, "news", nil, h); state != "stale" {
		t.Error(state)
	}
	if list, err := w.client.List(t.Context(), Filter{}); err != nil || len(list) != 0 {
		t.Errorf("jobs of a feed that nobody fetches: %v %v", list, err)
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
			fmt.Fprint(rw, `<?xml version="1.0"?><rss version="2.0"><channel><title>t</title></channel></rss>`)
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
		w.until(w.enqueue(Spec{}).ID, Failed)
	}
	all, err := w.store.Asides(t.Context(), "news")
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v %v", all, err)
	}
	for i, want := range []string{"truncated", "truncated", "not-a-feed"} {
		if a := all[i]; a.Kind != want || a.Job == "" || a.Reason == "" || time.Since(a.At).Abs() > time.Minute || len(a.Body) == 0 || len(a.Body) > 64<<10 {
			t.Errorf("%d: kind %q, %d bytes, reason %q, job %q, at %s", i, a.Kind, len(a.Body), a.Reason, a.Job, a.At)
		}
	}
	if body := string(all[2].Body); !strings.Contains(body, "<title>Log in") || strings.Contains(body, secret) || all[2].Type != "text/html" {
		t.Errorf("%s %.200s", all[2].Type, body)
	}
	if v, err := w.store.Get(t.Context(), "news", 0); err != nil || v.Version != 1 || len(v.Items) != 1 {
		t.Errorf("the good version: %+v %v", v, err)
	}
}

func TestTheClaimOfADeadOwnerEndsByItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.client.Feed("news")
	// Its owner died between the claim and the enqueuing: the job never was.
	if _, err := w.store.Claim(t.Context(), "news", "dead", "", 700*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if job, err := w.client.Refresh(t.Context(), f, "news", nil); err != nil || job != "dead" {
		t.Fatalf("%s %v", job, err)
	}
	w.work()
	w.eventually(10*time.Second, func() string {
		job, err := w.client.Refresh(t.Context(), f, "news", nil)
		if err != nil || job == "dead" {
			return fmt.Sprint(job, err)
		}
		return ""
	})
	if r, err := w.client.Read(t.Context(), "news", nil, 20*time.Second); err != nil || r.Version.Version != 1 {
		t.Errorf("%v %v", r.Version.Version, err)
	}
}

// Those who wait when messages cannot be heard find the version by looking.
func TestWaitingReadersOutliveALostSubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := make(chan error, 20)
	for range cap(done) {
		go func() {
			_, err := w.client.Read(t.Context(), "news", nil, 30*time.Second)
			done <- err
		}()
	}
	w.eventually(10*time.Second, func() string {
		n, err := w.rdb.PubSubNumSub(t.Context(), "fw:{feed:news}:events").Result()
		if err != nil || n["fw:{feed:news}:events"] != 1 {
			return fmt.Sprint(n, err)
		}
		return ""
	})
	if err := w.rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	w.work()
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestAReaderWhoLeavesLeavesTheOthersWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := w.client.Read(ctx, "news", nil, 30*time.Second); left <- err }()
	go func() { _, err := w.client.Read(t.Context(), "news", nil, 30*time.Second); stayed <- err }()
	w.eventually(10*time.Second, func() string {
		if n := waiting(w.client, "news"); n != 2 {
			return fmt.Sprint(n, " wait")
		}
		return ""
	})
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	w.work()
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	if n := waiting(w.client, "news"); n != 0 {
		t.Errorf("%d wait", n)
	}
}

package jobs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// noted waits until what clients read is written.
func (w *world) noted(client string, feeds int) {
	w.t.Helper()
	w.eventually(30*time.Second, func() string {
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
	w.eventually(30*time.Second, func() string {
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
	if took := time.Since(begun); took > 10*readsTime {
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

package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
	"feedwarden/jobs/source"
)

var t0 = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

func newStore(t *testing.T) *Store {
	rdb := testredis.Client(t)
	return New(rdb, luarun.NewDesk(rdb))
}

func content(ids ...string) Content {
	c := Content{Raw: [][]byte{[]byte("raw"), []byte("second page")}, ContentType: "text/plain", ETag: `"e"`}
	for i, id := range ids {
		c.Items = append(c.Items, source.Item{ID: id, Title: "T " + id, Rank: i + 1})
	}
	return c
}

func put(t *testing.T, s *Store, key string, began time.Duration, c Content, keep int) Stored {
	t.Helper()
	st, err := s.Put(t.Context(), Head{Key: key}, t0.Add(began), t0.Add(began+time.Second), c, keep)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestOlderFetchNeverReplacesANewerVersion(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 10*time.Second, content("new"), 10)
	if st := put(t, s, key, 5*time.Second, content("old"), 10); !st.Older || st.Version != 1 {
		t.Errorf("%+v", st)
	}
	if v, err := s.Get(t.Context(), key, 0); err != nil || v.Items[0].ID != "new" {
		t.Errorf("%+v %v", v, err)
	}
	if st, err := s.Renew(t.Context(), key, t0.Add(7*time.Second), t0.Add(time.Hour)); err != nil || !st.Older {
		t.Errorf("an older 304 renewed it: %+v %v", st, err)
	}
}

func TestVersionOfAClockThatRanAheadDoesNotShutItsFeed(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	now := redisNow(t, s)
	put := func(after time.Duration, c Content) Stored {
		t.Helper()
		st, err := s.Put(t.Context(), Head{Key: key}, now.Add(after), now.Add(after+time.Second), c, 10)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	put(6*time.Hour, content("ahead")) // a machine that took local time for UTC
	if st, err := s.Renew(t.Context(), key, now, now); err != nil || st.Older {
		t.Errorf("a 304 by the right clock: %+v %v", st, err)
	}
	put(6*time.Hour, content("ahead again"))
	if st := put(time.Second, content("right")); st.Older || st.Version != 3 {
		t.Errorf("a fetch by the right clock: %+v", st)
	}
	if st := put(0, content("older")); !st.Older {
		t.Errorf("and what is older than that: %+v", st)
	}
	// A failover to a replica that is some seconds behind is none of that.
	if st := put(-5*time.Minute, content("older")); !st.Older {
		t.Errorf("five minutes before: %+v", st)
	}
	h, err := s.Head(t.Context(), key)
	if err != nil || !h.FetchedAt.Equal(now.Add(2*time.Second)) {
		t.Errorf("%+v %v", h, err)
	}
}

// A machine that slept in the middle of a fetch carries Redis's clock on from before.
func TestFetchOfAMachineThatSleptReplacesNothingThatCameMeanwhile(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	now := redisNow(t, s)
	if _, err := s.Put(t.Context(), Head{Key: key}, now, now, content("newer"), 10); err != nil {
		t.Fatal(err)
	}
	began := now.Add(-time.Hour)
	for what, do := range map[string]func() (Stored, error){
		"a version": func() (Stored, error) {
			return s.Put(t.Context(), Head{Key: key}, began, began.Add(time.Second), content("older"), 10)
		},
		"a 304": func() (Stored, error) { return s.Renew(t.Context(), key, began, began.Add(time.Second)) },
	} {
		if st, err := do(); err != nil || !st.Older || st.Version != 1 {
			t.Errorf("%s of an hour ago: %+v %v", what, st, err)
		}
	}
	if h, err := s.Head(t.Context(), key); err != nil || h.FetchedAt.UnixMilli() != now.UnixMilli() {
		t.Errorf("%+v %v", h, err)
	}
}

func redisNow(t *testing.T, s *Store) time.Time {
	t.Helper()
	now, err := s.rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.Truncate(time.Millisecond)
}

func TestFirstSeenIsKeptOverVersions(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 10)
	put(t, s, key, time.Minute, content("b", "a"), 10)
	v, err := s.Get(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := v.Items[1], v.Items[0]; !a.FirstSeen.Equal(t0.Add(time.Second)) || !b.FirstSeen.Equal(t0.Add(time.Minute+time.Second)) {
		t.Errorf("first seen %s and %s", a.FirstSeen, b.FirstSeen)
	}
}

func TestHistoryKeepsTheNewestAndShrinksWithTheConfig(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	for i := range 12 {
		put(t, s, key, time.Duration(i)*time.Minute, content(fmt.Sprint(i)), 10)
	}
	count := func(want int, newest int64) {
		t.Helper()
		all, err := s.Versions(t.Context(), key)
		if err != nil || len(all) != want || all[0].Version != newest {
			t.Fatalf("%d versions %+v %v", len(all), all, err)
		}
		if n, _ := s.rdb.HLen(t.Context(), dataKey(key)).Result(); n != int64(want*3) {
			t.Errorf("%d fields for %d versions", n, want)
		}
	}
	count(10, 12)
	if _, err := s.Get(t.Context(), key, 2); !errors.Is(err, ErrNoVersion) {
		t.Errorf("version 2: %v", err)
	}
	put(t, s, key, time.Hour, content("x"), 3)
	count(3, 13)
}

func TestRawPagesAreGivenOneByOne(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 1)
	v, err := s.Get(t.Context(), key, 0)
	if err != nil || string(v.Page(1)) != "raw" || string(v.Page(2)) != "second page" || v.Page(3) != nil || v.Page(0) != nil {
		t.Errorf("%q %v", v.Raw, err)
	}
}

func TestFailureLeavesTheVersionAndAStoreClearsIt(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 1)
	if err := s.Fail(t.Context(), key, "job", "broke", t0); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Head(t.Context(), key); err != nil || h.LastError != "broke" || h.Version != 1 {
		t.Errorf("%+v %v", h, err)
	}
	put(t, s, key, time.Minute, content("a"), 1)
	if h, err := s.Head(t.Context(), key); err != nil || h.LastError != "" {
		t.Errorf("%+v %v", h, err)
	}
}

func TestClaimHasOneHolderAndEndsByItself(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	claim := func(job, ended string, life time.Duration) string {
		t.Helper()
		holder, err := s.Claim(t.Context(), Head{Key: key}, job, ended, life)
		if err != nil {
			t.Fatal(err)
		}
		return holder
	}
	if h := claim("a", "", time.Minute); h != "a" {
		t.Error(h)
	}
	if h := claim("b", "", time.Minute); h != "a" {
		t.Error(h)
	}
	if h := claim("b", "a", time.Minute); h != "b" {
		t.Error("a holder that is known to have ended stays:", h)
	}
	if err := s.Hold(t.Context(), key, "a", 0); err != nil {
		t.Fatal(err)
	}
	if h := claim("c", "", time.Minute); h != "b" {
		t.Error("somebody else ended b's claim")
	}
	if err := s.Hold(t.Context(), key, "b", 0); err != nil {
		t.Fatal(err)
	}
	if h := claim("d", "", time.Millisecond); h != "d" {
		t.Error(h)
	}
	if ttl, err := s.rdb.PTTL(t.Context(), refreshKey(key)).Result(); err != nil || ttl > time.Millisecond {
		t.Errorf("a claim without an end: %s %v", ttl, err)
	}
}

func TestKeysWithParametersEnd(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	key := Key(testredis.Name("f"), map[string]string{"b": "{x}", "a": "1"})
	put(t, s, key, 0, content("a"), 1)
	for _, k := range []string{headKey(key), dataKey(key)} {
		if ttl, err := s.rdb.TTL(t.Context(), k).Result(); err != nil || ttl <= 0 || ttl > paramLife {
			t.Errorf("%s lives %s %v", k, ttl, err)
		}
	}
}

func TestVersionWhoseContentIsGoneIsStoredAnew(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 1)
	if err := s.rdb.Del(t.Context(), dataKey(key)).Err(); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Renew(t.Context(), key, t0.Add(time.Minute), t0.Add(time.Minute)); err != nil || !st.Older {
		t.Errorf("a 304 renewed a version without content: %+v %v", st, err)
	}
	if h, err := s.Head(t.Context(), key); err != nil || h.ETag != "" {
		t.Errorf("its validators stay: %+v %v", h, err)
	}
	put(t, s, key, time.Hour, content("a"), 1)
	if v, err := s.Get(t.Context(), key, 0); err != nil || len(v.Items) != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

// A store of versions is a list and a rule: newer fetches append what differs
// from the last, and renew what does not.
func TestStoreAgainstAModel(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		s, key := New(rdb, luarun.NewDesk(rdb)), testredis.Name("model")
		keep := rapid.IntRange(1, 4).Draw(rt, "keep")
		head, err := s.Head(t.Context(), key)
		if err != nil {
			rt.Fatal(err)
		}
		var versions []string
		var began, last time.Duration
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			at := time.Duration(rapid.IntRange(0, 100).Draw(rt, "at")) * time.Second
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "content")
			if rapid.Bool().Draw(rt, "304") {
				st, err := s.Renew(t.Context(), key, t0.Add(at), t0.Add(at))
				if err != nil {
					rt.Fatal(err)
				}
				if renewed := len(versions) > 0 && at >= began; renewed == st.Older {
					rt.Fatalf("renew at %s after %s: %+v", at, began, st)
				} else if renewed {
					began, last = at, at
				}
				continue
			}
			// Now and then the caller's head is of a moment ago.
			if rapid.Bool().Draw(rt, "reads the head") {
				if head, err = s.Head(t.Context(), key); err != nil {
					rt.Fatal(err)
				}
			}
			st, err := s.Put(t.Context(), head, t0.Add(at), t0.Add(at), content(id), keep)
			if err != nil {
				rt.Fatal(err)
			}
			older := len(versions) > 0 && at < began
			isNew := !older && (len(versions) == 0 || versions[len(versions)-1] != id)
			if st.Older != older || st.New != isNew {
				rt.Fatalf("put %s at %s after %s: %+v", id, at, began, st)
			}
			if !older {
				began, last = at, at
			}
			if isNew {
				versions = append(versions, id)
			}
		}
		h, err := s.Head(t.Context(), key)
		if err != nil || h.Version != int64(len(versions)) || (len(versions) > 0 && !h.FetchedAt.Equal(t0.Add(last))) {
			rt.Fatalf("head %+v %v, model %v at %s", h, err, versions, last)
		}
		kept, err := s.Versions(t.Context(), key)
		if err != nil || len(kept) != min(keep, len(versions)) {
			rt.Fatalf("%d kept %v", len(kept), err)
		}
	})
}

func TestEventsAreReadAndRubbishIsNot(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"version 3": true, "snoozed 12 j": true, "failed j": true, "": false, "version": false, "hello 1": false} {
		if _, got := parseEvent(text); got != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestStateFollowsAgeAndRefresh(t *testing.T) {
	t.Parallel()
	h := Head{Version: 1, FetchedAt: t0}
	for _, c := range []struct {
		h    Head
		at   time.Duration
		ttl  time.Duration
		want string
	}{
		{Head{}, 0, time.Minute, "empty"},
		{h, 59 * time.Second, time.Minute, "fresh"},
		{h, time.Minute, time.Minute, "stale"},
		{h, time.Hour, 0, "fresh"},
		{h, -time.Hour, time.Minute, "fresh"},
		{Head{Version: 1, FetchedAt: t0, Refreshing: "j"}, time.Hour, time.Minute, "updating"},
	} {
		if got := c.h.State(t0.Add(c.at), c.ttl); got != c.want {
			t.Errorf("%+v at %s: %s, want %s", c.h, c.at, got, c.want)
		}
	}
}

func TestMetaOfANewerBinaryIsRead(t *testing.T) {
	t.Parallel()
	var m Meta
	if err := json.Unmarshal([]byte(`{"v":2,"hash":"x","something":{"new":1}}`), &m); err != nil || m.ContentHash != "x" {
		t.Errorf("%+v %v", m, err)
	}
}

package feed

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"feedwarden/internal/testredis"
	"feedwarden/jobs/source"
)

func ranked(ids ...string) []source.Item { return content(ids...).Items }

func TestDiffSaysWhatCameRoseFellAndWent(t *testing.T) {
	t.Parallel()
	got := Diff(ranked("a", "b", "c", "d", "e"), ranked("x", "c", "a", "d", "y", "b"))
	want := []string{"came 0>1 +0 x", "came 0>5 +0 y", "rose 3>2 +1 c", "fell 2>6 -4 b", "fell 1>3 -2 a", "went 5>0 +0 e"}
	for i, c := range got {
		text := fmt.Sprintf("%s %d>%d %+d %s", c.What, c.From, c.To, c.Moved, c.Item.ID)
		if i >= len(want) || text != want[i] {
			t.Errorf("%d: %s, want %v", i, text, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d changes, want %d", len(got), len(want))
	}
}

// A diff is true when it leads from the one list to the other.
func TestDiffLeadsFromOneVersionToTheOther(t *testing.T) {
	t.Parallel()
	ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-h]`), 0, 8, rapid.ID[string])
	rapid.Check(t, func(rt *rapid.T) {
		from, to := ids.Draw(rt, "from"), ids.Draw(rt, "to")
		rank := map[string]int{}
		for i, id := range from {
			rank[id] = i + 1
		}
		for _, c := range Diff(ranked(from...), ranked(to...)) {
			if rank[c.Item.ID] != c.From || c.From != 0 && c.To != 0 && c.Moved != c.From-c.To {
				rt.Fatalf("%+v, but it was at %d", c, rank[c.Item.ID])
			}
			if rank[c.Item.ID] = c.To; c.To == 0 {
				delete(rank, c.Item.ID)
			}
		}
		if len(rank) != len(to) {
			rt.Fatalf("%v from %v to %v", rank, from, to)
		}
		for i, id := range to {
			if rank[id] != i+1 {
				rt.Fatalf("%s at %d, want %d", id, rank[id], i+1)
			}
		}
	})
}

func TestRankChangeAndNewSinceAreKeptOverVersions(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a", "b"), 10)
	put(t, s, key, time.Minute, content("c", "b", "a"), 10)
	if _, err := s.Renew(t.Context(), key, t0.Add(time.Hour), t0.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	v, err := s.Get(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, b, a := v.Items[0], v.Items[1], v.Items[2]
	if c.RankChange != nil || b.RankChange == nil || *b.RankChange != 0 || a.RankChange == nil || *a.RankChange != -2 {
		t.Errorf("%v %v %v", c.RankChange, b.RankChange, a.RankChange)
	}
	if got := NewSince(v.Items, t0.Add(30*time.Second)); len(got) != 1 || got[0].ID != "c" {
		t.Errorf("new since: %+v", got)
	}
	if len(v.Items) != 3 {
		t.Error("what was asked for changed the version")
	}
	// The same again is the same version, though its ranks have not changed this time.
	if st := put(t, s, key, 2*time.Hour, content("c", "b", "a"), 10); st.New {
		t.Errorf("%+v", st)
	}
}

func TestPairIsTheNewestTwoOrThoseThatWereNamed(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	for n := range 5 {
		if _, _, err := s.Pair(t.Context(), key, 0, 0); n < 2 && !errors.Is(err, ErrNoVersion) {
			t.Errorf("%d versions: %v", n, err)
		}
		put(t, s, key, time.Duration(n)*time.Minute, content(fmt.Sprint(n)), 4)
	}
	for _, c := range []struct{ from, to, wantFrom, wantTo int64 }{
		{0, 0, 4, 5}, {2, 0, 2, 5}, {0, 4, 3, 4}, {5, 3, 5, 3}, {3, 3, 3, 3}, {1, 0, 0, 0}, {0, 2, 0, 0}, {0, 9, 0, 0},
	} {
		a, b, err := s.Pair(t.Context(), key, c.from, c.to)
		if c.wantFrom == 0 {
			if !errors.Is(err, ErrNoVersion) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || a.Version != c.wantFrom || b.Version != c.wantTo {
			t.Errorf("%+v: %d %d %v", c, a.Version, b.Version, err)
		}
	}
	m, err := s.Meta(t.Context(), key, 5)
	if err != nil || m.Version != 5 || m.ContentHash == "" || !m.FetchedAt.Equal(t0.Add(4*time.Minute+time.Second)) {
		t.Errorf("%+v %v", m, err)
	}
}

func TestAnswersKeptAsideAreBoundedAndLeaveTheVersion(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 3)
	for n := range 5 {
		err := s.SetAside(t.Context(), key, Aside{At: t0.Add(time.Duration(n) * time.Second), Kind: "ban", Reason: "a challenge page", Job: fmt.Sprint("j", n), Body: bytes.Repeat([]byte{0xff}, 100<<10)})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Asides(t.Context(), key)
	if err != nil || len(all) != 3 || all[0].Job != "j4" || all[2].Job != "j2" || len(all[0].Body) != 64<<10 || all[0].Body[0] != 0xff || all[0].Kind != "ban" {
		t.Errorf("%d kept, %v", len(all), err)
	}
	if ttl, err := s.rdb.TTL(t.Context(), asideKey(key)).Result(); err != nil || ttl <= 6*24*time.Hour || ttl > 7*24*time.Hour {
		t.Errorf("for %s %v", ttl, err)
	}
	if v, err := s.Get(t.Context(), key, 0); err != nil || v.Version != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestPutOntoFollowsOnlyTheVersionThatWasNamed(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	onto := func(head Head, at time.Duration, c Content) (Stored, error) {
		return s.PutOnto(t.Context(), head, t0.Add(at), t0.Add(at), c, 3)
	}
	if st, err := onto(Head{Key: key}, 0, content("a")); err != nil || st.Version != 1 {
		t.Fatalf("%+v %v", st, err)
	}
	if _, err := onto(Head{Key: key}, time.Second, content("b")); !errors.Is(err, ErrMoved) {
		t.Errorf("only where there is none: %v", err)
	}
	head, err := s.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := onto(head, 2*time.Second, content("a")); err != nil || st.New || st.Version != 1 {
		t.Errorf("the same again: %+v %v", st, err)
	}
	put(t, s, key, 3*time.Second, content("other"), 3)
	if _, err := onto(head, 4*time.Second, content("mine")); !errors.Is(err, ErrMoved) {
		t.Errorf("%v", err)
	}
	if v, err := s.Get(t.Context(), key, 0); err != nil || v.Items[0].ID != "other" {
		t.Errorf("%+v %v", v, err)
	}
}

// A reader who looked before a fetch ended wants no other: the claim knows.
func TestAClaimForWhatWasFetchedSinceIsNotNeeded(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	claim := func(seen Head, job string) string {
		t.Helper()
		holder, err := s.Claim(t.Context(), seen, job, "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return holder
	}
	before, err := s.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, key, 0, content("a"), 3)
	if got := claim(before, "late"); got != "" {
		t.Errorf("for a reader who saw no version: %q", got)
	}
	stale, err := s.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context(), key, t0.Add(time.Minute), t0.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := claim(stale, "late"); got != "" {
		t.Errorf("for a reader who saw it before it was renewed: %q", got)
	}
	now, err := s.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if got := claim(now, "mine"); got != "mine" {
		t.Errorf("for a reader who sees it as it is: %q", got)
	}
}

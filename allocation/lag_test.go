package allocation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestScoresThatLaggedAreMendedBeforeTheyAreUsed: under a policy that does not go by the score, the set of
// scores falls behind the counts, further than one call mends. Who is imported then starts
// level with the others all the same, and after a change to least-used every pick has the lowest score.
func TestScoresThatLaggedAreMendedBeforeTheyAreUsed(t *testing.T) {
	t.Parallel()
	const endpoints = 2200 // more than twice what one call mends
	for _, before := range []string{Random, NoRepeat, Shuffled, LeastBusy} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			c := Config{Policy: before, Cap: 1000}
			p := poolOf(t, c)
			c.Name = p.Names()[0]
			at := fillPool(t, p, endpoints)
			scores := map[string]int64{}
			for id := range at {
				scores[id] = 0
			}
			for _, id := range takeMany(t, p, 2*endpoints, batch, TakeOptions{}) {
				scores[id]++
			}
			low := lowestOf(scores)
			new1 := "http://new.example:80"
			if _, err := p.Import(t.Context(), c.Name, strings.NewReader(new1), nil); err != nil {
				t.Fatal(err)
			}
			e, err := p.Endpoint(t.Context(), c.Name, new1)
			if err != nil {
				t.Fatal(err)
			}
			if e.Count != 0 || e.Handicap < low || e.Handicap > low+1 {
				t.Errorf("the new one has count %d and handicap %d, want 0 and what the least used have, about %d", e.Count, e.Handicap, low)
			}
			scores[new1] = e.Handicap

			c.Policy = LeastUsed
			if err := p.Reload([]Config{c}); err != nil {
				t.Fatal(err)
			}
			high := slices.Max(slices.Collect(maps.Values(scores)))
			levels, takes := map[int64]int{}, 2*batch
			for _, s := range scores {
				levels[s]++
				takes += int(high + 1 - s) // until nobody is at a score that there was before
			}
			low = lowestOf(scores)
			for i, id := range takeMany(t, p, takes, batch, TakeOptions{}) {
				for levels[low] == 0 {
					low++
				}
				if scores[id] != low {
					t.Fatalf("pick %d takes %s, which has score %d, while others have %d", i, id, scores[id], low)
				}
				levels[low]--
				scores[id]++
				levels[scores[id]]++
			}
			if lag, err := p.rdb.HExists(t.Context(), keysOf(c.Name).prefix+"endpoints", "lag").Result(); err != nil || lag {
				t.Errorf("scores are said to lag still, after all were mended (%v)", err)
			}
		})
	}
}

// TestStickyOverScoresThatLag: keys that have an endpoint keep it, and its score is true from the first take on.
func TestStickyOverScoresThatLag(t *testing.T) {
	t.Parallel()
	c := Config{Policy: Sticky}
	p := poolOf(t, c)
	c.Name = p.Names()[0]
	at := fillPool(t, p, 5)
	change := func(policy string) {
		c.Policy = policy
		if err := p.Reload([]Config{c}); err != nil {
			t.Fatal(err)
		}
	}
	home := takeMany(t, p, 1, 1, TakeOptions{Key: "k"})[0]
	scores := map[string]int64{}
	for id := range at {
		scores[id] = 0
	}
	scores[home] = 1
	for round := range 20 {
		change(Random)
		for _, id := range takeMany(t, p, 7, 7, TakeOptions{}) {
			scores[id]++
		}
		change(Sticky)
		for _, id := range takeMany(t, p, 2, 2, TakeOptions{Key: "k"}) {
			if id != home {
				t.Fatalf("the key has %s, it had %s", id, home)
			}
			scores[id]++
		}
		low := lowestOf(scores)
		id := takeMany(t, p, 1, 1, TakeOptions{Key: fmt.Sprint(round)})[0]
		if scores[id] != low {
			t.Fatalf("a new key has %s with score %d, while others have %d", id, scores[id], low)
		}
		scores[id]++
	}
}

func lowestOf(scores map[string]int64) int64 { return slices.Min(slices.Collect(maps.Values(scores))) }

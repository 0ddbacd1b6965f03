package feed

import (
	"cmp"
	"slices"
	"time"

	"feedwarden/jobs/source"
)

// Change is what became of one item from one version to another.
type Change struct {
	What  string      `json:"what"`  // came, went, rose, fell
	From  int         `json:"from"`  // its rank before; 0: it was not there
	To    int         `json:"to"`    // its rank after; 0: it is not there
	Moved int         `json:"moved"` // places risen, less than 0 when it fell; 0 where it came or went
	Item  source.Item `json:"item"`  // as it is, or as it was before it went
}

// What became of an item.
const (
	Came = "came"
	Went = "went"
	Rose = "rose"
	Fell = "fell"
)

// Diff says what changed between two versions: what came by its rank, what
// rose and fell by how far, what went by the rank it had. Items that kept their
// rank are not in it, whatever else about them changed.
func Diff(from, to []source.Item) []Change {
	before := make(map[string]source.Item, len(from))
	for _, it := range from {
		before[it.ID] = it
	}
	out := []Change{}
	for _, it := range to {
		old, was := before[it.ID]
		delete(before, it.ID)
		c := Change{From: old.Rank, To: it.Rank, Item: it}
		switch {
		case !was:
			c.What = Came
		case it.Rank < old.Rank:
			c.What, c.Moved = Rose, old.Rank-it.Rank
		case it.Rank > old.Rank:
			c.What, c.Moved = Fell, old.Rank-it.Rank
		default:
			continue
		}
		out = append(out, c)
	}
	for _, it := range from {
		if _, gone := before[it.ID]; gone {
			out = append(out, Change{What: Went, From: it.Rank, Item: it})
		}
	}
	order := []string{Came, Rose, Fell, Went}
	slices.SortStableFunc(out, func(a, b Change) int {
		if c := cmp.Compare(slices.Index(order, a.What), slices.Index(order, b.What)); c != 0 {
			return c
		}
		if c := cmp.Compare(max(b.Moved, -b.Moved), max(a.Moved, -a.Moved)); c != 0 {
			return c
		}
		return cmp.Compare(max(a.To, a.From), max(b.To, b.From))
	})
	return out
}

// NewSince gives the items that were first seen after an instant.
func NewSince(items []source.Item, since time.Time) []source.Item {
	return slices.DeleteFunc(slices.Clone(items), func(it source.Item) bool { return !it.FirstSeen.After(since) })
}

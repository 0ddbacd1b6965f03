package web

import (
	"cmp"
	"fmt"
	"slices"

	"feedwarden/quota"
)

// layer is one colour of a quota's timeline: a feed, what scripts charge under a
// name of theirs, or the sum of those that have no colour of their own.
type layer struct {
	Name        string
	Class       string
	Past, Ahead []int64 // units by quarters of an hour, as long as all others'
}

func (l layer) units() int64 { return sum(l.Past) + sum(l.Ahead) }

// unnamed are charges that do not say for whom they are.
const unnamed = "other charges"

// layersOf are all that took units or will, who takes the most first; and what was
// taken in no name. What was given back is taken off in the quarter in which it was.
func layersOf(past []Point, shares []quota.Share, f QuotaForecast) (named []layer, rest layer) {
	ahead := 0
	for _, u := range f.Feeds {
		ahead = max(ahead, len(u.Slots))
	}
	at := map[string]int{}
	of := func(name string) *layer {
		i, ok := at[name]
		if !ok {
			i = len(named)
			at[name] = i
			named = append(named, layer{Name: name, Past: make([]int64, len(past)), Ahead: make([]int64, ahead)})
		}
		return &named[i]
	}
	rest = layer{Name: unnamed, Class: "unnamed", Past: make([]int64, len(past)), Ahead: make([]int64, ahead)}
	for i, p := range past {
		rest.Past[i] = p.Units - p.RefundedUnits
	}
	for _, s := range shares {
		l := of(s.Label)
		for i := range min(len(past), len(s.Units)) {
			n := s.Units[i] - s.Refunded[i]
			l.Past[i] = max(n, 0)
			rest.Past[i] -= n
		}
	}
	for i, n := range rest.Past {
		rest.Past[i] = max(n, 0)
	}
	for _, u := range f.Feeds {
		copy(of(u.Feed).Ahead, u.Slots)
	}
	slices.SortFunc(named, func(a, b layer) int {
		return cmp.Or(cmp.Compare(b.units(), a.units()), cmp.Compare(a.Name, b.Name))
	})
	return named, rest
}

// inColour is what a chart shows of the layers: those that take the most by
// themselves, in the order of their names, so that a feed keeps its colour from one
// look to the next; the others as one; last what was taken in no name, if anything.
func inColour(named []layer, rest layer) []layer {
	shown := len(named)
	if shown > seriesInColour+1 {
		shown = seriesInColour
	}
	out := slices.Clone(named[:shown])
	slices.SortFunc(out, func(a, b layer) int { return cmp.Compare(a.Name, b.Name) })
	for i := range out {
		out[i].Class = fmt.Sprintf("s%d", i)
	}
	if others := named[shown:]; len(others) > 0 {
		out = append(out, summed(others))
	}
	if rest.units() > 0 {
		out = append(out, rest)
	}
	return out
}

// summed is several layers as one.
func summed(layers []layer) layer {
	l := layer{Name: grouped(int64(len(layers))) + " others", Class: "muted", Past: make([]int64, len(layers[0].Past)), Ahead: make([]int64, len(layers[0].Ahead))}
	for _, o := range layers {
		for i, n := range o.Past {
			l.Past[i] += n
		}
		for i, n := range o.Ahead {
			l.Ahead[i] += n
		}
	}
	return l
}

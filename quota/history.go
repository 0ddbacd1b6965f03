package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Point is what a quota did in a quarter of an hour.
type Point struct {
	Start    time.Time // by Redis's clock, a whole quarter of UTC
	Granted  int64     // charges
	Units    int64     // granted
	Refused  int64     // charges
	Refunded int64     // units, whenever they were charged
}

// Share is what of the past day's units went to one label, by quarters of an hour:
// element i belongs to point i.
type Share struct {
	Label    string
	Units    []int64 // granted
	Refunded []int64 // whenever they were charged
}

const (
	quarter  = 15 * time.Minute
	quarters = 96
)

// History is a quota's past day: 96 quarters of an hour, the oldest first; the
// last is the present one, as yet.
func (l *Limiter) History(ctx context.Context, quota string) ([]Point, error) {
	points, _, err := l.Shares(ctx, quota)
	return points, err
}

// Shares is History, and how much of it went to each label, as of the same moment;
// who took the most comes first. What is in no share had no label, or came in a
// quarter after 1,000 others.
func (l *Limiter) Shares(ctx context.Context, quota string) ([]Point, []Share, error) {
	b, err := l.find(quota)
	var reply []any
	if err == nil {
		reply, err = historyScript.Run(ctx, l.rdb, b.keys, l.args(b, 0)...).Slice()
	}
	var points []Point
	var shares []Share
	if err == nil {
		points, shares, err = history(reply)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("quota: history %q: %w", quota, scriptError(err))
	}
	return points, shares, nil
}

// tally is the counters at an instant.
type tally struct{ grants, units, refusals, back int64 }

// history reads history.lua's reply.
func history(reply []any) ([]Point, []Share, error) {
	r := reader{rest: reply}
	last := r.int() / quarter.Microseconds()
	counters := r.array()
	seen := counters.seen()
	list, newest := r.array(), r.array()
	begun := map[int64]tally{}
	who := labelTally{last: last, all: map[string]*Share{}}
	for len(list.rest) > 0 && list.err == nil {
		at, text := list.text(), list.text()
		if list.err != nil {
			break
		}
		var slot int64
		var t tally
		head, lines, _ := strings.Cut(text, "\n")
		if _, err := fmt.Sscan(at+" "+head, &slot, &t.grants, &t.units, &t.refusals, &t.back); err != nil {
			return nil, nil, fmt.Errorf("%w: %q of quarter %q", errReply, head, at)
		}
		begun[slot] = t
		for line := range strings.Lines(lines) {
			line = strings.TrimSuffix(line, "\n")
			i := strings.LastIndexByte(line, ' ')
			if err := who.note(slot, line[:max(i, 0)], line[i+1:]); err != nil {
				return nil, nil, err
			}
		}
	}
	fields := map[string]string{}
	for len(newest.rest) > 0 && newest.err == nil {
		fields[newest.text()] = newest.text()
	}
	for _, part := range []reader{r, counters, list, newest} {
		if err := part.done(); err != nil {
			return nil, nil, err
		}
	}
	if err := who.newest(fields, begun); err != nil {
		return nil, nil, err
	}
	return points(last, begun, tally{seen.Grants, seen.Units, seen.Refusals, seen.Refunded}), who.shares(), nil
}

// points makes the series up to the quarter last from the counters as quarters
// began, and as they are now. A quarter in which nothing was counted is not in
// begun: so what was counted from one to the next belongs to the first.
func points(last int64, begun map[int64]tally, now tally) []Point {
	all := make([]Point, quarters)
	after := now
	for i := quarters - 1; i >= 0; i-- {
		slot := last - int64(quarters-1-i)
		all[i].Start = time.UnixMicro(slot * quarter.Microseconds()).UTC()
		t, ok := begun[slot]
		if !ok {
			continue
		}
		all[i].Granted, all[i].Units = after.grants-t.grants, after.units-t.units
		all[i].Refused, all[i].Refunded = after.refusals-t.refusals, after.back-t.back
		after = t
	}
	return all
}

// labelTally gathers what went to each label, up to the quarter last.
type labelTally struct {
	last int64
	all  map[string]*Share
}

// note takes one count of label.lua's: '+label' or '-label', and units.
func (l *labelTally) note(slot int64, field, units string) error {
	n, err := strconv.ParseInt(units, 10, 64)
	if err != nil || len(field) < 2 || field[0] != '+' && field[0] != '-' {
		return fmt.Errorf("%w: label %q has %q units in quarter %d", errReply, field, units, slot)
	}
	i := int(slot - l.last + quarters - 1)
	if i < 0 || i >= quarters {
		return nil
	}
	s := l.all[field[1:]]
	if s == nil {
		s = &Share{Label: field[1:], Units: make([]int64, quarters), Refunded: make([]int64, quarters)}
		l.all[s.Label] = s
	}
	if field[0] == '+' {
		s.Units[i] += n
	} else {
		s.Refunded[i] += n
	}
	return nil
}

// newest takes the counts that are not in the series yet. Of a quarter that the
// series does not know, there are no units that they could be of.
func (l *labelTally) newest(fields map[string]string, begun map[int64]tally) error {
	of, ok := fields["\t"]
	if !ok {
		return nil
	}
	delete(fields, "\t")
	slot, err := strconv.ParseInt(of, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: labels of quarter %q", errReply, of)
	}
	if _, ok := begun[slot]; !ok {
		return nil
	}
	for field, units := range fields {
		if err := l.note(slot, field, units); err != nil {
			return err
		}
	}
	return nil
}

// shares are all labels, who took the most first.
func (l *labelTally) shares() []Share {
	all, taken := make([]Share, 0, len(l.all)), make(map[string]int64, len(l.all))
	for label, s := range l.all {
		all = append(all, *s)
		for i, n := range s.Units {
			taken[label] += n - s.Refunded[i]
		}
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(cmp.Compare(taken[b.Label], taken[a.Label]), cmp.Compare(a.Label, b.Label))
	})
	return all
}

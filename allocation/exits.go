package allocation

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"time"
)

// An Exit is an address that the judge saw when it was asked through an endpoint.
type Exit struct {
	Addr        netip.Addr
	First, Last time.Time
	Seen        int64 // checks that saw it
}

// Rotates tells whether the endpoint was seen with more than one exit.
func (e Endpoint) Rotates() bool { return len(e.Exits) > 1 }

// An ExitGroup is one exit and the endpoints that were seen with it. Endpoints
// are what a policy rotates over; those that share an exit look like one to a target.
type ExitGroup struct {
	Addr        netip.Addr
	Endpoints   []string  // IDs, sorted
	Rotating    int       // of them, those that were seen with other exits too
	First, Last time.Time // over all of them
	Seen        int64
}

// Exits gives a pool's exits, those shared by the most endpoints first.
func (p *Pools) Exits(ctx context.Context, pool string) ([]ExitGroup, error) {
	if _, err := p.pool(pool); err != nil {
		return nil, failed("exits", pool, err)
	}
	all, err := p.scan(ctx, pool)
	if err != nil {
		return nil, failed("exits", pool, err)
	}
	var list []Endpoint
	for id, f := range all {
		if f.url == "" || f.exits == "" {
			continue
		}
		e, err := f.endpoint(id, time.Time{})
		if err != nil {
			return nil, failed("exits", pool, err)
		}
		list = append(list, e)
	}
	return groupExits(list), nil
}

func groupExits(list []Endpoint) []ExitGroup {
	groups := map[netip.Addr]*ExitGroup{}
	for _, e := range list {
		for _, x := range e.Exits {
			g := groups[x.Addr]
			if g == nil {
				g = &ExitGroup{Addr: x.Addr, First: x.First, Last: x.Last}
				groups[x.Addr] = g
			}
			g.Endpoints = append(g.Endpoints, e.ID)
			if e.Rotates() {
				g.Rotating++
			}
			if x.First.Before(g.First) {
				g.First = x.First
			}
			if x.Last.After(g.Last) {
				g.Last = x.Last
			}
			g.Seen += x.Seen
		}
	}
	out := make([]ExitGroup, 0, len(groups))
	for _, g := range groups {
		slices.Sort(g.Endpoints)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b ExitGroup) int {
		return cmp.Or(cmp.Compare(len(b.Endpoints), len(a.Endpoints)), a.Addr.Compare(b.Addr))
	})
	return out
}

// readExits reads field x:ID, the latest first.
func readExits(text string) ([]Exit, error) {
	if text == "" {
		return nil, nil
	}
	var list []struct {
		Addr  netip.Addr `json:"addr"`
		First string     `json:"first"`
		Last  string     `json:"last"`
		Seen  int64      `json:"seen"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	out := make([]Exit, len(list))
	for i, x := range list {
		first, err := instant(x.First)
		if err != nil {
			return nil, err
		}
		last, err := instant(x.Last)
		if err != nil {
			return nil, err
		}
		out[i] = Exit{x.Addr, first, last, x.Seen}
	}
	slices.SortFunc(out, func(a, b Exit) int { return cmp.Or(b.Last.Compare(a.Last), a.Addr.Compare(b.Addr)) })
	return out, nil
}

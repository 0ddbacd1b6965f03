package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"feedwarden/allocation"
)

type poolsView struct {
	frame
	Pools []poolCard
	Pager pager
}

const poolsPerPage = 50

func (s *Server) poolsPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "page")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at, err := q.pageNumber()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	shot, ok := s.readableShot(w, r)
	if !ok {
		return
	}
	now := time.Now()
	v := poolsView{frame: s.frame(r, "pools", "Pools", now)}
	v.Pools, v.Pager = turn(shot.Pools, at, poolsPerPage, "pools", nil, func(p part[Pool]) poolCard { return newPoolCard(p, now) })
	s.show(w, r, http.StatusOK, "pools", v)
}

// endpointsPerPage is how many endpoints a page shows; what it costs Redis is that
// of the page, not of the pool.
const endpointsPerPage = 50

// Of a pool's exits and targets a page shows the first few.
const (
	exitsShown   = 20
	targetsShown = 20
	namesShown   = 3
)

// exitsAge is how old the list of exits may be: it is read from all endpoints.
const exitsAge = time.Minute

type poolPageView struct {
	frame
	Pool      poolCard
	Rules     [][2]string
	State     string
	States    []choice
	After     string
	First     string // link to the first page; "" on it
	Next      string
	Endpoints []endpointRow
	Chart     chart
	Exits     []exitRow
	ExitCount int
	ExitsErr  string
	Targets   []targetRow
	TargetN   int
	API       string
}

type endpointRow struct {
	Endpoint
	Until  moment
	Since  moment
	Check  string
	OK     bool
	Exits  string
	Bans   string
	Rotate bool
}

type exitRow struct {
	Addr  string
	N     int
	Names string
	Says  string
	Last  moment
}

type targetRow struct {
	Name   string
	Paused moment
	Banned int
}

func (s *Server) poolPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "state", "after")
	if err == nil && q["state"] != "" && !slices.Contains(allocation.States, q["state"]) {
		err = badQuery(fmt.Sprintf("state %q: it is one of %s", q["state"], strings.Join(allocation.States, ", ")))
	}
	if err == nil && len(q["after"]) > 1000 {
		err = badQuery("after: the ID of an endpoint is wanted")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := s.readPoolPage(r, q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.show(w, r, http.StatusOK, "pool", v)
}

func (s *Server) readPoolPage(r *http.Request, q query) (poolPageView, error) {
	ctx, now, name := r.Context(), time.Now(), r.PathValue("name")
	st, err := s.p.Pools.State(ctx, name)
	if err != nil {
		return poolPageView{}, err
	}
	pool := PoolView(st)
	v := poolPageView{
		frame: s.frame(r, "pools", "Pool "+name, now), Pool: newPoolCard(part[Pool]{Name: name, View: pool}, now),
		State: q["state"], States: stateChoices(pool, q["state"]), After: q["after"], API: "/v1/pools/" + escape(name),
	}
	if c, ok := s.p.Pools.Config(name); ok {
		v.Rules = poolRules(c)
	}
	var page allocation.EndpointPage
	if !noneIn(pool, q["state"]) {
		page, err = s.p.Pools.ListPage(ctx, name, allocation.Page{After: q["after"], Limit: endpointsPerPage, State: q["state"]})
	}
	if err != nil {
		return v, err
	}
	keep := q.keep("state")
	if q["after"] != "" {
		v.First = pageLink(keep, "after", "")
	}
	if page.Next != "" {
		v.Next = pageLink(keep, "after", page.Next)
	}
	for _, e := range page.Endpoints {
		v.Endpoints = append(v.Endpoints, newEndpointRow(e, now))
	}
	v.Chart = picksChart(name, page.Endpoints)
	targets, err := s.p.Pools.Targets(ctx, name)
	if err != nil {
		return v, err
	}
	v.TargetN = len(targets)
	for _, t := range targets[:min(len(targets), targetsShown)] {
		v.Targets = append(v.Targets, targetRow{t.Name, relative(instant(t.Paused), now, "open"), t.Banned})
	}
	exits, err := s.shots.exits(ctx, name)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return v, err
		}
		s.log.Warn("could not be read", "error", err)
		v.ExitsErr = unreadable
	}
	v.ExitCount = len(exits)
	for _, x := range exits[:min(len(exits), exitsShown)] {
		row := exitRow{Addr: x.Addr.String(), N: len(x.Endpoints), Names: list(x.Endpoints, namesShown), Last: relative(instant(x.Last), now, "")}
		if x.Rotating > 0 {
			row.Says = fmt.Sprintf("%d of them seen with other exits too", x.Rotating)
		}
		v.Exits = append(v.Exits, row)
	}
	return v, nil
}

// noneIn says that no endpoint is in a state: looking for one would pass over all.
func noneIn(p Pool, state string) bool {
	n, counted := map[string]int{
		allocation.Candidate: p.Candidates, allocation.Quarantined: p.Quarantined, allocation.AuthFailed: p.AuthFailed, allocation.Disabled: p.Disabled,
	}[state]
	return counted && n == 0
}

func stateChoices(p Pool, chosen string) []choice {
	out := []choice{{Label: "any state (" + grouped(int64(p.Total)) + ")", Chosen: chosen == ""}}
	for _, st := range allocation.States {
		out = append(out, choice{Name: st, Label: strings.ReplaceAll(st, "_", " "), Chosen: st == chosen})
	}
	return out
}

func poolRules(c allocation.Config) [][2]string {
	rules := [][2]string{
		{"New ones start", c.Start},
		{"Quarantine", span(c.Quarantine.Base) + ", doubling up to " + span(c.Quarantine.Max)},
	}
	if c.Policy == allocation.LeastBusy {
		rules = append(rules, [2]string{"Leases", fmt.Sprintf("%d at a time, of %s", c.Cap, span(c.Lease))})
	}
	if r := c.Require; r != nil {
		var all []string
		if r.HTTPS {
			all = append(all, "https")
		}
		if r.Anonymous {
			all = append(all, "anonymous")
		}
		if r.MaxLatency > 0 {
			all = append(all, "within "+span(r.MaxLatency))
		}
		rules = append(rules, [2]string{"Serves when", "a check finds: " + list(all, 3)})
	}
	return rules
}

func newEndpointRow(e allocation.Endpoint, now time.Time) endpointRow {
	row := endpointRow{Endpoint: EndpointView(e), Until: relative(instant(e.Until), now, ""), Since: relative(instant(e.Since), now, ""), Rotate: e.Rotates()}
	if c := e.Verdict; c != nil {
		row.OK = c.OK
		row.Check = verdictWords(*c) + ", " + relative(instant(e.Checked), now, "").Text
	}
	var names []string
	for _, x := range e.Exits {
		names = append(names, x.Addr.String())
	}
	row.Exits = list(names, 2)
	names = nil
	for _, b := range e.Bans {
		names = append(names, b.Target+" "+relative(instant(b.Until), now, "").Text)
	}
	row.Bans = list(names, 2)
	return row
}

func verdictWords(v allocation.Verdict) string {
	if !v.OK {
		text := string(v.Kind)
		if v.Detail != "" {
			text += ": " + v.Detail
		}
		return text
	}
	words := []string{span(v.Latency)}
	if v.HTTPS {
		words = append(words, "https")
	}
	if v.Reveals {
		words = append(words, "tells who asks")
	}
	if v.Alters {
		words = append(words, "changes what it carries")
	}
	return list(words, len(words))
}

// fewColumns keeps the columns of a small pool from being as wide as the page.
const fewColumns = 16

// picksChart is how often each endpoint of a page was picked, and its handicap.
func picksChart(pool string, all []allocation.Endpoint) chart {
	counts, handicaps := make([]int64, len(all)), make([]int64, len(all))
	for i, e := range all {
		counts[i], handicaps[i] = e.Count, max(e.Handicap, 0)
	}
	values := [][]int64{counts, handicaps}
	most := roundUp(highest(values) * 1.05)
	c := chart{ID: "picks", Width: max(len(all), fewColumns) * columnStep, Height: chartHeight, Top: counted(int(most), "pick")}
	paths := columns(values, most)
	total := sum(counts)
	c.Series = []series{
		{Name: "picks", Class: "s0", Path: paths[0], Total: grouped(total)},
		{Name: "handicap", Class: "muted", Path: paths[1], Total: grouped(sum(handicaps))},
	}
	if len(all) > 0 {
		even := total / int64(len(all))
		c.Guides = []guide{{Y: level(even, most), Class: "mean", Says: "the same for all: " + grouped(even)}}
		lowest, top := slices.Min(counts), slices.Max(counts)
		c.Says = fmt.Sprintf("Picks of %s of pool %s: %s to %s each, %s in all", counted(len(all), "endpoint"), pool, grouped(lowest), grouped(top), grouped(total))
	}
	return c
}

// exits are a pool's exits, shared by its viewers for a minute.
func (n *snapshots) exits(ctx context.Context, pool string) ([]allocation.ExitGroup, error) {
	if _, ok := n.server.p.Pools.Config(pool); !ok {
		return nil, allocation.ErrUnknownPool
	}
	n.mu.Lock()
	c := n.exitsOf[pool]
	if c == nil {
		c = &cached[[]allocation.ExitGroup]{within: snapshotWithin, load: func(ctx context.Context) ([]allocation.ExitGroup, error) {
			return n.server.p.Pools.Exits(ctx, pool)
		}}
		n.exitsOf[pool] = c
	}
	n.mu.Unlock()
	return c.get(ctx, exitsAge)
}

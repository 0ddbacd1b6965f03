package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedwarden/allocation"
	"feedwarden/jobs/probe"
	"feedwarden/web"
)

type proxiesCheckCmd struct {
	Pool string   `arg:"" help:"The pool."`
	IDs  []string `arg:"" optional:"" name:"id" help:"Only these endpoints; all of the pool else."`
}

// checked is an endpoint's line.
type checked struct {
	ID    string     `json:"id"`
	State string     `json:"state"` // as it stands after the check
	Exit  string     `json:"exit"`  // "" when the judge saw none
	Error string     `json:"error"` // not "": it was not checked, for a reason of ours
	Check *web.Check `json:"check"`
}

func (c *proxiesCheckCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		if _, err := s.pools.State(s.ctx, c.Pool); err != nil {
			return err
		}
		ids, err := c.wanted(s)
		if err != nil {
			return err
		}
		plan, err := s.checker.Plan(s.ctx, s.pools, c.Pool, ids...)
		checker := s.checker
		if (errors.Is(err, probe.ErrJudgeAway) || errors.Is(err, probe.ErrNoJudge)) && s.settings.probe.Own && allOnLoopback(plan) {
			// No web role runs; proxies of this machine can be asked to visit a judge of our own.
			var stop func()
			if checker, stop, err = visitingJudge(s); err == nil {
				defer stop()
				plan, err = checker.Plan(s.ctx, s.pools, c.Pool, ids...)
			}
		}
		if err != nil {
			return err
		}
		return c.run(s, checker, plan)
	})
}

// wanted are the IDs that were named. One that a check would pass over is an error.
func (c *proxiesCheckCmd) wanted(s *session) ([]string, error) {
	ids := make([]string, len(c.IDs))
	for i, arg := range c.IDs {
		ids[i] = endpointID(s, c.Pool, arg)
		p, err := s.pools.Endpoint(s.ctx, c.Pool, ids[i])
		if err != nil {
			return nil, err
		}
		if p.State == allocation.AuthFailed || p.State == allocation.Disabled {
			return nil, fmt.Errorf("%s is %s and waits for you: feedwarden proxies restore %s %s, and then check", ids[i], p.State, c.Pool, ids[i])
		}
	}
	return ids, nil
}

func (c *proxiesCheckCmd) run(s *session, checker *probe.Checker, plan probe.Plan) error {
	bar := newBar(s.errOut, len(plan.Endpoints))
	var rows []checked
	sum, err := checker.Run(s.ctx, s.pools, plan, func(r probe.Result) {
		bar.step(r.Err == nil && r.Verdict.OK)
		row := checkedRow(r)
		if s.json { // as they come: a script need not wait for the slowest
			_ = s.line(row)
			return
		}
		rows = append(rows, row)
	})
	bar.end()
	slices.SortFunc(rows, func(a, b checked) int { return cmp.Compare(a.ID, b.ID) })
	if terr := checkTable(s, c.Pool, rows); err == nil {
		err = terr
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.errOut, "%s checked: %d answered, %d failed%s\n", count(sum.Checked, "endpoint"), sum.OK, sum.Failed, statesOf(sum))
	if sum.Unjudged > 0 {
		return &exitError{exitFailed, fmt.Errorf("%s could not be checked", count(sum.Unjudged, "endpoint"))}
	}
	st, err := s.pools.State(s.ctx, c.Pool)
	if err == nil && sum.Checked > 0 && st.Eligible == 0 {
		err = &exitError{exitFailed, fmt.Errorf("pool %s has no eligible endpoint", c.Pool)}
	}
	return err
}

func checkedRow(r probe.Result) checked {
	row := checked{ID: r.ID}
	if r.Err != nil {
		row.Error = r.Err.Error()
		return row
	}
	row.State, row.Check = r.Endpoint.State, web.EndpointView(r.Endpoint).Check
	if r.Verdict.Exit.IsValid() {
		row.Exit = r.Verdict.Exit.String()
	}
	return row
}

func checkTable(s *session, pool string, rows []checked) error {
	t := s.table("pool "+pool+" has no endpoint to check; feedwarden proxies import "+pool+" FILE", "ENDPOINT", "RESULT", "HTTPS", "LATENCY", "EXIT", "STATE", "NOTES")
	for _, r := range rows {
		result, https, latency, notes := "not checked", "—", "—", r.Error
		if k := r.Check; k != nil {
			result, notes = "ok", k.Detail
			if !k.OK {
				result = k.Kind
			} else {
				https, latency = yesNo(k.HTTPS), span(time.Duration(k.LatencyMS)*time.Millisecond)
			}
		}
		if err := t.add(r, r.ID, result, https, latency, orDash(r.Exit), orDash(r.State), notes); err != nil {
			return err
		}
	}
	if s.json {
		return nil
	}
	return t.flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func statesOf(sum probe.Summary) string {
	var words []string
	for state, n := range sum.States {
		words = append(words, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(words)
	if len(words) == 0 {
		return ""
	}
	return "; now " + strings.Join(words, ", ")
}

// allOnLoopback says that every endpoint of a plan runs on this machine.
func allOnLoopback(p probe.Plan) bool {
	return !slices.ContainsFunc(p.Endpoints, func(a allocation.Allocation) bool {
		addr, err := netip.ParseAddr(a.URL.Hostname())
		return a.URL.Hostname() != "localhost" && (err != nil || !addr.IsLoopback())
	})
}

// visitingJudge is a judge on a free port for as long as a command runs.
func visitingJudge(s *session) (*probe.Checker, func(), error) {
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(probe.Judge), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	cfg := s.settings.probe
	cfg.Judge = (&url.URL{Scheme: "http", Host: l.Addr().String(), Path: probe.Path}).String()
	c := probe.NewChecker(cfg)
	return c, func() { c.Close(); _ = server.Close(); <-done }, nil
}

// listExits prints a pool by exit.
func listExits(s *session, pool string) error {
	groups, err := s.pools.Exits(s.ctx, pool)
	if err != nil {
		return err
	}
	t := s.table("no exit of pool "+pool+" is known yet; feedwarden proxies check "+pool, "EXIT", "ENDPOINTS", "ROTATING", "SEEN", "LAST", "WHICH")
	for _, g := range groups {
		row := map[string]any{
			"exit": g.Addr.String(), "endpoints": g.Endpoints, "shared": len(g.Endpoints) > 1, "rotating": g.Rotating,
			"first": g.First.UTC(), "last": g.Last.UTC(), "seen": g.Seen,
		}
		err := t.add(row, g.Addr.String(), fmt.Sprint(len(g.Endpoints)), fmt.Sprint(g.Rotating), fmt.Sprint(g.Seen), instant(&g.Last, time.Now()), strings.Join(g.Endpoints, " "))
		if err != nil {
			return err
		}
	}
	return t.flush()
}

// tellList says, for a person, how a list at a web address stands when its last
// fetch failed: the pool is that of an older one.
func tellList(s *session, pool string) {
	st, err := s.lists.State(s.ctx, pool)
	switch {
	case err != nil: // it has none, or Redis fails and says so below
	case st.Error != "":
		fmt.Fprintf(s.errOut, "the list %s could not be fetched %s ago; the last good one holds: %s\n", st.Source, span(time.Since(st.Tried)), oneLine(st.Error))
	case st.Tried.IsZero():
		fmt.Fprintf(s.errOut, "the list %s was not fetched yet; a worker does it\n", st.Source)
	}
}

// bar shows on a terminal how far a check has got.
type bar struct {
	w               io.Writer // nil: nobody looks
	all, done, well int
	last            time.Time
}

const barWidth = 30

func newBar(w io.Writer, all int) *bar {
	b := &bar{w: w, all: all}
	if !fancy(w) || all == 0 {
		b.w = nil
	}
	return b
}

func (b *bar) step(well bool) {
	b.done++
	if well {
		b.well++
	}
	if now := time.Now(); b.w != nil && (b.done == b.all || now.Sub(b.last) > 50*time.Millisecond) {
		b.last = now
		full := barWidth * b.done / b.all
		fmt.Fprintf(b.w, "\r[%s%s] %d/%d, %d answer", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), b.done, b.all, b.well)
	}
}

// end takes the bar away: what follows is the result.
func (b *bar) end() {
	if b.w != nil {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

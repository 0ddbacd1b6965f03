package web

import (
	"time"

	"feedwarden/allocation"
)

// Pool is a pool in numbers.
type Pool struct {
	Name        string `json:"name"`
	Policy      string `json:"policy"`
	Total       int    `json:"total"`
	Eligible    int    `json:"eligible"`
	Quarantined int    `json:"quarantined"`
	AuthFailed  int    `json:"auth_failed"`
	Disabled    int    `json:"disabled"`
	Candidates  int    `json:"candidates"` // wait for a check
	// NextEligibleAt is the next end of a quarantine; null when there is none.
	NextEligibleAt *time.Time `json:"next_eligible_at"`
}

// PoolView is a pool's state as JSON.
func PoolView(s allocation.State) Pool {
	return Pool{
		Name: s.Name, Policy: s.Policy, Total: s.Total, Eligible: s.Eligible, Quarantined: s.Quarantined,
		AuthFailed: s.AuthFailed, Disabled: s.Disabled, Candidates: s.Candidates, NextEligibleAt: instant(s.NextEligible),
	}
}

// Endpoint is one proxy without its password.
type Endpoint struct {
	ID     string `json:"id"`
	Scheme string `json:"scheme"`
	Host   string `json:"host"`
	User   string `json:"user"`
	// State is candidate, active, probation, quarantined, auth_failed or disabled.
	State    string     `json:"state"`
	Until    *time.Time `json:"until"`  // the end of a quarantine; null otherwise
	Since    *time.Time `json:"since"`  // when Why was reported
	Why      string     `json:"why"`    // the outcome that led to this state; "" when none
	Target   string     `json:"target"` // the host on which it failed
	Strikes  int        `json:"strikes"`
	Count    int64      `json:"count"` // allocations
	Handicap int64      `json:"handicap"`
	InFlight int64      `json:"in_flight"` // leases
	Check    *Check     `json:"check"`     // the last one; null when there was none
	Exits    []Exit     `json:"exits"`     // the latest first
}

// Check is what the last check of an endpoint found.
type Check struct {
	At        time.Time `json:"at"`
	OK        bool      `json:"ok"`
	Kind      string    `json:"kind"` // when not OK: how it failed
	HTTPS     bool      `json:"https"`
	LatencyMS int64     `json:"latency_ms"`
	Alters    bool      `json:"alters"`
	Reveals   bool      `json:"reveals"`
	Detail    string    `json:"detail"`
}

// Exit is an address that a judge saw an endpoint leave by.
type Exit struct {
	Addr  string    `json:"addr"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Seen  int64     `json:"seen"`
}

// EndpointView is an endpoint as JSON.
func EndpointView(e allocation.Endpoint) Endpoint {
	v := Endpoint{
		ID: e.ID, Scheme: e.Scheme, Host: e.Host, User: e.User, State: e.State, Until: instant(e.Until), Since: instant(e.Since),
		Why: e.Why, Target: e.Target, Strikes: e.Strikes, Count: e.Count, Handicap: e.Handicap, InFlight: e.InFlight,
		Exits: make([]Exit, len(e.Exits)),
	}
	if c := e.Verdict; c != nil {
		v.Check = &Check{
			At: e.Checked.UTC(), OK: c.OK, Kind: string(c.Kind), HTTPS: c.HTTPS, LatencyMS: c.Latency.Milliseconds(),
			Alters: c.Alters, Reveals: c.Reveals, Detail: c.Detail,
		}
	}
	for i, x := range e.Exits {
		v.Exits[i] = Exit{x.Addr.String(), x.First.UTC(), x.Last.UTC(), x.Seen}
	}
	return v
}

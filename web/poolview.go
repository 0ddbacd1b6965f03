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
	// NextEligibleAt is the next end of a quarantine; null when there is none.
	NextEligibleAt *time.Time `json:"next_eligible_at"`
}

// PoolView is a pool's state as JSON.
func PoolView(s allocation.State) Pool {
	return Pool{
		Name: s.Name, Policy: s.Policy, Total: s.Total, Eligible: s.Eligible, Quarantined: s.Quarantined,
		AuthFailed: s.AuthFailed, Disabled: s.Disabled, NextEligibleAt: instant(s.NextEligible),
	}
}

// Endpoint is one proxy without its password.
type Endpoint struct {
	ID     string `json:"id"`
	Scheme string `json:"scheme"`
	Host   string `json:"host"`
	User   string `json:"user"`
	// State is active, probation, quarantined, auth_failed or disabled.
	State    string     `json:"state"`
	Until    *time.Time `json:"until"`  // the end of a quarantine; null otherwise
	Since    *time.Time `json:"since"`  // when Why was reported
	Why      string     `json:"why"`    // the outcome that led to this state; "" when none
	Target   string     `json:"target"` // the host on which it failed
	Strikes  int        `json:"strikes"`
	Count    int64      `json:"count"` // allocations
	Handicap int64      `json:"handicap"`
	InFlight int64      `json:"in_flight"` // leases
}

// EndpointView is an endpoint as JSON.
func EndpointView(e allocation.Endpoint) Endpoint {
	return Endpoint{
		ID: e.ID, Scheme: e.Scheme, Host: e.Host, User: e.User, State: e.State, Until: instant(e.Until), Since: instant(e.Since),
		Why: e.Why, Target: e.Target, Strikes: e.Strikes, Count: e.Count, Handicap: e.Handicap, InFlight: e.InFlight,
	}
}

package allocation

import (
	"context"
	"strconv"
	"time"
)

// State is a pool in numbers.
type State struct {
	Name, Policy                                                   string
	Total, Eligible, Quarantined, AuthFailed, Disabled, Candidates int
	NextEligible                                                   time.Time // the next end of a quarantine; zero when none is
}

// State counts a pool's endpoints.
func (p *Pools) State(ctx context.Context, pool string) (State, error) {
	c, err := p.pool(pool)
	if err != nil {
		return State{}, failed("state", pool, err)
	}
	k := keysOf(pool).prefix
	reply, err := p.run(ctx, stateScript, []string{k + "ready", k + "parked", k + "held"})
	if err != nil {
		return State{}, failed("state", pool, err)
	}
	f, err := texts(reply, 6)
	if err != nil {
		return State{}, failed("state", pool, err)
	}
	s := State{Name: pool, Policy: c.Policy}
	for i, n := range []*int{&s.Eligible, &s.Quarantined, &s.AuthFailed, &s.Disabled, &s.Candidates} {
		if *n, err = strconv.Atoi(f[i]); err != nil {
			return State{}, failed("state", pool, err)
		}
		s.Total += *n
	}
	if s.NextEligible, err = instant(f[5]); err != nil {
		return State{}, failed("state", pool, err)
	}
	return s, nil
}

package probe

import (
	"context"
	"fmt"
	"slices"

	"feedwarden/allocation"
	"feedwarden/jobs/fetch"
)

// fitting says why the judge cannot be used for a pool whose endpoints are
// public, or nil.
func (c *Checker) fitting(pool string, private bool) error {
	if c.noWay != nil {
		return c.noWay
	}
	if c.judge.private && !private {
		return fmt.Errorf("%w for pool %q: %s can be reached from here alone, and its proxies are elsewhere: set web.judge to a public address of the web role",
			ErrNoJudge, pool, fetch.Redact(c.judge.URL))
	}
	return nil
}

// A Result is one endpoint checked.
type Result struct {
	ID       string
	Verdict  allocation.Verdict
	Endpoint allocation.Endpoint // as it stands after it
	Err      error               // not nil: not judged, and nothing has changed
}

// Summary counts results.
type Summary struct {
	Checked, OK, Failed, Unjudged int
	States                        map[string]int // how many are in which state after it
}

func (s *Summary) add(r Result) {
	s.Checked++
	switch {
	case r.Err != nil:
		s.Unjudged++
		return
	case r.Verdict.OK:
		s.OK++
	default:
		s.Failed++
	}
	s.States[r.Endpoint.State]++
}

// Pools is what a check asks of allocation.
type Pools interface {
	Config(pool string) (allocation.Config, bool)
	Candidates(ctx context.Context, pool string, n int) ([]allocation.Allocation, error)
	Judge(ctx context.Context, pool, id string, v allocation.Verdict) (allocation.Endpoint, error)
}

// Plan is what a check is about to do.
type Plan struct {
	Pool      string
	Endpoints []allocation.Allocation
	direct    Answer
}

// most bounds one check; the rest has its turn in the next.
const most = 100_000

// Plan finds who is to be checked, all or those of ids, and asks the judge
// directly. Nothing is checked where the judge does not answer.
func (c *Checker) Plan(ctx context.Context, pools Pools, pool string, ids ...string) (Plan, error) {
	p := Plan{Pool: pool}
	list, err := pools.Candidates(ctx, pool, most)
	if err != nil {
		return p, err
	}
	if len(ids) > 0 {
		list = slices.DeleteFunc(list, func(a allocation.Allocation) bool { return !slices.Contains(ids, a.ID) })
	}
	if p.Endpoints = list; len(list) == 0 {
		return p, nil
	}
	cfg, _ := pools.Config(pool)
	if err := c.fitting(pool, cfg.AllowPrivate); err != nil {
		return p, err
	}
	p.direct, err = c.Direct(ctx)
	return p, err
}

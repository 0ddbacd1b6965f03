package probe

import (
	"context"
	"sync"

	"feedwarden/allocation"
)

// Run checks the endpoints of a plan, a bounded number at a time, and tells
// allocation of each. each is called for one after the other, as they are done.
// An error ends it early: Redis failed, or the context is over.
func (c *Checker) Run(ctx context.Context, pools Pools, p Plan, each func(Result)) (Summary, error) {
	sum := Summary{States: map[string]int{}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan allocation.Allocation)
	results := make(chan Result)
	var workers sync.WaitGroup
	for range min(c.cfg.Parallel, len(p.Endpoints)) {
		workers.Go(func() {
			for a := range todo {
				r, err := c.one(ctx, pools, p, a)
				if err != nil {
					cancel(err)
					continue // the feeder stops; what is under way ends
				}
				results <- r
			}
		})
	}
	go func() {
		defer close(todo)
		for _, a := range p.Endpoints {
			select {
			case todo <- a:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		workers.Wait()
		close(results)
	}()
	for r := range results {
		sum.add(r)
		if each != nil {
			each(r)
		}
	}
	return sum, context.Cause(ctx)
}

// one checks one endpoint. An error is ours, not the endpoint's.
func (c *Checker) one(ctx context.Context, pools Pools, p Plan, a allocation.Allocation) (Result, error) {
	r := Result{ID: a.ID}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if r.Verdict, r.Err = c.Probe(ctx, a, p.direct); r.Err != nil {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		return r, nil
	}
	var err error
	r.Endpoint, err = pools.Judge(ctx, p.Pool, a.ID, r.Verdict)
	return r, err
}

package allocation

import (
	"context"
	"encoding/json"
	"fmt"
)

// judgeTarget stands for the judge among the targets: when a check fails for
// more than the pool's share of those that serve, the judge is blamed and not they.
const judgeTarget = "(judge)"

// candidatesChunk bounds one script call.
const candidatesChunk = 1000

// Candidates gives at most n endpoints to be checked: first the candidates that
// never were, then whoever was not checked for the longest. Those that are
// auth_failed or disabled wait for a person and are left out. Nothing is counted,
// and asking again gives the same until Judge is told.
func (p *Pools) Candidates(ctx context.Context, pool string, n int) ([]Allocation, error) {
	c, err := p.pool(pool)
	if err != nil {
		return nil, failed("candidates", pool, err)
	}
	if err := p.index(ctx, pool); err != nil {
		return nil, failed("candidates", pool, err)
	}
	k := keysOf(pool).prefix
	out := []Allocation{}
	for from := 0; from < n; from += candidatesChunk {
		to := min(from+candidatesChunk, n)
		reply, err := p.run(ctx, candidatesScript, []string{k + "endpoints", k + "checks"}, from, to-1)
		if err != nil {
			return nil, failed("candidates", pool, err)
		}
		list, ok := reply.([]any)
		if !ok {
			return nil, failed("candidates", pool, fmt.Errorf("unexpected reply of %T", reply))
		}
		f, err := texts(list, len(list))
		if err != nil {
			return nil, failed("candidates", pool, err)
		}
		for i := 0; i+2 < len(f); i += 3 {
			a, err := c.allocation(f[i], f[i+1], f[i+2], "")
			if err != nil {
				return nil, failed("candidates", pool, err)
			}
			out = append(out, a)
		}
		if len(f) < 3*(to-from) {
			break
		}
	}
	return out, nil
}

// Judge records what a check found and puts the endpoint where the pool's
// Require says:
//
//	                candidate        active, probation       quarantined
//	OK, and fits    → probation      as an ok                stays; on its return it serves
//	OK, but lacks   stays            → candidate             → candidate
//	proxy-auth      → auth_failed    → auth_failed           → auth_failed
//	other failures  stays            as such an outcome      stays
//
// A check that ended in target-5xx or cancelled says nothing of the endpoint,
// and nothing is recorded. One that is auth_failed or disabled waits for a person
// whatever is found. The Endpoint is as it stands after it.
func (p *Pools) Judge(ctx context.Context, pool, id string, v Verdict) (Endpoint, error) {
	c, err := p.pool(pool)
	if err != nil {
		return Endpoint{}, failed("judge", pool, err)
	}
	effect, why, err := c.Require.ruling(v)
	if err != nil {
		return Endpoint{}, failed("judge", pool, err)
	}
	if effect != "" {
		if err := p.judge(ctx, c, id, effect, why, v); err != nil {
			return Endpoint{}, failed("judge", pool, err)
		}
	}
	e, err := p.endpoint(ctx, pool, id)
	if err != nil {
		return Endpoint{}, failed("judge", pool, err)
	}
	return e, nil
}

func (p *Pools) judge(ctx context.Context, c *bound, id, effect, why string, v Verdict) error {
	if v.At.IsZero() {
		now, err := p.now(ctx)
		if err != nil {
			return err
		}
		v.At = now
	}
	exit := ""
	if v.Exit.IsValid() {
		v.Exit = v.Exit.Unmap().WithZone("")
		exit = v.Exit.String()
	}
	text, err := json.Marshal(storedVerdict(v))
	if err != nil {
		return err
	}
	reply, err := p.outcome(ctx, judgeScript, c, judgeTarget, id, effect, why, 0, text, exit)
	if err != nil {
		return err
	}
	switch reply {
	case "ok":
		return nil
	case "unknown":
		return unknownEndpoint(id)
	}
	return fmt.Errorf("unexpected reply %v", reply)
}

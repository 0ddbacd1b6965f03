package allocation

import (
	"context"
	"fmt"
	"time"
)

// Fit applies the pool's Require to those who were judged before it was what it
// is: whose last verdict no longer fits becomes a candidate, a candidate whose
// verdict fits serves. Without a Require every candidate serves. Endpoints that
// were never judged stay as they are until their first check, so a requirement
// that is new empties no pool.
//
// It is called after Reload and at the start of a process; doing it again changes nothing.
func (p *Pools) Fit(ctx context.Context, pool string) (moved int, err error) {
	c, err := p.pool(pool)
	if err != nil {
		return 0, failed("fit", pool, err)
	}
	args := []any{c.start()}
	flush := func() error {
		if len(args) == 1 {
			return nil
		}
		reply, err := p.run(ctx, fitScript, keysOf(pool).members("held"), args...)
		if err != nil {
			return err
		}
		n, ok := reply.(int64)
		if !ok {
			return fmt.Errorf("unexpected reply of %T", reply)
		}
		moved += int(n)
		args = args[:1]
		return nil
	}
	all, err := p.scan(ctx, pool)
	if err != nil {
		return 0, failed("fit", pool, err)
	}
	for id, f := range all {
		if f.url == "" || f.verdict == "" && f.health == "" {
			continue
		}
		e, err := f.endpoint(id, time.Time{})
		if err != nil {
			return moved, failed("fit", pool, err)
		}
		in, out := c.Require.refit(e.State, e.Verdict)
		if !in && out == "" {
			continue
		}
		if args = append(args, id, f.verdict, out); len(args) > 3*importChunk {
			if err := flush(); err != nil {
				return moved, failed("fit", pool, err)
			}
		}
	}
	if err := flush(); err != nil {
		return moved, failed("fit", pool, err)
	}
	return moved, nil
}

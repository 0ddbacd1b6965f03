package allocation

import (
	"context"
	"io"
	"net/url"
	"strconv"
)

// ImportResult counts what became of a list's endpoints.
type ImportResult struct {
	Accepted   int // new to the pool
	Duplicates int // there already, in the pool or earlier in the list
	Rejected   int // not endpoints, or not allowed
	Renewed    int // of the duplicates, those whose password the list changed
}

// importChunk bounds one script call, and so how long Redis is held: about 2 ms.
const importChunk = 500

// Import reads a list as ParseList does and adds its endpoints to a pool while
// it reads. A line that is not an endpoint is given to reject (which may be
// nil) and counted; the rest is imported. What was imported before an error stays.
func (p *Pools) Import(ctx context.Context, pool string, r io.Reader, reject func(line int, err error)) (ImportResult, error) {
	var result ImportResult
	c, err := p.pool(pool)
	if err != nil {
		return result, failed("import", pool, err)
	}
	args := []any{c.start()}
	flush := func() {
		if err != nil || len(args) == 1 {
			return
		}
		err = p.importChunk(ctx, pool, args, &result)
		args = args[:1]
	}
	readErr := ParseList(stopper{ctx, r, &err}, ListOptions{Format: c.Format, AllowPrivate: c.AllowPrivate},
		func(line int, u *url.URL, fault error) {
			if fault != nil {
				result.Rejected++
				if reject != nil {
					reject(line, fault)
				}
				return
			}
			if args = append(args, ID(u), u.String()); len(args) > 2*importChunk {
				flush()
			}
		})
	if readErr == nil {
		flush()
	}
	if err == nil {
		err = readErr
	}
	if err != nil {
		return result, failed("import", pool, err)
	}
	return result, nil
}

func (p *Pools) importChunk(ctx context.Context, pool string, args []any, result *ImportResult) error {
	reply, err := p.run(ctx, importScript, keysOf(pool).members("held", "gone"), args...)
	if err != nil {
		return err
	}
	f, err := texts(reply, 3)
	if err != nil {
		return err
	}
	for i, n := range []*int{&result.Accepted, &result.Duplicates, &result.Renewed} {
		add, err := strconv.Atoi(f[i])
		if err != nil {
			return err
		}
		*n += add
	}
	return nil
}

// stopper ends the reading when Redis has failed or the context is over.
type stopper struct {
	ctx context.Context
	r   io.Reader
	err *error
}

func (s stopper) Read(b []byte) (int, error) {
	if *s.err != nil {
		return 0, *s.err
	}
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(b)
}

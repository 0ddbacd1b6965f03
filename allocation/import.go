package allocation

import (
	"cmp"
	"context"
	"errors"
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
// What came by Import stays in the pool until Remove, whatever a list says that
// Sync follows.
func (p *Pools) Import(ctx context.Context, pool string, r io.Reader, reject func(line int, err error)) (ImportResult, error) {
	return p.ImportAs(ctx, pool, "", r, reject)
}

// ImportAs is Import of a list in a format of its own; "" is the pool's Format.
func (p *Pools) ImportAs(ctx context.Context, pool, format string, r io.Reader, reject func(line int, err error)) (ImportResult, error) {
	var result ImportResult
	c, err := p.pool(pool)
	if err != nil {
		return result, failed("import", pool, err)
	}
	args := c.importing("", 0)
	own := len(args)
	flush := func() {
		if err != nil || len(args) == own {
			return
		}
		err = p.importChunk(ctx, keysOf(pool).imports(""), args, &result)
		args = args[:own]
	}
	readErr := ParseList(stopper{ctx, r, &err}, ListOptions{Format: cmp.Or(format, c.Format), AllowPrivate: c.AllowPrivate},
		func(line int, u *url.URL, fault error) {
			if fault != nil {
				result.Rejected++
				if reject != nil {
					reject(line, fault)
				}
				return
			}
			if args = append(args, ID(u), u.String()); len(args) >= own+2*importChunk {
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

// importing are the arguments of import.lua before the endpoints.
func (c *bound) importing(list string, reading int64) []any {
	waits := ""
	if c.Require != nil {
		waits = Candidate
	}
	return []any{c.start(), waits, list, reading}
}

// imports are the keys of import.lua; by hand there is no list, and its key is left out.
func (k keys) imports(list string) []string {
	names := k.members("held", "gone", "checks", "names")
	if list != "" {
		names = append(names, k.prefix+"source:"+list)
	}
	return names
}

// ErrOvertaken: a later reading of the list has been gone through meanwhile.
var ErrOvertaken = errors.New("a later reading of the list was taken over meanwhile, by this process or another: nothing is left to do")

func (p *Pools) importChunk(ctx context.Context, names []string, args []any, result *ImportResult) error {
	reply, err := p.run(ctx, importScript, names, args...)
	if err != nil {
		return err
	}
	if reply == "overtaken" {
		return ErrOvertaken
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

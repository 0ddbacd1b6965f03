package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/units"
	"feedwarden/web"
)

type proxiesCmd struct {
	List       proxiesListCmd       `cmd:"" help:"A pool's endpoints: health, counts. No password."`
	Import     proxiesImportCmd     `cmd:"" help:"Add the endpoints of a list. A bad line is told of and left out."`
	Check      proxiesCheckCmd      `cmd:"" help:"Ask a judge through the endpoints: do they work, do they alter or reveal, by which address do they leave."`
	Take       proxiesTakeCmd       `cmd:"" help:"Pick an endpoint by the pool's policy, counted; prints its URL with its password."`
	Report     proxiesReportCmd     `cmd:"" help:"Say what came of a take."`
	Quarantine proxiesQuarantineCmd `cmd:"" help:"Leave an endpoint out for a time."`
	Disable    proxiesDisableCmd    `cmd:"" help:"Leave an endpoint out until it is restored."`
	Restore    proxiesRestoreCmd    `cmd:"" help:"Let it serve again."`
	Remove     proxiesRemoveCmd     `cmd:"" help:"Take it out; its count stays for its return."`
}

type proxiesListCmd struct {
	Pool  string `arg:"" help:"The pool."`
	Exits bool   `help:"By exit: which endpoints share one, which rotate over several."`
}

func (c *proxiesListCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		tellList(s, c.Pool)
		if c.Exits {
			return listExits(s, c.Pool)
		}
		list, err := s.pools.List(s.ctx, c.Pool)
		if err != nil {
			return err
		}
		t := e.table("pool "+c.Pool+" has no endpoints; feedwarden proxies import "+c.Pool+" FILE", "ENDPOINT", "STATE", "UNTIL", "WHY", "COUNT", "HANDICAP", "IN FLIGHT")
		for _, p := range list {
			err := t.add(web.EndpointView(p), p.ID, p.State, instant(&p.Until, time.Now()), orDash(p.Why), fmt.Sprint(p.Count), fmt.Sprint(p.Handicap), fmt.Sprint(p.InFlight))
			if err != nil {
				return err
			}
		}
		return t.flush()
	})
}

type proxiesImportCmd struct {
	Pool string `arg:"" help:"The pool."`
	File string `arg:"" help:"The list, - for standard input. One endpoint a line: scheme://user:password@host:port, host:port, or host:port:user:password."`
	// Format is "" for the pool's own.
	Format string `help:"auto, or user-first for lines of user:password:host:port; the pool's list_format by default." placeholder:"FORMAT"`
}

func (c *proxiesImportCmd) Run(e *env) error {
	if c.Format != "" && c.Format != allocation.FormatAuto && c.Format != allocation.FormatUserFirst {
		return usageError("--format %q: it is %s or %s", c.Format, allocation.FormatAuto, allocation.FormatUserFirst)
	}
	in := e.in
	if strings.Contains(c.File, "://") { // it may hold a key, so it is not said back
		return usageError("FILE is a web address: name it as the pool's list in the config, which fetches it again and again; or fetch it yourself and give - for FILE")
	}
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		defer f.Close()
		in = f
	}
	return e.with(func(s *session) error { return c.read(s, in) })
}

func (c *proxiesImportCmd) read(s *session, in io.Reader) error {
	res, err := s.pools.ImportAs(s.ctx, c.Pool, c.Format, in, func(line int, err error) {
		if s.json {
			_ = s.line(map[string]any{"line": line, "error": err.Error()})
			return
		}
		fmt.Fprintf(s.errOut, "line %d: %v\n", line, err)
	})
	if err != nil {
		return err
	}
	if s.json {
		if err := s.line(map[string]any{"accepted": res.Accepted, "duplicates": res.Duplicates, "rejected": res.Rejected, "renewed": res.Renewed}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.out, "%d accepted, %d there already, %d rejected\n", res.Accepted, res.Duplicates, res.Rejected)
	}
	if res.Rejected > 0 {
		return &exitError{exitFailed, fmt.Errorf("%s rejected; the rest is in the pool", count(res.Rejected, "line"))}
	}
	return nil
}

type proxiesTakeCmd struct {
	Pool   string `arg:"" help:"The pool."`
	Key    string `help:"The same key gets the same endpoint, in a sticky pool." placeholder:"KEY"`
	Target string `help:"The host that will be asked." placeholder:"HOST"`
}

func (c *proxiesTakeCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		a, err := s.pools.Take(s.ctx, c.Pool, allocation.TakeOptions{Key: c.Key, Target: c.Target})
		var empty *allocation.EmptyError
		if errors.As(err, &empty) {
			if e.json {
				if lerr := e.line(map[string]any{"id": "", "retry_after_ms": ceilMillis(empty.RetryAfter)}); lerr != nil {
					return lerr
				}
			}
			return err
		}
		if err != nil {
			return err
		}
		if e.json {
			return e.line(map[string]any{"id": a.ID, "url": a.URL.String(), "count": a.Count, "lease": a.Lease})
		}
		fmt.Fprintln(e.out, a.URL.String())
		fmt.Fprintf(e.errOut, "afterwards: feedwarden proxies report %s %s OUTCOME%s\n", c.Pool, a.ID, leaseFlag(a.Lease))
		return nil
	})
}

func leaseFlag(lease string) string {
	if lease == "" {
		return ""
	}
	return " --lease " + lease
}

func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

type proxiesReportCmd struct {
	Pool    string `arg:"" help:"The pool."`
	ID      string `arg:"" help:"The endpoint."`
	Outcome string `arg:"" help:"ok, connect, unreachable, tls, proxy-auth, timeout, reset, ban, target-5xx or cancelled."`
	Lease   string `help:"The lease that take gave." placeholder:"LEASE"`
	Target  string `help:"The host that was asked." placeholder:"HOST"`
}

func (c *proxiesReportCmd) Run(e *env) error {
	if !slices.Contains(allocation.Outcomes, allocation.Outcome(c.Outcome)) {
		words := make([]string, len(allocation.Outcomes))
		for i, o := range allocation.Outcomes {
			words[i] = string(o)
		}
		return usageError("outcome %q: it is one of %s", c.Outcome, strings.Join(words, ", "))
	}
	return e.with(func(s *session) error {
		id := endpointID(s, c.Pool, c.ID)
		err := s.pools.Report(s.ctx, allocation.Report{Pool: c.Pool, ID: id, Lease: c.Lease, Target: c.Target, Outcome: allocation.Outcome(c.Outcome)})
		if err != nil {
			return err
		}
		return showEndpoint(s, c.Pool, id)
	})
}

type proxiesQuarantineCmd struct {
	Pool string `arg:"" help:"The pool."`
	ID   string `arg:"" help:"The endpoint."`
	For  string `required:"" help:"How long." placeholder:"DUR"`
}

func (c *proxiesQuarantineCmd) Run(e *env) error {
	d, err := units.ParseDuration(c.For)
	if err != nil || d <= 0 {
		return usageError("--for %s: a duration such as 10m or 1d is wanted", c.For)
	}
	return e.with(func(s *session) error {
		id := endpointID(s, c.Pool, c.ID)
		if err := s.pools.Quarantine(s.ctx, c.Pool, id, d); err != nil {
			return err
		}
		return showEndpoint(s, c.Pool, id)
	})
}

type proxiesDisableCmd struct {
	Pool string `arg:"" help:"The pool."`
	ID   string `arg:"" help:"The endpoint."`
}

func (c *proxiesDisableCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		id := endpointID(s, c.Pool, c.ID)
		if err := s.pools.Disable(s.ctx, c.Pool, id); err != nil {
			return err
		}
		return showEndpoint(s, c.Pool, id)
	})
}

type proxiesRestoreCmd struct {
	Pool string `arg:"" help:"The pool."`
	ID   string `arg:"" help:"The endpoint."`
}

func (c *proxiesRestoreCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		id := endpointID(s, c.Pool, c.ID)
		if err := s.pools.Restore(s.ctx, c.Pool, id); err != nil {
			return err
		}
		return showEndpoint(s, c.Pool, id)
	})
}

type proxiesRemoveCmd struct {
	Pool string `arg:"" help:"The pool."`
	ID   string `arg:"" help:"The endpoint."`
}

func (c *proxiesRemoveCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		id := endpointID(s, c.Pool, c.ID)
		if err := s.pools.Remove(s.ctx, c.Pool, id); err != nil {
			return err
		}
		if e.json {
			return e.line(map[string]any{"id": id, "removed": true})
		}
		fmt.Fprintf(e.out, "%s is out of pool %s\n", id, c.Pool)
		return nil
	})
}

// endpointID is the ID that an argument means: the URL that take gave does for one.
func endpointID(s *session, pool, arg string) string {
	if _, err := s.pools.Endpoint(s.ctx, pool, arg); !errors.Is(err, allocation.ErrUnknownEndpoint) {
		return arg
	}
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" {
		return arg
	}
	id := allocation.ID(u)
	_, password := u.User.Password()
	if _, err := s.pools.Endpoint(s.ctx, pool, id); err == nil || password {
		return id
	}
	return arg
}

// showEndpoint prints an endpoint as it stands after an action.
func showEndpoint(s *session, pool, id string) error {
	p, err := s.pools.Endpoint(s.ctx, pool, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.line(web.EndpointView(p))
	}
	until := ""
	if !p.Until.IsZero() {
		until = " until " + instant(&p.Until, time.Now())
	}
	fmt.Fprintf(s.out, "%s is %s%s\n", id, p.State, until)
	return nil
}

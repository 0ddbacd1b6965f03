package main

import (
	"fmt"
	"os"

	"feedwarden/internal/config"
	"feedwarden/internal/redisconn"
)

type checkCmd struct{}

func (checkCmd) Run(e *env) error {
	f, err := e.load()
	if err != nil {
		return err
	}
	conn, err := redisconn.New(redisconn.Config{URL: f.Redis.URL.Reveal(), Data: f.Redis.Data})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	_ = conn.Close()
	var missing config.Faults
	for _, p := range f.Pools {
		if p.List == "" {
			continue
		}
		if _, err := os.Stat(p.List); err != nil {
			missing = append(missing, config.Fault{File: f.Path, Line: p.ListPos.Line, Col: p.ListPos.Col,
				Problem: fmt.Sprintf("pools.%s.list cannot be read: %v", p.Name, err), Want: "want a file of one proxy a line"})
		}
	}
	if err := webConfig(f).TLS.Check(); err != nil {
		missing = append(missing, config.Fault{File: f.Path, Line: f.Web.TLS.Pos.Line, Col: f.Web.TLS.Pos.Col,
			Problem: err.Error(), Want: "want a PEM file of the certificate and its chain, and one of its key"})
	}
	if len(missing) > 0 {
		return missing
	}
	if f.Fetch.UserAgent == config.DefaultUserAgent {
		fmt.Fprintln(e.errOut, "feedwarden: warning: fetch.user_agent is the default, which names nobody; targets want a name and a contact")
	}
	scheduled := 0
	for _, feed := range f.Feeds {
		if feed.Schedule != "" {
			scheduled++
		}
	}
	breaks, pauses, err := promises(e, f)
	if err != nil {
		return err
	}
	if e.json {
		names := []string{}
		for _, o := range breaks {
			names = append(names, o.Name)
		}
		err = e.line(map[string]any{
			"file": f.Path, "ok": len(breaks) == 0, "feeds": len(f.Feeds), "scheduled": scheduled, "quotas": len(f.Quotas), "pools": len(f.Pools),
			"cannot_keep_ttl": names,
		})
	} else {
		_, err = fmt.Fprintf(e.out, "%s is well formed: %s (%d scheduled), %s, %s.\n", f.Path,
			count(len(f.Feeds), "feed"), scheduled, count(len(f.Quotas), "quota"), count(len(f.Pools), "pool"))
	}
	if err != nil {
		return err
	}
	for _, r := range planRows(pauses) {
		fmt.Fprintf(e.errOut, "feedwarden: warning: %s: at most %s old by the schedule's own pauses, and the ttl is %s: stale in between\n",
			named(r.group, r.feeds), span(r.age), span(r.ttl))
	}
	if len(breaks) > 0 {
		return &exitError{exitOver, fmt.Errorf("%s: %s; feedwarden plan says why", f.Path, broken(breaks))}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

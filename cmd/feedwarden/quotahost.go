package main

import (
	"strings"
	"time"

	"feedwarden/quota"
	"feedwarden/web"
)

// hostPrefix names a target's host where a quota is named: a host is closed by
// the Retry-After of a target whose feed has no quota.
const hostPrefix = "host:"

// hostOf is the host that a name stands for, if it does.
func hostOf(name string) (host string, ok bool, err error) {
	host, ok = strings.CutPrefix(name, hostPrefix)
	if ok && (host == "" || strings.ContainsAny(host, " /{}")) {
		return "", true, usageError("%s: a host as in the feed's url is wanted, such as host:example.org or host:example.org:8443", name)
	}
	return strings.ToLower(host), ok, nil // as jobs write it
}

// blocked is what a person calls that which is closed.
func blocked(name string) string {
	if host, ok := strings.CutPrefix(name, hostPrefix); ok {
		return "host " + host
	}
	return "quota " + name
}

// closing is a block as it stands, by Redis's clock.
type closing struct {
	now, until time.Time
	reason     string
}

// block closes a quota or a host, and reads what then holds: an earlier block may end later.
func (s *session) block(name string, d time.Duration, reason string) (closing, error) {
	host, isHost, err := hostOf(name)
	if err != nil {
		return closing{}, err
	}
	if isHost {
		if err := s.jobs.BlockHost(s.ctx, host, d, reason); err != nil {
			return closing{}, err
		}
		st, err := s.jobs.Host(s.ctx, host)
		return closing{st.Now, st.BlockedUntil, st.BlockReason}, err
	}
	if err := s.quotas.Block(s.ctx, name, d, reason); err != nil {
		return closing{}, err
	}
	st, err := s.quotas.State(s.ctx, name)
	return closing{st.Now, st.BlockedUntil, st.BlockReason}, err
}

// unblock opens a quota or a host, and wakes those who wait for it.
func (s *session) unblock(name string) error {
	host, isHost, err := hostOf(name)
	if err != nil {
		return err
	}
	if isHost {
		return s.jobs.UnblockHost(s.ctx, host)
	}
	if err := s.quotas.Unblock(s.ctx, name); err != nil {
		return err
	}
	return s.jobs.WakeLine(s.ctx, name)
}

// showHost prints how a host stands: who runs there, who waits, why it is closed.
func (s *session) showHost(host string) error {
	st, err := s.jobs.Host(s.ctx, host)
	if err != nil {
		return err
	}
	view := web.RunningView(st)
	if s.json {
		return s.line(view)
	}
	return s.facts([][2]string{
		{"HOST", host},
		{"RUNNING", runs(&view)},
		{"LONGEST WAIT", orDash(waited(st.LongestWait))},
		{"BLOCKED", blocks(quota.State{Now: st.Now, BlockedUntil: st.BlockedUntil, BlockReason: st.BlockReason, Seen: quota.Seen{Blocks: st.Blocks}})},
	})
}

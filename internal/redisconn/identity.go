package redisconn

import "time"

// Identity is the Redis that a process works with, as its last look saw it.
type Identity struct {
	Mode    string // as Conn.Mode
	Server  string // redis, valkey or miniredis; "" where it may not be asked
	Version string
	RunID   string // of a Cluster, of all its primaries
	Role    string // primary or replica
	Since   time.Time
	Changes int64  // how often the run ID has changed since this process began
	Refused string // why nothing is written; "" while writes pass
}

// Identity answers without I/O. Before Start, and in a process that does not
// watch, all but the mode is empty.
func (c *Conn) Identity() Identity {
	if c.watch == nil {
		return Identity{Mode: c.Mode()}
	}
	id := *c.watch.seen.Load()
	id.Mode = c.Mode()
	if r := c.watch.refusal.Load(); r != nil {
		id.Refused = r.Reason
	}
	return id
}

// Refusal is nil while writes pass, else the *RefusedError that they get.
func (c *Conn) Refusal() error {
	if c.watch != nil {
		if r := c.watch.refusal.Load(); r != nil {
			return r
		}
	}
	return nil
}

package jobs

import (
	"context"
	"time"

	"feedwarden/quota"
)

// BlockHost closes a target host for everybody for d, as the target itself does
// where the feed that it refuses has no quota. Jobs that run go on.
func (c *Client) BlockHost(ctx context.Context, host string, d time.Duration, reason string) error {
	return c.leases.Block(ctx, hostName(host), d, reason)
}

// UnblockHost opens a host that a target's Retry-After or a person closed, and
// wakes those who wait for it.
func (c *Client) UnblockHost(ctx context.Context, host string) error {
	next, err := c.leases.Unblock(ctx, hostName(host))
	if err != nil {
		return err
	}
	return callUp(ctx, c.rdb, next)
}

// Host is how a target host stands: what runs, who waits, until when it is closed.
func (c *Client) Host(ctx context.Context, host string) (quota.RunningState, error) {
	return c.leases.State(ctx, hostName(host))
}

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout  = 5 * time.Second // go-redis's own default
	probeTimeout = 3 * time.Second // of each step of the start-up check
)

// newClient makes a client of the target, which writes only where it may.
func (c *Conn) newClient() redis.UniversalClient {
	rdb := c.plainClient(false)
	if c.watch != nil {
		rdb.AddHook(gate{&c.watch.refusal})
	}
	return rdb
}

// greet is asked of each new connection of a client that is not for a Cluster.
func (c *Conn) greet(guarded bool) func(context.Context, *redis.Conn) error {
	switch {
	case guarded && c.watch != nil:
		return c.watch.greet
	case c.target.kind == kindSentinel:
		return refuseReplica
	}
	return nil
}

// plainClient makes a client without the gate. Retries are go-redis's defaults,
// except for a probe, which is to say soon what is wrong; nobody greets its server.
func (c *Conn) plainClient(probe bool) redis.UniversalClient {
	t := c.target
	retries, timeout := 0, time.Duration(0) // go-redis's defaults
	if probe {
		retries, timeout = -1, probeTimeout
	}
	// The server need not tell its clients of its provider's maintenance.
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch t.kind {
	case kindSentinel:
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: t.primary, SentinelAddrs: t.addrs,
			SentinelUsername: t.sentinelUser, SentinelPassword: t.sentinelPassword,
			Username: t.user, Password: t.password, DB: t.db,
			Dialer: c.dial, OnConnect: c.greet(!probe),
			MaxRetries: retries, DialTimeout: timeout, ReadTimeout: timeout,
			ContextTimeoutEnabled: true, DisableIdentity: true,
		})
	case kindCluster:
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: t.addrs, Username: t.user, Password: t.password,
			Dialer: c.dial, DialTimeout: timeout, ReadTimeout: timeout,
			ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: quiet,
		})
	}
	opts := &redis.Options{
		Username: t.user, Password: t.password, DB: t.db,
		Dialer: c.dial, OnConnect: c.greet(!probe), MaxRetries: retries, DialTimeout: timeout, ReadTimeout: timeout,
		ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: quiet,
	}
	if t.kind == kindEmbedded {
		opts.Addr = "embedded" // the dialer finds the address, and gives the password
		opts.Dialer = c.embedded.dial
	} else {
		opts.Network, opts.Addr = t.network, t.addrs[0]
	}
	return redis.NewClient(opts)
}

func (c *Conn) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	if c.target.tls == nil {
		return d.DialContext(ctx, network, addr)
	}
	cfg, err := c.target.tls.config()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, network, addr)
}

var errReplica = errors.New("the server that the Sentinels name is a replica at the moment")

// refuseReplica drops a new connection to a server that was the primary when
// the Sentinels were asked and is a replica now. The error is a dial error, so
// that go-redis tries again. A user who may not ask for the role is let pass.
func refuseReplica(ctx context.Context, conn *redis.Conn) error {
	role, err := conn.Do(ctx, "ROLE").Slice()
	if reply := redis.Error(nil); errors.As(err, &reply) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(role) > 0 && role[0] == "slave" {
		return &net.OpError{Op: "dial", Net: "tcp", Err: errReplica}
	}
	return nil
}

// Asynq gives asynq and asynqmon clients of their own with these options.
func (c *Conn) Asynq() asynq.RedisConnOpt { return asynqOption{c} }

type asynqOption struct{ conn *Conn }

// MakeRedisClient returns a *redis.Client or a *redis.ClusterClient: asynqmon asks which.
func (o asynqOption) MakeRedisClient() any { return o.conn.NewClient() }

// clientLog brings go-redis's own lines, which it writes for the whole
// process, to our log. All that fails comes back to a caller as an error too.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	level := slog.LevelDebug
	if strings.HasPrefix(format, "sentinel: new master") {
		level = slog.LevelInfo
	}
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "redis client", "detail", fmt.Sprintf(format, args...))
	}
}

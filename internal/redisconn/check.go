package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	answerWait = 5 * time.Second // for the first answer of any server
	loadingGap = 100 * time.Millisecond
)

// check asks the server for a sign of life, and whether it is one that we can
// use. What it may not ask is a warning.
func (c *Conn) check(ctx context.Context) error {
	rdb := c.plainClient(true)
	defer func() { _ = rdb.Close() }()
	refuse := func(err error) error {
		problem, advice := explain(err, c.target)
		return &StartError{Where: c.Where(), Problem: problem, Advice: advice, Err: err}
	}
	if err := c.awaitAnswer(ctx, rdb); err != nil {
		return refuse(err)
	}
	ask, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	info, err := c.info(ask, rdb)
	if reply := redis.Error(nil); errors.As(err, &reply) {
		c.log.WarnContext(ctx, "redis does not say what it is; its version and settings are not checked", "error", err)
	} else if err != nil {
		return refuse(err)
	} else if err := c.judge(info); err != nil {
		return err
	}
	if c.guard == GuardNone || info.Server == miniredisServer {
		return nil
	}
	return c.enter(ask, rdb)
}

// awaitAnswer pings until the server answers. A server that loads its data is
// waited for, and so is a Cluster that says it is down; all else fails at once.
func (c *Conn) awaitAnswer(ctx context.Context, rdb redis.UniversalClient) error {
	deadline := time.Now().Add(c.loadWait)
	told := false
	for {
		err := c.ping(ctx, rdb)
		if err == nil || !redis.IsLoadingError(err) && !errors.Is(err, errClusterDown) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still so after %s: %w", c.loadWait, err)
		}
		if !told {
			told = true
			c.log.InfoContext(ctx, "redis is not ready yet; waiting", "redis", c.Where(), "reason", flat(err), "limit", c.loadWait)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(loadingGap):
		}
	}
}

var errClusterDown = errors.New("the Cluster says it is down: some of its slots have no server")

func (c *Conn) ping(ctx context.Context, rdb redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return err
	}
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return nil
	}
	// A user who may not ask is let pass.
	if state, err := cluster.ClusterInfo(ctx).Result(); err == nil && strings.Contains(state, "cluster_state:fail") {
		return errClusterDown
	}
	return eachPrimary(ctx, rdb, func(ctx context.Context, node redis.Cmdable) error { return node.Ping(ctx).Err() })
}

// judge refuses a server that we cannot work with, and warns of one that loses keys.
func (c *Conn) judge(info Info) error {
	refuse := func(err error, problem, advice string) error {
		return &StartError{Where: c.Where(), Problem: problem, Advice: advice, Err: err}
	}
	if info.Server == miniredisServer {
		return nil
	}
	version, known := readVersion(info.Version)
	switch {
	case info.mode == "sentinel":
		return refuse(nil, "this is a Sentinel", "use redis+sentinel://HOST:PORT/PRIMARY")
	case info.mode == "cluster" && c.target.kind != kindCluster:
		return refuse(nil, "this is a node of a Cluster", "use redis+cluster://")
	case known && (version[0] < 6 || version[0] == 6 && version[1] < 2):
		return refuse(ErrTooOld, "Redis "+info.Version+" is "+ErrTooOld.Error(), "run Redis 6.2 or later, or Valkey: scripts and commands that are needed came with it")
	case info.Role == "replica":
		return refuse(nil, "this is a replica of "+info.primaryAt+" and takes no writes", "name the primary, or use redis+sentinel://")
	}
	if !known {
		c.log.Warn("redis tells no version that can be read; 6.2 or later is needed", "version", info.Version)
	}
	if info.eviction != "" && info.eviction != "noeviction" {
		c.log.Warn("redis may throw keys away when its memory is full, and jobs with them; set maxmemory-policy to noeviction",
			"maxmemory_policy", info.eviction)
	}
	return nil
}

package redisconn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Info is what a server says of itself. Of a Cluster it is the lowest version,
// and every primary's run ID.
type Info struct {
	Server  string // redis, valkey or miniredis
	Version string // of the Redis it is, or is compatible with; "" for miniredis
	RunID   string // changes with each start of the server
	Role    string // primary or replica

	mode      string // standalone, cluster, sentinel
	primaryAt string // of a replica: host:port of its primary
	eviction  string
}

// Info asks the server who it is.
func (c *Conn) Info(ctx context.Context) (Info, error) {
	return c.info(ctx, c.client)
}

func (c *Conn) info(ctx context.Context, rdb redis.UniversalClient) (Info, error) {
	if info, ok := c.memory(); ok {
		return info, nil
	}
	return infoOf(ctx, rdb)
}

// infoOf asks the server, or each primary of a Cluster.
func infoOf(ctx context.Context, rdb redis.UniversalClient) (Info, error) {
	var mu sync.Mutex
	var all []Info
	err := eachPrimary(ctx, rdb, func(ctx context.Context, node redis.Cmdable) error {
		one, err := oneInfo(ctx, node)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, one)
		return nil
	})
	if err != nil {
		return Info{}, fmt.Errorf("redis: info: %w", err)
	}
	return oldest(all), nil
}

// pipelined is a client, a node, or one connection.
type pipelined interface {
	Pipelined(ctx context.Context, f func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

func oneInfo(ctx context.Context, node pipelined) (Info, error) {
	var texts [3]*redis.StringCmd
	if _, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, section := range []string{"server", "replication", "memory"} {
			texts[i] = p.Info(ctx, section)
		}
		return nil
	}); err != nil {
		return Info{}, err
	}
	return readInfo(texts[0].Val() + texts[1].Val() + texts[2].Val()), nil
}

// readInfo reads INFO's sections server, replication and memory.
func readInfo(text string) Info {
	f := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	i := Info{
		Server: cmp.Or(f["server_name"], "redis"), Version: f["redis_version"], RunID: f["run_id"],
		mode: f["redis_mode"], eviction: f["maxmemory_policy"],
	}
	switch f["role"] {
	case "master":
		i.Role = "primary"
	case "slave":
		i.Role = "replica"
		i.primaryAt = f["master_host"] + ":" + f["master_port"]
	}
	return i
}

// oldest is the info of the lowest version, with all run IDs. An eviction
// policy that loses keys anywhere is the one told.
func oldest(all []Info) Info {
	if len(all) == 0 {
		return Info{}
	}
	low := slices.MinFunc(all, func(a, b Info) int {
		x, _ := readVersion(a.Version)
		y, _ := readVersion(b.Version)
		return slices.Compare(x[:], y[:])
	})
	var ids []string
	for _, i := range all {
		ids = append(ids, i.RunID)
		if i.eviction != "noeviction" {
			low.eviction = i.eviction
		}
	}
	slices.Sort(ids)
	low.RunID = strings.Join(ids, ",")
	return low
}

// readVersion reads major and minor of "7.0.15".
func readVersion(text string) (v [2]int, ok bool) {
	major, rest, _ := strings.Cut(text, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return [2]int{a, b}, err1 == nil && err2 == nil
}

// Clock is how this machine's clock stands to Redis's.
type Clock struct {
	Offset    time.Duration // Redis's time less ours
	RoundTrip time.Duration // of the call that told; the offset is true to half of it
}

// Clock compares clocks by the fastest of three calls. Of a Cluster it tells
// the primary that is furthest off.
func (c *Conn) Clock(ctx context.Context) (Clock, error) {
	var mu sync.Mutex
	var worst Clock
	err := eachPrimary(ctx, c.client, func(ctx context.Context, node redis.Cmdable) error {
		best, err := compareClocks(ctx, node)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if worst.RoundTrip == 0 || best.Offset.Abs() > worst.Offset.Abs() {
			worst = best
		}
		return nil
	})
	if err != nil {
		return Clock{}, fmt.Errorf("redis: clock: %w", err)
	}
	return worst, nil
}

func compareClocks(ctx context.Context, node redis.Cmdable) (best Clock, err error) {
	for range 3 {
		asked := time.Now()
		theirs, err := node.Time(ctx).Result()
		if err != nil {
			return Clock{}, err
		}
		took := time.Since(asked)
		if best.RoundTrip == 0 || took < best.RoundTrip {
			best = Clock{Offset: theirs.Sub(asked.Add(took / 2)), RoundTrip: took}
		}
	}
	return best, nil
}

// eachPrimary calls do for every primary of a Cluster, at the same time, or
// for the one server.
func eachPrimary(ctx context.Context, rdb redis.UniversalClient, do func(context.Context, redis.Cmdable) error) error {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return do(ctx, node) })
	}
	return do(ctx, rdb)
}

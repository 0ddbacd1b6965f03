package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// serverFacts is what a Redis server says of itself. A map is nil, and its
// error set, where it may not be asked.
type serverFacts struct {
	info      map[string]string // sections server, replication, persistence, memory
	infoErr   error
	config    map[string]string // save, maxmemory-policy, min-replicas-to-write, appendfsync
	configErr error
}

var configKeys = []string{"save", "maxmemory-policy", "min-replicas-to-write", "appendfsync"}

func readServer(ctx context.Context, node redis.Cmdable) serverFacts {
	f := serverFacts{}
	for _, section := range []string{"server", "replication", "persistence", "memory"} {
		text, err := node.Info(ctx, section).Result()
		if err != nil {
			f.info, f.infoErr = nil, err
			break
		}
		if f.info == nil {
			f.info = map[string]string{}
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				f.info[name] = value
			}
		}
	}
	for _, key := range configKeys {
		got, err := node.ConfigGet(ctx, key).Result()
		if err != nil {
			f.config, f.configErr = nil, err
			break
		}
		if f.config == nil {
			f.config = map[string]string{}
		}
		for name, value := range got {
			f.config[name] = value
		}
	}
	return f
}

// judgeServer says what is wrong with one server.
func (n *notes) judgeServer(at string, f serverFacts) {
	if f.infoErr != nil {
		n.add("redis.info", at, Unknown, "let this user run INFO, or look yourself: version 6.2 or later, a primary, persistence, noeviction", "could not check: %v", f.infoErr)
	} else {
		n.judgeInfo(at, f)
	}
	policy := f.info["maxmemory_policy"]
	if policy == "" {
		policy = f.config["maxmemory-policy"]
	}
	switch policy {
	case "noeviction":
		n.add("redis.eviction", at, OK, "", "maxmemory-policy is noeviction")
	case "":
		n.add("redis.eviction", at, Unknown, "see that maxmemory-policy is noeviction", "could not check: the server does not say its maxmemory-policy")
	default:
		n.add("redis.eviction", at, Broken, "CONFIG SET maxmemory-policy noeviction, and write it into redis.conf",
			"maxmemory-policy is %s: when its memory is full, Redis throws away jobs, quotas and feeds", policy)
	}
	if f.configErr != nil {
		n.add("redis.config", at, Unknown, "let this user run CONFIG GET, or look yourself: save, appendfsync, min-replicas-to-write", "could not check: %v", f.configErr)
		return
	}
	if replicas, _ := strconv.Atoi(f.info["connected_slaves"]); replicas > 0 {
		if want, _ := strconv.Atoi(f.config["min-replicas-to-write"]); want == 0 {
			n.add("redis.replicas", at, Warning, "CONFIG SET min-replicas-to-write 1, and write it into redis.conf of all of them",
				"%s, and min-replicas-to-write is 0: a primary that is cut off goes on taking writes, which a failover then loses", counted(replicas, "replica"))
		} else {
			n.add("redis.replicas", at, OK, "", "%s, and min-replicas-to-write is %d", counted(replicas, "replica"), want)
		}
	}
}

func (n *notes) judgeInfo(at string, f serverFacts) {
	i := f.info
	n.judgeVersion(at, i["redis_version"])
	if i["role"] == "slave" {
		n.add("redis.role", at, Broken, "name the primary in redis.url, or use redis+sentinel://", "this is a replica of %s:%s", i["master_host"], i["master_port"])
	}
	aof := i["aof_enabled"] == "1"
	switch {
	case aof && i["aof_last_write_status"] == "err":
		n.add("redis.persistence", at, Broken, "see the server's log and its disk", "the append-only file cannot be written")
	case aof && f.config["appendfsync"] == "no":
		n.add("redis.persistence", at, Warning, "CONFIG SET appendfsync everysec", "append-only file with appendfsync no: a crash of the machine loses what the kernel had not written")
	case aof:
		n.add("redis.persistence", at, OK, "", "append-only file")
	case f.configErr == nil && f.config["save"] == "":
		n.add("redis.persistence", at, Broken, "CONFIG SET appendonly yes, and write it into redis.conf",
			"nothing is kept on disk: a restart loses jobs, quotas (so a budget can be overrun) and feeds")
	case i["rdb_last_bgsave_status"] == "err":
		n.add("redis.persistence", at, Broken, "see the server's log and its disk", "the last snapshot could not be written")
	case f.configErr != nil:
		n.add("redis.persistence", at, Warning, "CONFIG SET appendonly yes", "no append-only file; whether snapshots are made could not be checked")
	default:
		n.add("redis.persistence", at, Warning, "CONFIG SET appendonly yes",
			"snapshots alone (save %s): a restart loses what came after the last one, and then nothing is written until somebody accepts that", f.config["save"])
	}
	used, _ := strconv.ParseFloat(i["used_memory"], 64)
	if most, _ := strconv.ParseFloat(i["maxmemory"], 64); most > 0 && used > 0.9*most {
		n.add("redis.memory", at, Warning, "raise maxmemory, or keep less: feeds.*.history, ttl", "%.0f %% of maxmemory is used; when it is full, writes fail", 100*used/most)
	}
}

func (n *notes) judgeVersion(at, version string) {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	switch {
	case err1 != nil || err2 != nil:
		n.add("redis.version", at, Unknown, "see that it is Redis 6.2 or later, or Valkey", "could not check: the version is %q", version)
	case a < 6 || a == 6 && b < 2:
		n.add("redis.version", at, Broken, "run Redis 6.2 or later, or Valkey", "version %s is older than 6.2", version)
	default:
		n.add("redis.version", at, OK, "", "version %s", version)
	}
}

const (
	clockBroken  = 5 * time.Second // from there on a worker takes no jobs
	clockWarning = time.Second
)

// judgeClock says what the offset of Redis's clock from this machine's means.
func (n *notes) judgeClock(offset, trip time.Duration) {
	off := max(offset.Abs()-trip/2, 0)
	text := "this machine's clock and Redis's are " + off.Round(time.Millisecond).String() + " apart"
	switch {
	case off > clockBroken:
		n.add("clock", "", Broken, "set both clocks (NTP)", "%s: a worker here takes no jobs", text)
	case off > clockWarning:
		n.add("clock", "", Warning, "set both clocks (NTP)", "%s: from %s on a worker here takes no jobs", text, clockBroken)
	default:
		n.add("clock", "", OK, "", "%s", text)
	}
}

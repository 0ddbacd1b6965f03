package testredis

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinels are three Sentinels that watch a primary with one replica.
type Sentinels struct {
	Name    string // what the Sentinels call the primary
	Primary *Server
	Replica *Server
	Watch   []*Server // the Sentinels
	options SentinelOptions
}

// SentinelOptions are the passwords of the data servers and of the Sentinels ("" is
// none), and by how much the replica's clock is off the primary's (negative: behind).
type SentinelOptions struct {
	Password, SentinelPassword string
	ReplicaClock               time.Duration
}

// Addrs are the Sentinels' host:port.
func (s *Sentinels) Addrs() []string {
	var addrs []string
	for _, w := range s.Watch {
		addrs = append(addrs, w.addr)
	}
	return addrs
}

// Sentinel starts all five, and waits until every Sentinel knows the replica
// and the other two. A primary that is gone for half a second is replaced.
func Sentinel(t testing.TB, o SentinelOptions) *Sentinels {
	t.Helper()
	args := []string{"--save", "", "--repl-diskless-sync-delay", "0"}
	if o.Password != "" {
		args = append(args, "--requirepass", o.Password, "--masterauth", o.Password)
	}
	set := &Sentinels{Name: "mymaster", options: o, Primary: TCP(t, args...)}
	host, port, _ := net.SplitHostPort(set.Primary.addr)
	args = append(args, "--replicaof", host+" "+port)
	if o.ReplicaClock != 0 {
		set.Replica = OffClock(t, o.ReplicaClock, args...)
	} else {
		set.Replica = TCP(t, args...)
	}
	for range 3 {
		set.Watch = append(set.Watch, set.sentinel(t, host, port))
	}
	for _, w := range set.Watch {
		set.hurry(w)
		until(t, 15*time.Second, "a Sentinel knows the replica and the others", func() bool { return set.knowsAll(w) })
	}
	return set
}

func (s *Sentinels) sentinel(t testing.TB, host, port string) *Server {
	t.Helper()
	dir := serverDir(t)
	var err error
	for range 5 {
		own := freePort(t)
		w := &Server{dir: dir, addr: net.JoinHostPort("127.0.0.1", own)}
		w.conf = w.write(t, "sentinel.conf", s.config(dir, own, host, port))
		if err = w.start(); err == nil {
			t.Cleanup(w.Kill)
			return w
		}
		w.Kill()
	}
	t.Fatal(err)
	return nil
}

func (s *Sentinels) config(dir, own, host, port string) string {
	lines := []string{
		"bind 127.0.0.1", "port " + own, "dir " + dir,
		fmt.Sprintf("sentinel monitor %s %s %s 2", s.Name, host, port),
		fmt.Sprintf("sentinel down-after-milliseconds %s 500", s.Name),
		fmt.Sprintf("sentinel failover-timeout %s 1500", s.Name),
	}
	if s.options.Password != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %s", s.Name, s.options.Password))
	}
	if s.options.SentinelPassword != "" {
		lines = append(lines, "requirepass "+s.options.SentinelPassword, "sentinel sentinel-pass "+s.options.SentinelPassword)
	}
	return strings.Join(lines, "\n") + "\n"
}

// AskSentinel opens a client of one Sentinel.
func (s *Sentinels) AskSentinel(w *Server) *redis.SentinelClient {
	return redis.NewSentinelClient(&redis.Options{Addr: w.addr, Password: s.options.SentinelPassword})
}

// hurry shortens periods that Redis 7 lets one set; earlier ones take some
// seconds more. Sentinel waits four PUBLISH periods before it turns a primary
// that is none into a replica; under two seconds it would turn back one that
// it is just promoting. PING's period says how long a replica counts as good, and stays.
func (s *Sentinels) hurry(w *Server) {
	rdb := redis.NewClient(&redis.Options{Addr: w.addr, Password: s.options.SentinelPassword})
	defer rdb.Close()
	_ = rdb.Do(context.Background(), "SENTINEL", "DEBUG", "INFO-PERIOD", "200", "ASK-PERIOD", "100", "PUBLISH-PERIOD", "700").Err()
}

func (s *Sentinels) knowsAll(w *Server) bool {
	c := s.AskSentinel(w)
	defer c.Close()
	ctx := context.Background()
	m, err := c.Master(ctx, s.Name).Result()
	if err != nil || m["num-slaves"] != "1" || m["num-other-sentinels"] != "2" {
		return false
	}
	replicas, err := c.Replicas(ctx, s.Name).Result()
	return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
}

package redisconn

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	resp "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
)

func TestPasswordUserDatabaseAndSocket(t *testing.T) {
	t.Parallel()
	plain := testredis.TCP(t, "--requirepass", "s3cret@/")
	acl := testredis.ACL(t, "app", "hunter2", "~*", "&*", "+@all")
	for name, url := range map[string]string{
		"password": "redis://:s3cret%40%2F@" + plain.Addr() + "/2",
		"ACL user": "redis://app:hunter2@" + acl.Addr(),
		"socket":   "unix://:s3cret%40%2F@" + plain.Socket() + "?db=2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := mustOpen(t, Config{URL: url})
			set(t, c, "a", name)
			wantValue(t, c, "a", name)
			if c.Mode() != "single" {
				t.Errorf("mode %q", c.Mode())
			}
			other, ok := c.Asynq().MakeRedisClient().(*redis.Client)
			if !ok {
				t.Fatalf("asynq gets a %T", other)
			}
			defer other.Close()
			if got := other.Get(t.Context(), "a").Val(); got != name {
				t.Errorf("asynq's client reads %q, want %q", got, name)
			}
		})
	}
}

func TestInfoAndClock(t *testing.T) {
	t.Parallel()
	c := mustOpen(t, Config{URL: "redis://" + testredis.TCP(t).Addr()})
	info, err := c.Info(t.Context())
	if err != nil || len(info.RunID) != 40 || info.Role != "primary" || info.Version == "" {
		t.Errorf("info %+v, %v", info, err)
	}
	clock, err := c.Clock(t.Context())
	if err != nil || clock.RoundTrip <= 0 || clock.Offset.Abs() > time.Second {
		t.Errorf("clock %+v, %v", clock, err)
	}
}

// refused is what each server that cannot be used is refused with.
func TestRefusals(t *testing.T) {
	t.Parallel()
	locked := testredis.TCP(t, "--requirepass", "right")
	open := testredis.TCP(t)
	acl := testredis.ACL(t, "app", "right", "~*", "-@all", "+hello")
	replica := testredis.TCP(t, "--replicaof", strings.Replace(open.Addr(), ":", " ", 1))
	node := testredis.TCP(t, "--cluster-enabled", "yes")
	silent := listen(t, func(net.Conn) {})
	for name, tc := range map[string]struct {
		url  string
		says []string
	}{
		"wrong password":       {"redis://:hunter2@" + locked.Addr(), []string{locked.Addr(), "refuses the user or password", "redis.url"}},
		"no such user":         {"redis://other:hunter2@" + acl.Addr(), []string{"refuses the user or password"}},
		"no password":          {"redis://" + locked.Addr(), []string{"wants a password", ":PASSWORD@"}},
		"user without rights":  {"redis://app:right@" + acl.Addr(), []string{"NOPERM", "ping"}},
		"nobody listens":       {"redis://:hunter2@127.0.0.1:1", []string{"127.0.0.1:1", "refused", "start the server"}},
		"no socket":            {"unix:///nowhere/redis.sock", []string{"/nowhere/redis.sock", "no such file", "socket's path"}},
		"unknown host":         {"redis://no-such-host.invalid", []string{"no-such-host.invalid", "correct the host"}},
		"no answer":            {"redis://:hunter2@" + silent, []string{silent, "no answer in time"}},
		"replica":              {"redis://" + replica.Addr(), []string{"replica of " + open.Addr(), "redis+sentinel://"}},
		"a Cluster's node":     {"redis://" + node.Addr(), []string{"Cluster", "redis+cluster://"}},
		"no Cluster":           {"redis+cluster://" + open.Addr(), []string{"not part of a Cluster", "redis://"}},
		"a Cluster not served": {"redis+cluster://" + node.Addr(), []string{"slots"}},
		"no such database":     {"redis://" + open.Addr() + "/99", []string{"no such database"}},
		"no Sentinel":          {"redis+sentinel://127.0.0.1:1,127.0.0.1:2/mymaster", []string{"mymaster", "refused"}},
		"TLS to a plain port":  {"rediss://" + open.Addr(), []string{"no answer in time", "use redis://"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			ctx := t.Context()
			if strings.HasPrefix(tc.url, "rediss:") { // its answer does not come, and is waited for elsewhere
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
			}
			c, err := Open(ctx, Config{URL: tc.url, LoadWait: 500 * time.Millisecond})
			if err == nil {
				c.Close()
				t.Fatal("opened")
			}
			var start *StartError
			if !errors.As(err, &start) {
				t.Errorf("%T, want a *StartError", err)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("took %s", took)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q holds the password or several lines", err)
			}
			t.Log(err)
		})
	}
}

func TestStartObeysItsContext(t *testing.T) {
	t.Parallel()
	silent := listen(t, func(net.Conn) {})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if c, err := Open(ctx, Config{URL: "redis://" + silent}); err == nil {
		c.Close()
		t.Fatal("opened")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s, want about 200ms", took)
	}
}

func TestStartCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	s := testredis.TCP(t)
	c, err := New(Config{URL: "redis://" + s.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Stop()
	if err := c.Start(t.Context()); err == nil {
		t.Fatal("started without a server")
	}
	s.Start(t)
	for range 2 {
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Start(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("start after close: %v, want ErrClosed", err)
	}
}

func TestOldRedisIsRefused(t *testing.T) {
	t.Parallel()
	for version, tooOld := range map[string]bool{"6.0.16": true, "5.0.14": true, "6.2.0": false, "10.1": false, "unknown": false} {
		addr := pretend(t, map[string]string{
			"SERVER": "redis_version:" + version + "\r\nredis_mode:standalone\r\n", "REPLICATION": "role:master\r\n", "MEMORY": "",
		})
		c, err := Open(t.Context(), Config{URL: "redis://" + addr})
		if err == nil {
			c.Close()
		}
		if errors.Is(err, ErrTooOld) != tooOld {
			t.Errorf("%s: %v, want too old: %v", version, err, tooOld)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ url, says string }{
		"eviction":       {"redis://" + testredis.TCP(t, "--maxmemory-policy", "allkeys-lru").Addr(), "allkeys-lru"},
		"INFO forbidden": {"redis://app:pw@" + testredis.ACL(t, "app", "pw", "~*", "&*", "+@all", "-info", "-config").Addr(), "does not say what it is"},
	} {
		var log logged
		mustOpen(t, Config{URL: tc.url, Logger: log.logger()})
		if !log.has("level=WARN") || !log.has(tc.says) {
			t.Errorf("%s: no warning that says %q: %s", name, tc.says, log.text.String())
		}
	}
}

func TestLoadingIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := testredis.TCP(t, "--save", "", "--key-load-delay", "300", "--loading-process-events-interval-bytes", "1024")
	rdb := s.Client()
	pipe := rdb.Pipeline()
	for range 4000 {
		pipe.Set(t.Context(), testredis.Name("k"), "some value", 0)
	}
	pipe.Save(t.Context())
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	rdb.Close()
	s.Kill()
	up := make(chan struct{})
	go func() {
		defer close(up)
		s.Start(t)
	}()
	defer func() { <-up }()
	eventually(t, 30*time.Second, "it listens", func() bool {
		conn, err := net.Dial("tcp", s.Addr())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	var log logged
	c := mustOpen(t, Config{URL: "redis://" + s.Addr(), Logger: log.logger()})
	if n := c.Client().DBSize(t.Context()).Val(); n != 4000 {
		t.Errorf("%d keys, want 4000", n)
	}
	if !log.has("not ready yet") {
		t.Error("the wait was not logged")
	}
}

func TestLoadingIsBounded(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	m.SetError("LOADING Redis is loading the dataset in memory")
	_, err := Open(t.Context(), Config{URL: "redis://" + m.Addr(), LoadWait: 150 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "LOADING") {
		t.Errorf("%v, want an error that says LOADING", err)
	}
}

// pretend is a server that gives these answers to INFO.
func pretend(t *testing.T, info map[string]string) string {
	t.Helper()
	m := miniredis.RunT(t)
	m.Server().SetPreHook(func(p *resp.Peer, cmd string, args ...string) bool {
		if cmd != "INFO" {
			return false
		}
		p.WriteBulk(info[strings.ToUpper(args[0])])
		return true
	})
	return m.Addr()
}

// listen accepts connections, which stay open until the test ends.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			serve(conn)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

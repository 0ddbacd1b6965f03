package redisconn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
)

// writer writes a growing number all the time, and knows the last that Redis took.
type writer struct {
	stop context.CancelFunc
	done chan struct{}
	last int64
}

func write(t *testing.T, c *Conn) *writer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for n := int64(1); ctx.Err() == nil; n++ {
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			if c.Client().Set(bounded, "number", n, 0).Err() == nil {
				w.last = n
			}
			cancel()
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}()
	t.Cleanup(w.end)
	return w
}

func (w *writer) end() { w.stop(); <-w.done }

func marked1(t *testing.T, c *Conn) {
	t.Helper()
	c.watch.mu.Lock()
	before := c.watch.shards[0].mark
	c.watch.mu.Unlock()
	eventually(t, 30*time.Second, "a further mark is left", func() bool {
		c.watch.mu.Lock()
		defer c.watch.mu.Unlock()
		return c.watch.shards[0].mark > before
	})
}

func wantRefused(t *testing.T, c *Conn, kind error) {
	t.Helper()
	eventually(t, 60*time.Second, "writes are refused", func() bool { return c.Refusal() != nil })
	if err := c.Client().Set(t.Context(), "more", 1, 0).Err(); !errors.Is(err, kind) {
		t.Errorf("a write gets %v, want %v", err, kind)
	}
	if err := writeAllWays(c.Client()); !errors.Is(err, kind) {
		t.Errorf("writes get %v, want %v", err, kind)
	}
	if c.Identity().Refused == "" {
		t.Error("the identity does not say that writes are refused")
	}
}

func wantWritten(t *testing.T, c *Conn) {
	t.Helper()
	eventually(t, 60*time.Second, "writes pass again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return c.Refusal() == nil && c.Client().Set(ctx, "more", 1, 0).Err() == nil
	})
}

// A server that comes back with an old snapshot gets not a single write, from
// no process, until a person accepts it.
func TestAPrimaryRestoredFromAnOldSnapshotIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	s := testredis.TCP(t, "--save", "", "--appendonly", "no")
	url := "redis://" + s.Addr()
	var log logged
	one := mustOpen(t, Config{URL: url, Guard: GuardAlways, Logger: log.logger()})
	two := mustOpen(t, Config{URL: url, Guard: GuardAlways})
	marked1(t, one)
	direct := s.Client()
	defer direct.Close()
	if err := direct.Set(t.Context(), "kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := direct.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	w := write(t, one)
	marked1(t, one)
	marked1(t, one)
	first := one.Identity()
	s.Kill()
	s.Start(t)
	wantRefused(t, one, ErrBehind)
	wantRefused(t, two, ErrBehind)
	w.end()
	if got, err := direct.Get(t.Context(), "number").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("number %s was written (the last one before was %d): %v", got, w.last, err)
	}
	if now := one.Identity(); now.Changes != 1 || now.RunID == first.RunID || now.Role != "primary" || !log.has("redis primary changed") || !log.has("nothing is written to redis") {
		t.Errorf("identity %+v was %+v, log %s", now, first, log.text.String())
	}
	// Reads go on, when the writes that were under way have given up.
	eventually(t, 2*strict, "reads pass", func() bool { return one.Client().Get(context.Background(), "kept").Val() == "yes" })

	_, err := Open(t.Context(), Config{URL: url})
	if start := (*StartError)(nil); !errors.As(err, &start) || !errors.Is(err, ErrBehind) || !strings.Contains(err.Error(), "--accept-primary") {
		t.Errorf("a new process gets %v, want a *StartError that says what to do", err)
	}
	looker := mustOpen(t, Config{URL: url, Guard: GuardNone})
	if alarm, err := looker.Alarm(t.Context()); err != nil || alarm == nil {
		t.Errorf("alarm %v, %v", alarm, err)
	}
	if had, err := looker.AcceptPrimary(t.Context()); err != nil || !had {
		t.Fatal(had, err)
	}
	wantWritten(t, one)
	wantWritten(t, two)
	mustOpen(t, Config{URL: url})
	if alarm, err := looker.Alarm(t.Context()); err != nil || alarm != nil {
		t.Errorf("alarm %v, %v", alarm, err)
	}
	// The acceptance is for what was lost until now: the next loss is refused again.
	marked1(t, one)
	marked1(t, two)
	s.Kill()
	s.Start(t)
	wantRefused(t, one, ErrBehind)
}

// Who empties a server that runs on does so by hand: it is no older one.
func TestAServerThatIsEmptiedByHandIsWrittenTo(t *testing.T) {
	t.Parallel()
	s := testredis.TCP(t, "--save", "", "--appendonly", "no")
	var log logged
	c := mustOpen(t, Config{URL: "redis://" + s.Addr(), Guard: GuardAlways, Logger: log.logger()})
	marked1(t, c)
	direct := s.Client()
	defer direct.Close()
	for range 2 {
		if err := direct.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		marked1(t, c)
		wantWritten(t, c)
	}
	if r := c.Refusal(); r != nil || log.has("nothing is written to redis") {
		t.Errorf("refused: %v", r)
	}
	if !log.has("redis was emptied") {
		t.Errorf("the log says nothing of it: %s", log.text.String())
	}
	// The next one that lacks what was written is refused all the same.
	s.Kill()
	s.Start(t)
	wantRefused(t, c, ErrBehind)
}

// A crash of a server with an append-only file loses nothing, and nobody notices
// but the log. One that comes back with an old file is refused, until it has the
// new one again.
func TestAppendOnlyFiles(t *testing.T) {
	t.Parallel()
	// By default a write may wait up to two seconds for a slow disk, and go with the server.
	s := testredis.TCP(t, "--appendonly", "yes", "--appendfsync", "always")
	c := mustOpen(t, Config{URL: "redis://" + s.Addr(), Guard: GuardAlways})
	files := filepath.Join(s.Dir(), "appendonlydir")
	if _, err := os.Stat(files); err != nil { // where Redis 6 keeps it
		files = filepath.Join(s.Dir(), "appendonly.aof")
	}
	marked1(t, c)
	s.Kill()
	s.Start(t)
	eventually(t, 30*time.Second, "the change is seen", func() bool { return c.Identity().Changes == 1 })
	wantWritten(t, c)

	s.Kill()
	old, newer := files+".old", files+".new"
	copyAll(t, files, old)
	s.Start(t)
	wantWritten(t, c)
	marked1(t, c)
	marked1(t, c)
	s.Kill()
	if err := errors.Join(os.Rename(files, newer), os.Rename(old, files)); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	wantRefused(t, c, ErrBehind)
	s.Kill()
	if err := errors.Join(os.RemoveAll(files), os.Rename(newer, files)); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	wantWritten(t, c)
}

func copyAll(t *testing.T, from, to string) {
	t.Helper()
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestACleanFailoverPassesUnhindered(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.SentinelOptions{})
	var log logged
	c := mustOpen(t, Config{URL: "redis+sentinel://" + strings.Join(set.Addrs(), ",") + "/" + set.Name, Guard: GuardAlways, Logger: log.logger()})
	marked1(t, c)
	set.Primary.Kill()
	eventually(t, 60*time.Second, "the change is seen", func() bool { return c.Identity().Changes == 1 })
	wantWritten(t, c)
	steady(t, []redis.UniversalClient{c.Client()})
	if log.has("nothing is written") {
		t.Errorf("writes were refused: %s", log.text.String())
	}
}

// A replica that had not got the last writes is made the primary.
func TestAReplicaThatLagsIsNotWrittenToWhenItIsPromoted(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.SentinelOptions{Password: "hunter2"})
	c := mustOpen(t, Config{URL: "redis+sentinel://:hunter2@" + strings.Join(set.Addrs(), ",") + "/" + set.Name, Guard: GuardAlways})
	marked1(t, c)
	ctx := t.Context()
	ask := func(s *testredis.Server, args ...any) {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "hunter2"})
		defer rdb.Close()
		if err := rdb.Do(ctx, args...).Err(); err != nil {
			t.Fatal(args, err)
		}
	}
	ask(set.Replica, "CONFIG", "SET", "masterauth", "wrong")
	ask(set.Primary, "CLIENT", "KILL", "TYPE", "replica")
	marked1(t, c)
	marked1(t, c)
	set.Primary.Kill()
	wantRefused(t, c, ErrBehind)
	if n := c.Identity().Changes; n != 1 {
		t.Errorf("%d changes, want 1", n)
	}
	promoted := redis.NewClient(&redis.Options{Addr: set.Replica.Addr(), Password: "hunter2"})
	defer promoted.Close()
	if n := promoted.Exists(ctx, "more", "{k}:plain").Val(); n != 0 {
		t.Errorf("%d keys were written to it", n)
	}
}

// A server that becomes a replica while we use it is not written to, even where
// it would take the writes.
func TestAServerThatBecomesAReplicaIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	s := testredis.TCP(t, "--replica-read-only", "no")
	c := mustOpen(t, Config{URL: "redis://" + s.Addr(), Guard: GuardAlways})
	direct := s.Client()
	defer direct.Close()
	if err := direct.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, c, ErrReplica)
	if c.Identity().Role != "replica" {
		t.Errorf("role %q", c.Identity().Role)
	}
	if err := direct.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	wantWritten(t, c)
}

func TestMiniredisIsKnownAndNotMarked(t *testing.T) {
	t.Parallel()
	c := mustOpen(t, Config{URL: "embedded", Data: t.TempDir(), Server: "miniredis", Guard: GuardAlways})
	if id := c.Identity(); id.Mode != "embedded miniredis" || id.RunID == "" || id.Role != "primary" || id.Refused != "" {
		t.Errorf("identity %+v", id)
	}
	if n := c.Client().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
}

// A user who may not ask INFO is guarded by the marks alone.
func TestGuardWithoutInfo(t *testing.T) {
	t.Parallel()
	s := testredis.ACL(t, "app", "pw", "~*", "&*", "+@all", "-info")
	c := mustOpen(t, Config{URL: "redis://app:pw@" + s.Addr(), Guard: GuardAlways})
	marked1(t, c)
	if err := c.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, c, ErrBehind)
}

func TestEachSixteenthOfAClustersSlotsHasItsKeys(t *testing.T) {
	t.Parallel()
	if got := slotOf("123456789"); got != 0x31C3 {
		t.Errorf("slot %x, want 31c3 as the specification has it", got)
	}
	keys := guardKeys(kindCluster)
	for i, k := range keys {
		tag := k.prefix[strings.Index(k.prefix, "{")+1 : strings.Index(k.prefix, "}")]
		if share := int(slotOf(tag)) * slotShares / slotCount; share != i || len(keys) != slotShares {
			t.Errorf("%s lies in share %d, want %d of %d", tag, share, i, len(keys))
		}
	}
}

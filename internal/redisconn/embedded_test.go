package redisconn

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestEmbeddedServerKeepsItsData(t *testing.T) {
	t.Parallel()
	cfg := Config{URL: "embedded", Data: filepath.Join(t.TempDir(), "a b", "ü"), Server: "auto"}
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if c.Mode() != "embedded redis-server" || !strings.Contains(c.Where(), cfg.Data) {
		t.Errorf("mode %q, where %q", c.Mode(), c.Where())
	}
	wantModes(t, cfg.Data, map[string]os.FileMode{"": 0o700, "redis": 0o700, "redis.json": 0o600, "owner.lock": 0o600})
	set(t, c, "a", "1")
	server := c.embedded.record().PID
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(server, 0) == nil {
		t.Error("the server runs on after Close")
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "redis.json")); err == nil {
		t.Error("the join file is left")
	}
	again := mustOpen(t, cfg)
	wantValue(t, again, "a", "1")
	info, err := again.Info(t.Context())
	if err != nil || info.Role != "primary" || info.RunID == "" {
		t.Errorf("info %+v, %v", info, err)
	}
}

func wantModes(t *testing.T, dir string, want map[string]os.FileMode) {
	t.Helper()
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
}

func TestJoinerTakesOverWhenTheOwnerCloses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind  string
		after string // what is left of the data
	}{{redisServer, "1"}, {miniredisServer, ""}} {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: "embedded", Data: t.TempDir(), Server: tc.kind}
			owner, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			var log logged
			cfg.Logger = log.logger()
			joiner := mustOpen(t, cfg)
			if joiner.Mode() != "embedded "+tc.kind || !log.has("joined the embedded redis") {
				t.Errorf("mode %q: %s", joiner.Mode(), log.text.String())
			}
			set(t, owner, "a", "1")
			wantValue(t, joiner, "a", "1")
			own := joiner.NewClient()
			defer own.Close()
			if err := own.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if err := owner.Close(); err != nil {
				t.Fatal(err)
			}
			wantValue(t, joiner, "a", tc.after)
			if err := own.Set(t.Context(), "b", "2", 0).Err(); err != nil {
				t.Errorf("a client of its own: %v", err)
			}
			if tc.kind == miniredisServer && !log.has("NOTHING IN REDIS OUTLIVES THIS PROCESS") {
				t.Error("the taker-over does not warn")
			}
		})
	}
}

func TestServerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	var log logged
	c := mustOpen(t, Config{URL: "embedded", Data: t.TempDir(), Logger: log.logger()})
	set(t, c, "a", "1")
	first := c.embedded.record()
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// A busy machine may let a killed server answer once more.
	for deadline := time.Now().Add(30 * time.Second); c.embedded.record().PID == first.PID && time.Now().Before(deadline); {
		<-time.After(5 * time.Millisecond)
	}
	wantValue(t, c, "a", "1")
	if next := c.embedded.record(); next.PID == first.PID || next.RunID == first.RunID || !log.has("ended by itself") {
		t.Errorf("still %+v", next)
	}
}

func TestRestartGapGrowsForAServerThatDiesYoung(t *testing.T) {
	t.Parallel()
	gap := time.Duration(0)
	var got []time.Duration
	for range 9 {
		gap = restartGap(gap, time.Second)
		got = append(got, gap)
	}
	if got[0] != shortestPause || got[1] <= got[0] || got[8] != longestPause {
		t.Errorf("gaps %v", got)
	}
	if gap = restartGap(gap, time.Minute); gap != 0 {
		t.Errorf("after a long life %v, want none", gap)
	}
}

func TestSocketOfADeepDirectory(t *testing.T) {
	t.Parallel()
	cfg := Config{URL: "embedded", Data: filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))}
	owner, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	joiner := mustOpen(t, cfg)
	set(t, owner, "a", "1")
	wantValue(t, joiner, "a", "1")
	socket := owner.embedded.record().Address
	near := filepath.Dir(socket)
	if len(socket) > 100 || strings.HasPrefix(socket, cfg.Data) {
		t.Errorf("the socket is %s", socket)
	}
	wantModes(t, near, map[string]os.FileMode{"": 0o700})
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, joiner, "a", "1")
	if _, err := os.Stat(near); err == nil {
		t.Errorf("%s is left", near)
	}
}

// A directory as an owner leaves it that was killed, and worse.
func TestStaleFilesBlockNothing(t *testing.T) {
	t.Parallel()
	stale := newJoinRecord(redisServer, "unix", "/nowhere/feedwarden-1/redis.sock")
	stale.PID, stale.OwnerPID = 1, 1
	text, err := json.Marshal(stale)
	if err != nil {
		t.Fatal(err)
	}
	for name, join := range map[string]string{"dead server": string(text), "garbage": "{", "empty": "", "of another version": `{"version":99}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "redis"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"redis.json": join, "owner.lock": "1\n", "server.lock": "", "redis/redis.sock": "no socket"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := mustOpen(t, Config{URL: "embedded", Data: dir})
			set(t, c, "a", "1")
			wantModes(t, dir, map[string]os.FileMode{"redis": 0o700})
		})
	}
}

// Whatever keeps an earlier server alive, no second one runs on its files.
func TestEarlierServerIsOusted(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]bool{"answers": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bin, err := findServer()
			if err != nil {
				t.Fatal(err)
			}
			earlier, err := startChild(t.Context(), bin, dir, joinRecord{}, needsGuard)
			if err != nil {
				t.Fatal(err)
			}
			defer earlier.stop()
			rec := earlier.record()
			if err := rec.write(filepath.Join(dir, "redis.json")); err != nil {
				t.Fatal(err)
			}
			if hang {
				if err := syscall.Kill(rec.PID, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			c := mustOpen(t, Config{URL: "embedded", Data: dir})
			set(t, c, "a", "1")
			select {
			case <-earlier.ended():
			case <-time.After(time.Second):
				t.Error("the earlier server still runs")
			}
		})
	}
}

// The shell that stands in for the kernel's parent-death signal elsewhere.
func TestGuardEndsTheServerWithItsOwner(t *testing.T) {
	t.Parallel()
	bin, err := findServer()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	srv, err := startChild(t.Context(), bin, dir, joinRecord{}, true)
	if err != nil {
		t.Fatal(err)
	}
	rec := srv.record()
	if err := rec.alive(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = srv.(*child).pipe.Close() // as the system does when the owner ends
	select {
	case <-srv.ended():
	case <-time.After(5 * time.Second):
		t.Error("the guard runs on")
	}
	srv.stop()
	lock, err := tryLock(filepath.Join(dir, "server.lock"))
	if err != nil {
		t.Fatalf("the server runs on: %v", err)
	}
	lock.release()

	again, err := startChild(t.Context(), bin, dir, rec, true)
	if err != nil {
		t.Fatal(err)
	}
	again.stop()
	if lock, err = tryLock(filepath.Join(dir, "server.lock")); err != nil {
		t.Fatalf("the server runs on after stop: %v", err)
	}
	lock.release()
}

func TestMiniredisKeepsTime(t *testing.T) {
	t.Parallel()
	var log logged
	c := mustOpen(t, Config{URL: "embedded", Data: t.TempDir(), Server: miniredisServer, Logger: log.logger()})
	if !log.has("level=WARN") || !log.has("NOTHING IN REDIS OUTLIVES THIS PROCESS") {
		t.Errorf("no loud line: %s", log.text.String())
	}
	ctx := t.Context()
	began := time.Now()
	c.Client().Set(ctx, "short", "1", 300*time.Millisecond)
	c.Client().Set(ctx, "long", "1", time.Hour)
	eventually(t, 3*time.Second, "a key expires", func() bool { return c.Client().Exists(ctx, "short").Val() == 0 })
	if took := time.Since(began); took < 300*time.Millisecond-2*clockStep {
		t.Errorf("expired after %s", took)
	}
	if c.Client().Exists(ctx, "long").Val() != 1 {
		t.Error("the long key is gone")
	}
	clock, err := c.Clock(ctx)
	if err != nil || clock.Offset.Abs() > 100*time.Millisecond {
		t.Errorf("clock %+v, %v", clock, err)
	}
	info, err := c.Info(ctx)
	if err != nil || info.Server != "miniredis" || info.RunID == "" || info.Role != "primary" {
		t.Errorf("info %+v, %v", info, err)
	}
	rec := c.embedded.record()
	stranger := redis.NewClient(&redis.Options{Addr: rec.Address, MaxRetries: -1})
	defer stranger.Close()
	if err := stranger.Get(ctx, "long").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("without the password: %v", err)
	}
	wantModes(t, c.embedded.dir, map[string]os.FileMode{"redis.json": 0o600})
}

func TestEmbeddedFaults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.MkdirAll(filepath.Join(broken, "redis", "appendonlydir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "redis", "appendonlydir", "appendonly.aof.manifest"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cfg  Config
		says string
	}{
		"no directory":      {Config{URL: "embedded"}, "redis.data"},
		"unknown server":    {Config{URL: "embedded", Data: t.TempDir(), Server: "keydb"}, `"keydb"`},
		"a file in its way": {Config{URL: "embedded", Data: filepath.Join(file, "data")}, "not a directory"},
		"broken data":       {Config{URL: "embedded", Data: broken}, "ended at once"},
	} {
		c, err := Open(t.Context(), tc.cfg)
		if err == nil {
			c.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q, want it to say %q", name, err, tc.says)
		} else {
			t.Log(err)
		}
	}
}

// Without a server the fault is told, or miniredis stands in. PATH is the
// process's own, so this runs in one of its own.
func TestNoServerOnPath(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ server, says string }{
		"auto":   {"auto", "embedded miniredis"},
		"forced": {redisServer, "redis-server is not on PATH"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PATH=/nowhere", childEnv+"="+t.TempDir(), childServerEnv+"="+tc.server)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), tc.says) {
			t.Errorf("%s: %s, want it to say %q", name, out, tc.says)
		}
	}
}

func TestClientsBeforeStart(t *testing.T) {
	t.Parallel()
	c, err := New(Config{URL: "embedded", Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rdb := c.Client()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err == nil {
		t.Error("a server answers before Start")
	}
	if c.Mode() != "embedded" {
		t.Errorf("mode %q", c.Mode())
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

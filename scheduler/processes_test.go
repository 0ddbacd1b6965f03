package scheduler

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"feedwarden/internal/testredis"

	"github.com/redis/go-redis/v9"
)

// The test binary runs itself again as a scheduler when this names a socket.
const schedulerProcess = "FEEDWARDEN_TEST_SCHEDULER"

func TestMain(m *testing.M) {
	if socket := os.Getenv(schedulerProcess); socket != "" {
		os.Exit(beScheduler(socket))
	}
	os.Exit(m.Run())
}

func beScheduler(socket string) int {
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: 40})
	d, err := NewDispatcher(rdb, everySecond(), redisQueue{rdb}, WithLogger(quiet()))
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		err = d.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const processSchedules = 200

// everySecond catches up on all: on a busy machine there are seconds in which no
// process is up.
func everySecond() (entries []Entry) {
	for i := range processSchedules {
		entries = append(entries, Entry{
			Name: fmt.Sprintf("feed-%03d", i), Expression: "@every 1s", Overlap: OverlapAllow, CatchUp: CatchUp{Policy: CatchUpAll},
		})
	}
	return entries
}

// redisQueue remembers jobs by their ID, and writes each new one to a log.
type redisQueue struct{ rdb redis.UniversalClient }

var logOnce = redis.NewScript(`
if redis.call('SET', KEYS[1], '1', 'NX') then redis.call('RPUSH', KEYS[2], ARGV[1]) end
return 1`)

func (q redisQueue) EnqueueTick(ctx context.Context, t Tick) error {
	return logOnce.Run(ctx, q.rdb, []string{"job:" + t.ID(), "log"}, t.ID()).Err()
}

func (q redisQueue) Busy(context.Context, string) (string, bool, error) { return "", false, nil }

// child is one scheduler process. Its owner kills, stops and replaces it.
type child struct {
	cmd *exec.Cmd
	up  time.Time // when it goes on after SIGSTOP, or is replaced after a kill; zero while it runs
}

func spawn(t *testing.T, socket string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0], "-test.run", "^$")}
	c.cmd.Env = append(os.Environ(), schedulerProcess+"="+socket)
	c.cmd.Stderr = os.Stderr
	if _, err := c.cmd.StdinPipe(); err != nil { // its end tells the child that the test is gone
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

func (c *child) stop(until time.Time) {
	if c.up.IsZero() {
		_ = c.cmd.Process.Signal(syscall.SIGSTOP)
		c.up = until
	}
}

func (c *child) wake(now time.Time) {
	if !c.up.IsZero() && now.After(c.up) {
		_ = c.cmd.Process.Signal(syscall.SIGCONT)
		c.up = time.Time{}
	}
}

// TestEveryTickOnceWhateverDies runs three processes on one Redis, which all
// die, stall and come back at random. SOAK=1 makes it a minute.
func TestEveryTickOnceWhateverDies(t *testing.T) {
	t.Parallel()
	span := 18 * time.Second
	if os.Getenv("SOAK") != "" {
		span = time.Minute
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)

	srv := testredis.Own(t, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	children := []*child{spawn(t, srv.Socket()), spawn(t, srv.Socket()), spawn(t, srv.Socket())}
	logged(t, rdb, 1, 30*time.Second)

	begun := time.Now()
	restarts := []time.Duration{span / 3, span * 2 / 3}
	kills, stops := 0, 0
	next := begun
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for now := begun; now.Sub(begun) < span; now = <-poll.C {
		for i, c := range children {
			c.wake(now)
			if c.cmd.ProcessState != nil && now.After(c.up) {
				children[i] = spawn(t, srv.Socket())
			}
		}
		if len(restarts) > 0 && now.Sub(begun) > restarts[0] {
			restarts = restarts[1:]
			srv.Kill()
			srv.Start(t)
		}
		if now.Before(next) {
			continue
		}
		next = now.Add(time.Duration(300+random.IntN(1500)) * time.Millisecond)
		if c := children[random.IntN(len(children))]; c.up.IsZero() {
			if random.IntN(3) > 0 {
				kills++
				c.kill()
				c.up = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
			} else {
				stops++
				c.stop(now.Add(5 * time.Second))
			}
		}
	}
	// Those who are left settle all that is due.
	for i, c := range children {
		c.wake(c.up.Add(1))
		if c.cmd.ProcessState != nil {
			children[i] = spawn(t, srv.Socket())
		}
	}
	end := time.Now().Truncate(time.Second)
	eventuallyWithin(t, 2*time.Minute, "all is settled up to the end", func() bool {
		for _, e := range everySecond() {
			if settled(t, rdb, e) < end.UnixMilli() {
				return false
			}
		}
		return true
	})
	for _, c := range children {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("a scheduler ends with %v", err)
		}
	}
	t.Logf("%d kills, %d stops, 2 restarts of Redis", kills, stops)
	onceEach(t, rdb, end)
}

// onceEach holds the log against the seconds from each schedule's first tick
// to end.
func onceEach(t *testing.T, rdb *redis.Client, end time.Time) {
	t.Helper()
	perName := map[string]map[int64]int{}
	for _, id := range rdb.LRange(t.Context(), "log", 0, -1).Val() {
		name, text, _ := strings.Cut(id, "@")
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatalf("ID %q: %v", id, err)
		}
		if perName[name] == nil {
			perName[name] = map[int64]int{}
		}
		perName[name][at.Unix()]++
	}
	jobs, lost, doubled := 0, 0, 0
	for _, e := range everySecond() {
		ticks := perName[e.Name]
		first := end.Unix()
		for at, n := range ticks {
			first = min(first, at)
			jobs += n
			doubled += n - 1
		}
		for at := first; at <= end.Unix(); at++ {
			if ticks[at] == 0 {
				if lost++; lost < 5 {
					t.Errorf("%s has no job of %s: %v", e.Name, time.Unix(at, 0).UTC(), rdb.HGetAll(t.Context(), stateKey(e.Name)).Val())
				}
			}
		}
	}
	if lost > 0 || doubled > 0 || jobs < processSchedules*10 {
		t.Errorf("%d jobs, %d ticks lost, %d doubled", jobs, lost, doubled)
	}
}

// settled is the instant up to which a schedule's ticks are settled, in
// milliseconds.
func settled(t *testing.T, rdb *redis.Client, e Entry) int64 {
	t.Helper()
	plans, err := plan([]Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	last, _ := rdb.HGet(t.Context(), stateKey(e.Name), "last:"+revisionText(plans[e.Name].revision)).Int64()
	return last
}

func logged(t *testing.T, rdb *redis.Client, n int64, limit time.Duration) {
	t.Helper()
	eventuallyWithin(t, limit, fmt.Sprintf("%d jobs", n), func() bool { return rdb.LLen(t.Context(), "log").Val() >= n })
}

package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
)

// copiesOf are copies of a store, as one process has them.
func copiesOf(t *testing.T, s *Store, cfg CopiesConfig) *Copies {
	t.Helper()
	if cfg.Encode == nil {
		cfg.Encode = func(_ string, v Version) ([]byte, error) { return strconv.AppendInt(nil, v.Version, 10), nil }
	}
	c := NewCopies(s, cfg)
	t.Cleanup(c.Close)
	return c
}

func mustGet(t *testing.T, c *Copies, key string) *Copy {
	t.Helper()
	got, err := c.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// hearing waits until messages are heard.
func hearing(t *testing.T, c *Copies, key string) {
	t.Helper()
	_, _ = c.Get(t.Context(), key)
	soon(t, "the subscription hears", func() bool { return c.live.Load() != 0 })
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// commands is how many a server has done, the questions for that number left out.
func commands(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(line, ":calls=")
		if n, _, ok := strings.Cut(rest, ","); ok && !strings.HasSuffix(name, "_info") && !strings.HasSuffix(name, "_ping") {
			calls, _ := strconv.Atoi(n)
			total += calls
		}
	}
	return total
}

func TestAHitCostsNoCallToRedisAndNoEncoding(t *testing.T) {
	t.Parallel()
	rdb := testredis.Own(t).Client()
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, luarun.NewDesk(rdb))
	put(t, s, "f", 0, content("a"), 3)
	var encoded atomic.Int64
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour, Encode: func(string, Version) ([]byte, error) {
		encoded.Add(1)
		return []byte("body"), nil
	}})
	hearing(t, c, "f")
	first := mustGet(t, c, "f")
	before := commands(t, rdb)
	for range 1000 {
		if got := mustGet(t, c, "f"); got != first || string(got.Body) != "body" || string(got.Page(2)) != "second page" {
			t.Fatalf("%+v", got)
		}
	}
	if n := commands(t, rdb) - before; n != 0 {
		t.Errorf("1000 hits cost %d calls", n)
	}
	// A renewal is another head, and the same bytes.
	if _, err := s.Renew(t.Context(), "f", t0.Add(time.Hour), t0.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	soon(t, "the renewal is seen", func() bool { return mustGet(t, c, "f").Head.FetchedAt.Equal(t0.Add(time.Hour)) })
	if encoded.Load() != 1 {
		t.Errorf("one version was encoded %d times", encoded.Load())
	}
}

func TestACopyIsDroppedWhenANewVersionLands(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 3)
	one, two := copiesOf(t, s, CopiesConfig{Safety: time.Hour}), copiesOf(t, s, CopiesConfig{Safety: time.Hour})
	hearing(t, one, key)
	hearing(t, two, key)
	for n := range 20 {
		put(t, s, key, time.Duration(n+1)*time.Minute, content(fmt.Sprint(n)), 3)
		for _, c := range []*Copies{one, two} {
			soon(t, "both processes have it", func() bool { return mustGet(t, c, key).Head.Version == int64(n+2) })
		}
	}
}

func TestALostMessageIsMadeUpForBySafety(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 3)
	c := copiesOf(t, s, CopiesConfig{Safety: 300 * time.Millisecond})
	hearing(t, c, key)
	begun := time.Now()
	mustGet(t, c, key)
	// As a writer whose message nobody hears.
	if err := s.rdb.HSet(t.Context(), headKey(key), "fetched_ms", t0.Add(time.Hour).UnixMilli()).Err(); err != nil {
		t.Fatal(err)
	}
	soon(t, "it is seen all the same", func() bool { return mustGet(t, c, key).Head.FetchedAt.Equal(t0.Add(time.Hour)) })
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("after %s: the copy was not held at all", took)
	}
}

func TestWhileMessagesAreNotHeardEveryReadLooksAtRedis(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 3)
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour})
	hearing(t, c, key)
	mustGet(t, c, key)
	c.live.Store(0) // as when the subscription has broken
	put(t, s, key, time.Minute, content("b"), 3)
	if got := mustGet(t, c, key); got.Head.Version != 2 {
		t.Errorf("version %d", got.Head.Version)
	}
	loads := c.Loads()
	mustGet(t, c, key)
	if c.Loads() != loads+1 {
		t.Error("a copy was given without a look")
	}
}

func TestASubscriptionThatIsKilledIsMadeAnew(t *testing.T) {
	t.Parallel()
	rdb := testredis.Own(t).Client()
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, luarun.NewDesk(rdb))
	put(t, s, "f", 0, content("a"), 3)
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour})
	hearing(t, c, "f")
	for n := int64(2); n < 6; n++ {
		term := c.live.Load()
		if err := rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		put(t, s, "f", time.Duration(n)*time.Minute, content(fmt.Sprint(n)), 3)
		soon(t, "the version is there", func() bool { return mustGet(t, c, "f").Head.Version == n })
		soon(t, "a new term hears", func() bool { now := c.live.Load(); return now != 0 && now != term })
	}
}

func TestManyReadersShareOneLookAtRedis(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 3)
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour})
	hearing(t, c, key)
	c.Doubt(key)
	before := c.Loads()
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if got, err := c.Get(t.Context(), key); err != nil || got.Head.Version != 1 {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := c.Loads() - before; n > 2 {
		t.Errorf("200 readers asked Redis %d times", n)
	}
}

func TestCopiesAreBoundedByWeightAndForgetNoVersionThatWasGiven(t *testing.T) {
	t.Parallel()
	s, base := newStore(t), testredis.Name("f")
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour, Bytes: 10_000, Encode: func(string, Version) ([]byte, error) { return make([]byte, 1000), nil }})
	for n := range 30 {
		key := fmt.Sprint(base, n)
		put(t, s, key, 0, content("a"), 3)
		put(t, s, key, time.Minute, content("b"), 3)
		mustGet(t, c, key)
		if c.bytes > 10_000 {
			t.Fatalf("%d bytes", c.bytes)
		}
	}
	first, _ := c.entries.Load(fmt.Sprint(base, 0))
	if e := first.(*entry); e.now.Load() != nil || e.given != 2 {
		t.Errorf("the one used longest ago: held %v, given %d", e.now.Load() != nil, e.given)
	}
	last, _ := c.entries.Load(fmt.Sprint(base, 29))
	if last.(*entry).now.Load() == nil {
		t.Error("the last one is not held")
	}
	// One that is too heavy is given, and not held.
	heavy := copiesOf(t, s, CopiesConfig{Bytes: 1000})
	if got := mustGet(t, heavy, base+"0"); got.Head.Version != 2 || heavy.bytes != 0 {
		t.Errorf("%+v, %d bytes", got, heavy.bytes)
	}
}

// backwards makes the next reads of heads older than they are, as those of a
// node that has not heard yet.
type backwards struct{ left atomic.Int64 }

func (b *backwards) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (b *backwards) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (b *backwards) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if m, ok := cmd.(*redis.MapStringStringCmd); ok && b.left.Add(-1) >= 0 {
				m.Val()["version"] = "1"
			}
		}
		return err
	}
}

func TestALoadThatBringsLessIsMadeAgain(t *testing.T) {
	t.Parallel()
	rdb := testredis.Own(t).Client()
	t.Cleanup(func() { _ = rdb.Close() })
	old := &backwards{}
	rdb.AddHook(old)
	s := New(rdb, luarun.NewDesk(rdb))
	put(t, s, "f", 0, content("a"), 3)
	put(t, s, "f", time.Minute, content("b"), 3)
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour})
	hearing(t, c, "f")
	mustGet(t, c, "f")
	for wrong := range int64(4) {
		old.left.Store(wrong)
		c.Doubt("f")
		if got := mustGet(t, c, "f"); got.Head.Version != 2 {
			t.Errorf("after %d older answers: version %d", wrong, got.Head.Version)
		}
	}
}

func TestARedisThatHasLostItsDataIsBelieved(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t, "--save", "", "--appendonly", "no")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, luarun.NewDesk(rdb))
	put(t, s, "f", 0, content("a"), 3)
	put(t, s, "f", time.Minute, content("b"), 3)
	var log bytes.Buffer
	c := copiesOf(t, s, CopiesConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
	hearing(t, c, "f")
	mustGet(t, c, "f")
	srv.Kill()
	soon(t, "without Redis a read fails once its safety time is over", func() bool {
		_, err := c.Get(t.Context(), "f")
		return err != nil && !errors.Is(err, ErrNoVersion)
	})
	srv.Start(t)
	soon(t, "the loss is believed", func() bool {
		_, err := c.Get(t.Context(), "f")
		return errors.Is(err, ErrNoVersion)
	})
	put(t, s, "f", 2*time.Minute, content("c"), 3)
	soon(t, "version 1 is given", func() bool {
		got, err := c.Get(t.Context(), "f")
		return err == nil && got.Head.Version == 1
	})
	c.Close()
	if !strings.Contains(log.String(), "Redis has lost versions of a feed") {
		t.Errorf("the log does not say so: %s", log.String())
	}
}

func TestOneOfManyReadersAsksForARefresh(t *testing.T) {
	t.Parallel()
	c, asked := &Copy{}, atomic.Int64{}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if c.Ask() {
				asked.Add(1)
				c.Asked()
			}
		})
	}
	wg.Wait()
	if asked.Load() != 1 || !c.Updating() {
		t.Errorf("%d asked", asked.Load())
	}
}

func TestNothingIsReadAfterClose(t *testing.T) {
	t.Parallel()
	s, key := newStore(t), testredis.Name("f")
	put(t, s, key, 0, content("a"), 3)
	c := copiesOf(t, s, CopiesConfig{})
	mustGet(t, c, key)
	c.Close()
	c.Close()
	if _, err := c.Get(t.Context(), key); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestCopiesOnMiniredis(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, luarun.NewDesk(rdb))
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour})
	if _, err := c.Get(t.Context(), "f"); !errors.Is(err, ErrNoVersion) {
		t.Errorf("before the first version: %v", err)
	}
	hearing(t, c, "f")
	for n := range 3 {
		put(t, s, "f", time.Duration(n)*time.Minute, content(fmt.Sprint(n)), 3)
		soon(t, "the version is there", func() bool {
			got, err := c.Get(t.Context(), "f")
			return err == nil && got.Head.Version == int64(n+1)
		})
	}
	loads := c.Loads()
	mustGet(t, c, "f")
	if c.Loads() != loads {
		t.Error("a hit looked at Redis")
	}
	head, err := s.Head(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Claim(t.Context(), head, "j", "", time.Minute); err != nil || got != "j" {
		t.Errorf("%q %v", got, err)
	}
}

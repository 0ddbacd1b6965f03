package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
)

// childRush is set in the environment of a child that enqueues: its jobs' prefix.
const childRush = "FW_TEST_RUSH"

const (
	rushLimit  = 60
	rushers    = 8  // goroutines a process
	rushEach   = 10 // jobs that each asks for
	rushHelper = 3  // child processes
)

// rush enqueues as fast as it can, and answers how many were taken.
func rush(ctx context.Context, c *Client, prefix string) (int64, error) {
	var taken atomic.Int64
	var faults [rushers]error
	var all sync.WaitGroup
	for g := range rushers {
		all.Go(func() {
			for i := range rushEach {
				_, err := c.Enqueue(ctx, Spec{Feed: "news", ID: fmt.Sprintf("%s-%d-%d", prefix, g, i)})
				var full *FullError
				switch {
				case err == nil:
					taken.Add(1)
				case !errors.As(err, &full) || full.RetryAfter <= 0:
					faults[g] = errors.Join(faults[g], fmt.Errorf("not a refusal: %w", err))
				}
			}
		})
	}
	all.Wait()
	return taken.Load(), errors.Join(faults[:]...)
}

func rushAsChild(rdb *redis.Client, cfg Config) error {
	cfg.QueueLimits[QueueInteractive] = rushLimit
	c, err := NewClient(cfg, rdb, feed.New(rdb, luarun.NewDesk(rdb)), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	n, err := rush(context.Background(), c, os.Getenv(childRush))
	fmt.Println(n)
	return err
}

// held is what a queue holds at one instant.
func held(ctx context.Context, rdb *redis.Client, queue string) int64 {
	pipe := rdb.TxPipeline()
	counts := []*redis.IntCmd{
		pipe.LLen(ctx, asynqPending(queue)), pipe.LLen(ctx, asynqActive(queue)), pipe.ZCard(ctx, asynqScheduled(queue)), pipe.ZCard(ctx, asynqRetry(queue)),
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0
	}
	var n int64
	for _, c := range counts {
		n += c.Val()
	}
	return n
}

func TestQueueNeverHoldsMoreThanItsLimitHoweverManyProcessesRush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.QueueLimits[QueueInteractive] = rushLimit }))
	w.enqueue(Spec{At: time.Now().Add(time.Hour)}) // one that sleeps counts as well
	stop, most := make(chan struct{}), int64(0)
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				most = max(most, held(context.Background(), w.rdb, QueueInteractive))
			}
		}
	})
	var taken atomic.Int64
	var all sync.WaitGroup
	for n := range rushHelper {
		all.Go(func() {
			child := exec.Command(os.Args[0], "-test.run", "^$")
			child.Env = append(os.Environ(), childSocket+"="+w.redis.Socket(), childTarget+"="+w.upstream.URL, fmt.Sprintf("%s=child%d", childRush, n))
			child.Stderr = os.Stderr
			out, err := child.Output()
			var got int64
			if _, serr := fmt.Sscan(strings.TrimSpace(string(out)), &got); err != nil || serr != nil {
				t.Errorf("child: %v %v", err, serr)
			}
			taken.Add(got)
		})
	}
	all.Go(func() {
		n, err := rush(t.Context(), w.client, "own")
		if err != nil {
			t.Error(err)
		}
		taken.Add(n)
	})
	all.Wait()
	close(stop)
	watching.Wait()
	n := held(t.Context(), w.rdb, QueueInteractive)
	if most > rushLimit || n != rushLimit || taken.Load() != rushLimit-1 {
		t.Errorf("held %d at most and %d in the end, %d taken; the limit is %d, one of them slept", most, n, taken.Load(), rushLimit)
	}
}

func TestQueueNeverHoldsMoreThanItsLimitWhileJobsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.QueueLimits[QueueInteractive] = 5 }))
	w.work()
	var all sync.WaitGroup
	var taken atomic.Int64
	most := int64(0)
	for g := range 8 {
		all.Go(func() {
			for i := range 15 {
				if _, err := w.client.Enqueue(t.Context(), Spec{Feed: "news", ID: fmt.Sprintf("j-%d-%d", g, i)}); err == nil {
					taken.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		most = max(most, held(t.Context(), w.rdb, QueueInteractive))
	}
	if most > 5 || most == 0 {
		t.Errorf("held %d at most", most)
	}
	w.ended(int(taken.Load()), 20*time.Second)
}

func TestPlaceOfAnEnqueuerThatDiedEndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.QueueLimits[QueueInteractive] = 1 }))
	if _, _, err := w.client.room(t.Context(), QueueInteractive, "dead"); err != nil {
		t.Fatal(err)
	}
	var full *FullError
	if _, err := w.client.Enqueue(t.Context(), Spec{Feed: "news"}); !errors.As(err, &full) {
		t.Fatalf("its place is not held: %v", err)
	}
	// Its own retry has the same place.
	if _, _, err := w.client.room(t.Context(), QueueInteractive, "dead"); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if left := w.rdb.PTTL(t.Context(), placesKey(QueueInteractive)).Val(); left <= 0 || left > placeLife {
		t.Errorf("the places' key lives %s", left)
	}
	if err := w.rdb.ZAdd(t.Context(), placesKey(QueueInteractive), redis.Z{Score: float64(time.Now().Add(-time.Second).UnixMilli()), Member: "dead"}).Err(); err != nil {
		t.Fatal(err)
	}
	w.enqueue(Spec{})
}

func TestPayloadTooLargeGivesItsPlaceUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withConfig(func(c *Config) { c.QueueLimits[QueueInteractive] = 1 }))
	if _, err := w.client.Enqueue(t.Context(), Spec{Feed: "news", Params: map[string]string{"k": strings.Repeat("x", MaxPayload)}}); err == nil {
		t.Fatal("taken")
	}
	w.enqueue(Spec{})
}

func TestSteadyFloodOfInteractiveJobsLetsScheduledOnesThroughAndComesFirst(t *testing.T) {
	t.Parallel()
	const scheduled = 12
	w := newWorld(t, withConfig(func(c *Config) { c.Concurrency, c.InteractiveSlots = 4, 1 }))
	for i := range scheduled {
		w.enqueue(Spec{ID: fmt.Sprintf("s%d", i), Priority: Background})
	}
	// Others wait at every instant, from before the first job runs.
	next := 0
	flood := func() {
		for held(t.Context(), w.rdb, QueueInteractive) < 30 {
			next++
			w.enqueue(Spec{ID: fmt.Sprintf("i%d", next)})
		}
	}
	flood()
	w.work()
	dry := 0
	w.eventually(60*time.Second, func() string {
		if w.rdb.LLen(t.Context(), asynqPending(QueueInteractive)).Val() == 0 {
			dry++
		}
		flood()
		if n := held(t.Context(), w.rdb, QueueScheduled); n > 0 {
			return fmt.Sprintf("%d scheduled jobs are left", n)
		}
		return ""
	})
	before := int64(next) - held(t.Context(), w.rdb, QueueInteractive)
	t.Logf("%d interactive jobs ended while %d scheduled did; the flood was dry at %d looks", before, scheduled, dry)
	if dry > 0 {
		t.Error("the flood was not steady: the test shows nothing")
	}
	if before < 2*scheduled {
		t.Errorf("%d interactive jobs beside %d scheduled ones: they do not come first", before, scheduled)
	}
}

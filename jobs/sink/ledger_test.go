package sink

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
)

// ledgers runs a test on a real server and on miniredis.
func ledgers(t *testing.T, f func(t *testing.T, l *Ledger, feed string)) {
	t.Parallel()
	small := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = small.Close() })
	for name, rdb := range map[string]redis.UniversalClient{"redis": testredis.Client(t), "miniredis": small} {
		t.Run(name, func(t *testing.T) { f(t, NewLedger(rdb, luarun.NewDesk(rdb)), testredis.Name("feed")) })
	}
}

func TestLedgerSaysWhichVersionsAreDue(t *testing.T) {
	ledgers(t, func(t *testing.T, l *Ledger, feed string) {
		for i, c := range []struct {
			newest int64
			anew   bool
			due    int64
			queue  bool
			why    string
		}{
			{0, false, 1, true, "nothing is due of an empty feed"},
			{3, false, 1, true, "all three came while nobody queued"},
			{3, false, 4, false, "all are queued"},
			{2, false, 3, false, "who is behind changes nothing"},
			{3, true, 4, false, "what is known is right"},
			{9, false, 5, false, "of six, the five that are kept"},
			{9, false, 5, true, "asked again before they are queued"},
			{2, true, 2, true, "the feed's keys were lost: anew, from the newest"},
			{3, false, 3, true, "and on from there"},
		} {
			due, err := l.Due(t.Context(), feed, "file-1", c.newest, 5, c.anew)
			if err != nil || due != c.due {
				t.Fatalf("%d: %s: %d %v, want %d", i, c.why, due, err, c.due)
			}
			if c.queue {
				if err := l.Queued(t.Context(), feed, "file-1", c.newest); err != nil {
					t.Fatal(err)
				}
			}
		}
		if due, err := l.Due(t.Context(), feed, "stdout", 7, 5, false); err != nil || due != 7 {
			t.Errorf("a new sink begins with %d %v", due, err)
		}
	})
}

func TestLedgerTellsDeliveriesFailuresAndWhatIsLost(t *testing.T) {
	ledgers(t, func(t *testing.T, l *Ledger, feed string) {
		sinks := map[string][]Config{feed: {{Stdout: true}}}
		now := time.UnixMilli(1_700_000_000_000).UTC()
		note := func(version int64, why string, last bool) State {
			t.Helper()
			if err := l.Note(t.Context(), feed, "stdout", version, now, why, last); err != nil {
				t.Fatal(err)
			}
			all, err := l.States(t.Context(), sinks)
			if err != nil {
				t.Fatal(err)
			}
			return all[feed][0]
		}
		if s := note(2, "", false); s.Delivered != 2 || s.Deliveries != 1 || !s.DeliveredAt.Equal(now) {
			t.Errorf("%+v", s)
		}
		if s := note(3, "broken", false); s.LastError != "broken" || s.Failures != 1 || s.Lost != 0 || s.ErrorVersion != 3 || s.Delivered != 2 {
			t.Errorf("%+v", s)
		}
		if s := note(1, "", false); s.LastError != "broken" || s.Delivered != 2 {
			t.Errorf("an older version's arrival: %+v", s)
		}
		if s := note(3, "broken for good", true); s.Lost != 1 || s.Failures != 2 {
			t.Errorf("%+v", s)
		}
		if s := note(4, "", false); s.LastError != "" || !s.LastErrorAt.IsZero() || s.Delivered != 4 || s.Lost != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestWorkersThatQueueAtOnceNeverSetTheLedgerBack(t *testing.T) {
	ledgers(t, func(t *testing.T, l *Ledger, feed string) {
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				for v := int64(1 + g); v <= 40; v += 4 {
					if _, err := l.Due(context.Background(), feed, "stdout", v, 100, false); err != nil {
						t.Error(err)
					}
					if err := l.Queued(context.Background(), feed, "stdout", v); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if due, err := l.Due(t.Context(), feed, "stdout", 40, 100, false); err != nil || due != 41 {
			t.Errorf("%d %v", due, err)
		}
	})
}

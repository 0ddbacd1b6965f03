package jobs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/quota"
)

// Units that come free are not left lying because those at the head of the line never
// ask again.
func TestFreedUnitsReachTheFirstJobInLineThatCanComeWhoeverStandsBeforeIt(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]func(w *world){
		"charges of scripts": func(w *world) {
			for i := range 25 {
				d, err := w.limiter.Charge(w.t.Context(), quota.Request{Quota: "q", ID: fmt.Sprintf("script-%d", i), Cost: 1, Priority: quota.Interactive})
				if err != nil || d.Granted {
					w.t.Fatalf("%+v %v", d, err)
				}
			}
		},
		"jobs whose tasks were deleted by hand": func(w *world) {
			for i := range 25 {
				id := fmt.Sprintf("deleted-%d", i)
				w.until(w.enqueue(Spec{ID: id}).ID, Snoozed)
				w.eventually(30*time.Second, func() string {
					if err := w.client.inspector.DeleteTask(QueueInteractive, id); err != nil {
						return err.Error()
					}
					return ""
				})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withQuota(100, time.Hour))
			w.fill(100)
			w.work()
			head(w)
			var ids []string
			for range 30 { // more than are woken at once
				ids = append(ids, w.enqueue(Spec{}).ID)
			}
			ids = append(ids, w.enqueue(Spec{Priority: Background}).ID)
			for _, id := range ids {
				w.until(id, Snoozed)
			}
			if _, err := w.limiter.Refund(t.Context(), "q", "filler"); err != nil {
				t.Fatal(err)
			}
			if err := w.client.WakeLine(t.Context(), "q"); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				w.until(id, Done)
			}
		})
	}
}

// Whoever sleeps is woken, and who falls asleep in this moment; an entry of a task that
// is gone, by which others would seem to be served, counts for nothing.
func TestOnlyJobsWhoseTasksSleepAreWokenInALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for id, row := range map[string]struct {
		record State
		task   string
	}{
		"asleep": {Snoozed, "retry"}, "a-copy": {Snoozed, "scheduled"}, "falling": {Snoozed, "active"},
		"running": {Running, "active"}, "due": {Snoozed, "pending"}, "archived": {Snoozed, "archived"}, "deleted": {Snoozed, ""},
	} {
		w.rdb.HSet(ctx, recordKey(id), "state", string(row.record))
		if row.task != "" {
			w.rdb.HSet(ctx, asynqTaskPrefix(QueueScheduled)+id, "state", row.task)
		}
		if id != "falling" { // its promise is not noted yet
			w.rdb.ZAdd(ctx, wakeKey(QueueScheduled), redis.Z{Score: 2e12, Member: id})
		}
	}
	ids := []string{"falling", "running", "gone", "asleep", "due", "archived", "deleted", "a-copy"}
	if found, err := wakeSleepers(ctx, w.rdb, ids, 20); err != nil || found != 3 {
		t.Fatalf("%d found, %v", found, err)
	}
	w.rdb.ZAddLT(ctx, wakeKey(QueueScheduled), redis.Z{Score: 2e12, Member: "falling"}) // as its run goes on to do
	due, err := w.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: wakeKey(QueueScheduled), Start: "-inf", Stop: "1999999999999", ByScore: true}).Result()
	if err != nil || fmt.Sprint(due) != "[falling asleep a-copy]" {
		t.Errorf("due are %v, %v", due, err)
	}
}

func TestWhoIsWokenInALine(t *testing.T) {
	t.Parallel()
	line := func(interactive, scheduled, cost int64) (s quota.State) {
		s.Interactive = quota.Line{Waiting: interactive, Units: interactive * cost}
		s.Scheduled = quota.Line{Waiting: scheduled, Units: scheduled * cost}
		for i := range interactive {
			s.Waiters = append(s.Waiters, quota.Waiter{ID: fmt.Sprintf("i%d#1/1", i), Priority: quota.Interactive, Cost: cost})
		}
		for i := range scheduled {
			s.Waiters = append(s.Waiters, quota.Waiter{ID: fmt.Sprintf("s%d#1/1", i), Priority: quota.Scheduled, Cost: cost})
		}
		return s
	}
	for name, row := range map[string]struct {
		state  quota.State
		free   int64
		hidden int64 // of the class, not named
		class  quota.Priority
		seen   int
		first  string
		count  int
		more   bool
	}{
		"the first, with nothing free":               {state: line(30, 0, 1), class: quota.Interactive, first: "i0", count: 20},
		"those that fit":                             {state: line(30, 0, 2), free: 50, class: quota.Interactive, first: "i0", count: 25},
		"those behind the seen":                      {state: line(30, 0, 2), free: 50, class: quota.Interactive, seen: 20, first: "i20", count: 5},
		"all, and more may fit":                      {state: line(30, 0, 1), free: 50, hidden: 1, class: quota.Interactive, first: "i0", count: 30, more: true},
		"all, and what is free is theirs":            {state: line(30, 0, 1), free: 30, hidden: 1, class: quota.Interactive, first: "i0", count: 30},
		"scheduled after all interactive ones":       {state: line(5, 30, 1), free: 27, class: quota.Scheduled, first: "s0", count: 22},
		"scheduled where nothing is left for them":   {state: line(50, 30, 1), free: 27, class: quota.Scheduled, first: "s0", count: 20},
		"nobody of the class, and nothing is hidden": {state: line(50, 0, 1), free: 270, class: quota.Scheduled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.state.Remaining = row.free
			row.state.Interactive.Waiting += row.hidden
			ids, more := toWake(row.state, row.class, row.seen)
			if len(ids) != row.count || more != row.more || row.count > 0 && ids[0] != row.first {
				t.Errorf("woken %d %v, more %v", len(ids), ids, more)
			}
			row.state.BlockedUntil = time.Now()
			if _, more := toWake(row.state, row.class, row.seen); more {
				t.Error("looks further though the quota is closed")
			}
		})
	}
	scripts := line(3, 0, 1)
	scripts.Waiters[1].ID = "a-script"
	if ids, _ := toWake(scripts, quota.Interactive, 0); !slices.Equal(ids, []string{"i0", "i2"}) {
		t.Errorf("%v", ids)
	}
}

package allocation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowDesk answers each call after a second and records how many takes it had.
func slowDesk(sizes *[]int, dropped *[]string) *desk {
	var mu sync.Mutex
	n := 0
	return &desk{
		send: func(_ context.Context, asked []*ask) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			*sizes = append(*sizes, len(asked))
			for _, a := range asked {
				n++
				a.answer(Allocation{ID: a.Key, Lease: fmt.Sprint("lease of ", a.Key)}, nil)
			}
		},
		drop: func(_ context.Context, a Allocation) { *dropped = append(*dropped, a.Lease) },
	}
}

func TestDeskGathersACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		d := slowDesk(&sizes, new([]string))
		started := time.Now()
		var group sync.WaitGroup
		for i := range 2 + 40 {
			group.Go(func() {
				key := fmt.Sprint(i)
				if a, err := d.take(t.Context(), TakeOptions{Key: key}); err != nil || a.ID != key {
					t.Errorf("take %s got %s and %v", key, a.ID, err)
				}
			})
			if i < 2 {
				synctest.Wait() // each of the first two is on its way alone
			}
		}
		group.Wait()
		took := time.Since(started)
		synctest.Wait() // the desk has seen that nothing is left
		d.mu.Lock()
		defer d.mu.Unlock()
		slices.Sort(sizes)
		if !slices.Equal(sizes, []int{1, 1, 8, batch}) || took != 2*time.Second {
			t.Errorf("42 takes went in calls of %v, in %s; want 1, 1, 8 and %d in 2 s", sizes, took, batch)
		}
		if d.flights != 0 || d.queue != nil {
			t.Errorf("the desk is left with %d calls and %d takes", d.flights, len(d.queue))
		}
	})
}

func TestDeskCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		var dropped []string
		d := slowDesk(&sizes, &dropped)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		for _, key := range []string{"a", "b", "queued"} {
			go func() {
				if _, err := d.take(ctx, TakeOptions{Key: key}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("take %s got %v", key, err)
				}
			}()
			synctest.Wait()
		}
		if a, err := d.take(t.Context(), TakeOptions{Key: "stays"}); err != nil || a.ID != "stays" {
			t.Errorf("the caller who stayed got %s and %v", a.ID, err)
		}
		synctest.Wait()
		slices.Sort(dropped)
		if !slices.Equal(dropped, []string{"lease of a", "lease of b"}) {
			t.Errorf("dropped are %q, want those whose callers left on the way", dropped)
		}
		if !slices.Equal(sizes, []int{1, 1, 1}) {
			t.Errorf("calls had %v takes: one whose caller had left was sent", sizes)
		}
		if _, err := d.take(ctx, TakeOptions{}); err == nil || len(sizes) != 3 {
			t.Error("a take with an ended context was sent")
		}
	})
}

func TestDeskPassesErrorsOn(t *testing.T) {
	broken := errors.New("no Redis")
	d := &desk{send: func(_ context.Context, asked []*ask) {
		for _, a := range asked {
			a.answer(Allocation{}, broken)
		}
	}}
	if _, err := d.take(t.Context(), TakeOptions{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

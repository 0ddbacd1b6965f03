package allocation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
		ended := func(key string, after time.Duration, want error) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			go func() {
				defer cancel()
				started := time.Now()
				a, err := d.take(ctx, TakeOptions{Key: key})
				if !errors.Is(err, want) || want == nil && a.ID != key {
					t.Errorf("take %s got %s and %v", key, a.ID, err)
				}
				if took := time.Since(started); want != nil && took != after {
					t.Errorf("take %s left after %s, want %s", key, took, after)
				}
			}()
			synctest.Wait()
		}
		// The first two are sent by their callers, who get their answers.
		ended("a", 500*time.Millisecond, nil)
		ended("b", 500*time.Millisecond, nil)
		ended("queued", 500*time.Millisecond, context.DeadlineExceeded)
		ended("on the way", 1500*time.Millisecond, context.DeadlineExceeded)
		if a, err := d.take(t.Context(), TakeOptions{Key: "stays"}); err != nil || a.ID != "stays" {
			t.Errorf("the caller who stayed got %s and %v", a.ID, err)
		}
		synctest.Wait()
		if !slices.Equal(dropped, []string{"lease of on the way"}) {
			t.Errorf("dropped are %q, want that whose caller left on the way", dropped)
		}
		if !slices.Equal(sizes, []int{1, 1, 2}) {
			t.Errorf("calls had %v takes: one whose caller had left was sent", sizes)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.take(ctx, TakeOptions{}); err == nil || len(sizes) != 3 {
			t.Error("a take with an ended context was sent")
		}
	})
}

// TestDeskAlone: a caller alone sends his take himself.
func TestDeskAlone(t *testing.T) {
	before := runtime.NumGoroutine()
	d := &desk{send: func(_ context.Context, asked []*ask) {
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines were started for a take alone", n-before)
		}
		asked[0].answer(Allocation{ID: "x"}, nil)
	}}
	if a, err := d.take(t.Context(), TakeOptions{}); err != nil || a.ID != "x" || d.flights != 0 {
		t.Errorf("got %s and %v; %d calls are left", a.ID, err, d.flights)
	}
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

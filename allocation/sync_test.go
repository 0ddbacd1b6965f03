package allocation_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"feedwarden/allocation"
)

func (b *bench) follow(source, list string) allocation.SyncResult {
	b.t.Helper()
	r, err := b.pools.Sync(b.t.Context(), b.pool, source, strings.NewReader(list), nil)
	b.must(err)
	return r
}

func (b *bench) ids() []string {
	b.t.Helper()
	var out []string
	for _, e := range b.list() {
		out = append(out, e.ID)
	}
	return out
}

const (
	onA, onB, onC, onD = "http://a.example:80", "http://b.example:80", "http://c.example:80", "http://d.example:80"
)

// TestRemovedLineRetires: out of the pool, its count stays, and it comes back with it.
func TestRemovedLineRetires(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Quarantine: allocation.QuarantineConfig{BlameTargetAbove: 1}})
	if r := b.follow("list", onA+"\n"+onB+"\nnonsense\n"+onC+"\n"+onA); r.Accepted != 3 || r.Duplicates != 1 || r.Rejected != 1 || r.Retired != 0 {
		t.Fatalf("at first %+v", r)
	}
	for range 30 {
		b.take()
	}
	b.tell(onC, "t.example", allocation.Ban)
	b.report(onC, allocation.Timeout)
	if r := b.follow("list", onA+"\n"+onB); r.Retired != 1 || r.Accepted != 0 || r.Duplicates != 2 {
		t.Errorf("without a line %+v", r)
	}
	if got := b.ids(); !slices.Equal(got, []string{onA, onB}) {
		t.Errorf("listed are %v", got)
	}
	for range 10 {
		if a := b.take(); a.ID == onC {
			t.Fatal("a retired endpoint is taken")
		}
	}
	if s := b.state(); s.Total != 2 || s.Quarantined != 0 {
		t.Errorf("state %+v", s)
	}
	if r := b.follow("list", onA+"\n"+onB+"\n"+onC); r.Accepted != 1 || r.Retired != 0 {
		t.Errorf("on its return %+v", r)
	}
	e := b.endpoint(onC)
	if e.Count != 10 || e.Count+e.Handicap != 15 || e.State != allocation.Active || len(e.Bans) != 0 || e.Strikes != 0 {
		t.Errorf("it is back as %+v, want its count of 10, level with the others, and nothing else", e)
	}
}

// TestRetiredWhileALeaseIsOut: the lease is released or ends, and the count of those in flight is right.
func TestRetiredWhileALeaseIsOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{Policy: allocation.LeastBusy, Cap: 1, Lease: time.Minute})
	b.follow("list", onA)
	a := b.take()
	b.follow("list", onB)
	err := b.pools.Report(t.Context(), allocation.Report{Pool: b.pool, ID: onA, Lease: a.Lease, Outcome: allocation.OK})
	if !errors.Is(err, allocation.ErrUnknownEndpoint) {
		t.Errorf("got %v", err)
	}
	b.follow("list", onA)
	if e := b.endpoint(onA); e.InFlight != 0 {
		t.Errorf("it is back with %d leases", e.InFlight)
	}
	b.take()
}

// TestWhoStaysWhenALineIsRemoved: who came by hand, and who is on another list.
func TestWhoStaysWhenALineIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	b.load(onA)
	b.follow("one", onA+"\n"+onB+"\n"+onC)
	b.follow("two", onC+"\n"+onD)
	b.load(onB) // by hand too
	if r := b.follow("one", onD); r.Retired != 0 {
		t.Errorf("got %+v, want none retired: a and b came by hand, c is on the other list", r)
	}
	if r := b.follow("two", onA); r.Retired != 1 { // c; d is on the first list now
		t.Errorf("got %+v, want c retired", r)
	}
	if got := b.ids(); !slices.Equal(got, []string{onA, onB, onD}) {
		t.Errorf("left are %v", got)
	}
	// What a person removed and the list still names comes back.
	b.must(b.pools.Remove(t.Context(), b.pool, onD))
	if r := b.follow("one", onD); r.Accepted != 1 {
		t.Errorf("got %+v", r)
	}
	// And what a person removed is not retired a second time.
	b.must(b.pools.Remove(t.Context(), b.pool, onD))
	if r := b.follow("one", onC); r.Retired != 0 || r.Accepted != 1 {
		t.Errorf("got %+v", r)
	}
}

// TestListThatIsNoListEmptiesNoPool: not when it is empty, not when it breaks off, not when it is a page of text.
func TestListThatIsNoListEmptiesNoPool(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	if r := b.follow("list", ""); r.Accepted != 0 {
		t.Errorf("an empty list at first: %+v", r)
	}
	b.follow("list", onA+"\n"+onB)
	broken := errors.New("disk")
	for name, r := range map[string]io.Reader{
		"empty": strings.NewReader(""), "comments": strings.NewReader("# soon\n\n"), "a page": strings.NewReader("<html>\n<body>user:canary-1b\n</html>"),
		"UTF-16":     strings.NewReader("\xff\xfea\x00"),
		"broken off": io.MultiReader(strings.NewReader(onA+"\n"), iotest.ErrReader(broken)),
	} {
		_, err := b.pools.Sync(t.Context(), b.pool, "list", r, nil)
		var empty *allocation.EmptyListError
		if name == "broken off" && !errors.Is(err, broken) || name != "broken off" && (!errors.As(err, &empty) || empty.Had != 2) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error quotes the list: %v", name, err)
		}
		if got := b.ids(); len(got) != 2 {
			t.Fatalf("%s: left are %v", name, got)
		}
	}
	b.load(onC)
	if n, err := b.pools.Retire(t.Context(), b.pool, "list"); n != 2 || err != nil {
		t.Errorf("told so, %d retire (%v), want 2", n, err)
	}
	if got := b.ids(); !slices.Equal(got, []string{onC}) {
		t.Errorf("left are %v", got)
	}
}

// TestReadingsAtTheSameTime: whoever reads last holds, and nobody is lost on the way.
func TestReadingsAtTheSameTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	var lines []string
	for i := range 1500 {
		lines = append(lines, fmt.Sprintf("http://p%d.example:80", i))
	}
	b.follow("list", strings.Join(lines, "\n"))
	list := strings.Join(lines[:1000], "\n")
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			_, err := b.pools.Sync(t.Context(), b.pool, "list", strings.NewReader(list), nil)
			if err != nil && !errors.Is(err, allocation.ErrOvertaken) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got := b.ids()
	slices.Sort(lines[:1000])
	if !slices.Equal(got, lines[:1000]) {
		t.Errorf("%d are in the pool, want the 1000 of the list", len(got))
	}
}

func TestSyncErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	_, unknown := b.pools.Sync(t.Context(), "x", "list", strings.NewReader(onA), nil)
	_, nameless := b.pools.Sync(t.Context(), b.pool, "", strings.NewReader(onA), nil)
	_, retire := b.pools.Retire(t.Context(), "x", "list")
	_, all := b.pools.Retire(t.Context(), b.pool, "")
	for i, c := range []struct{ got, want error }{
		{unknown, allocation.ErrUnknownPool}, {nameless, allocation.ErrSource}, {retire, allocation.ErrUnknownPool}, {all, allocation.ErrSource},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%d: got %v, want %v", i, c.got, c.want)
		}
	}
	if r := b.follow("list", onA+"\n10.0.0.1:80\nhttp://u:canary@h:x"); r.Rejected != 2 || r.Accepted != 1 {
		t.Errorf("got %+v", r)
	}
}

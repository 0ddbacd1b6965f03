package allocation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"feedwarden/allocation"
)

func TestImportCountsAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	list := "http://u:a@one.example:80\n# comment\nnonsense\nHTTP://Two.example/\ntwo.example:80\nhttp://u:b@one.example:80\n10.0.0.1:80\nthree.example:80"
	faults := map[int]string{}
	r, err := b.pools.Import(t.Context(), b.pool, strings.NewReader(list), func(line int, err error) { faults[line] = err.Error() })
	b.must(err)
	if want := (allocation.ImportResult{Accepted: 3, Duplicates: 2, Rejected: 2, Renewed: 1}); r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
	if len(faults) != 2 || !strings.Contains(faults[3], "no port") || !strings.Contains(faults[7], "private") {
		t.Errorf("faults are %v", faults)
	}
	if s := b.state(); s.Total != 3 || s.Eligible != 3 {
		t.Errorf("state %+v: what is imported serves at once", s)
	}
	for range 3 {
		a := b.take()
		if password, _ := a.URL.User.Password(); strings.Contains(a.ID, "one") && password != "b" {
			t.Errorf("the password is %q, want the last one given", password)
		}
	}
	r, err = b.pools.Import(t.Context(), b.pool, strings.NewReader(list), nil)
	b.must(err)
	if r.Accepted != 0 || r.Duplicates != 5 || r.Rejected != 2 {
		t.Errorf("the second time: %+v", r)
	}
}

func TestImportPrivate(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{AllowPrivate: true, Format: allocation.FormatUserFirst})
	if r := b.load("127.0.0.1:3128\nsocks5://localhost\nu:p:[::1]:80"); r.Accepted != 3 {
		t.Errorf("got %+v", r)
	}
}

func TestImportOfManyIsQuick(t *testing.T) {
	t.Parallel()
	const lines = 10_000
	b := newBench(t, allocation.Config{})
	r, w := io.Pipe()
	go func() {
		for i := range lines {
			_, _ = fmt.Fprintf(w, "http://u:p@p%d.example:8080\n", i)
		}
		_ = w.Close()
	}()
	started := time.Now()
	got, err := b.pools.Import(t.Context(), b.pool, r, nil)
	b.must(err)
	if took := time.Since(started); got.Accepted != lines || took > 10*time.Second {
		t.Errorf("got %+v in %s", got, took)
	}
	if l := b.list(); len(l) != lines {
		t.Errorf("%d are listed", len(l))
	}
	b.take()
}

func TestImportStops(t *testing.T) {
	t.Parallel()
	b := newBench(t, allocation.Config{})
	broken := errors.New("disk")
	r, err := b.pools.Import(t.Context(), b.pool, io.MultiReader(strings.NewReader("a.example:80\n"), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) {
		t.Errorf("got %+v and %v, want the reader's error", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.pools.Import(ctx, b.pool, strings.NewReader("a.example:80"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
}

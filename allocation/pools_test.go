package allocation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if isWorker() {
		return
	}
	// The server that the tests share, and what waits for it, live as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("feedwarden/internal/testredis.(*Server).start.func1"))
}

// hands is a clock that a test moves.
type hands struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hands) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// bench is one pool on the shared server, with a clock of its own.
type bench struct {
	t     testing.TB
	rdb   redis.UniversalClient
	pool  string
	pools *allocation.Pools
	clock *hands
}

func newBench(t testing.TB, c allocation.Config) *bench {
	return benchOn(t, testredis.Client(t), c)
}

func benchOn(t testing.TB, rdb redis.UniversalClient, c allocation.Config) *bench {
	t.Helper()
	if c.Name == "" {
		c.Name = testredis.Name("pool")
	}
	b := &bench{t: t, rdb: rdb, pool: c.Name, clock: &hands{now: time.UnixMicro(1_800_000_000_000_001).UTC()}}
	b.pools = b.another(c)
	return b
}

// another is a second Pools on the same Redis and clock, as another process would have.
func (b *bench) another(c allocation.Config) *allocation.Pools {
	b.t.Helper()
	c.Name = b.pool
	p, err := allocation.New(b.rdb, []allocation.Config{c}, allocation.WithClock(b.clock.read))
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// fill imports n endpoints and gives their IDs, sorted.
func (b *bench) fill(n int) []string {
	b.t.Helper()
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("http://p%06d.example:8080", i)
	}
	b.load(strings.Join(lines, "\n"))
	return lines
}

func (b *bench) load(list string) allocation.ImportResult {
	b.t.Helper()
	r, err := b.pools.Import(b.t.Context(), b.pool, strings.NewReader(list), func(line int, err error) {
		b.t.Errorf("line %d: %v", line, err)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) take() allocation.Allocation {
	b.t.Helper()
	return b.takeFor(allocation.TakeOptions{})
}

func (b *bench) takeFor(o allocation.TakeOptions) allocation.Allocation {
	b.t.Helper()
	a, err := b.pools.Take(b.t.Context(), b.pool, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// empty takes and wants nothing to be eligible.
func (b *bench) empty(o allocation.TakeOptions) *allocation.EmptyError {
	b.t.Helper()
	a, err := b.pools.Take(b.t.Context(), b.pool, o)
	var e *allocation.EmptyError
	if !errors.As(err, &e) {
		b.t.Fatalf("took %q with error %v, want an EmptyError", a.ID, err)
	}
	return e
}

func (b *bench) report(id string, o allocation.Outcome) {
	b.t.Helper()
	b.reportFull(allocation.Report{ID: id, Outcome: o})
}

func (b *bench) reportFull(r allocation.Report) {
	b.t.Helper()
	r.Pool = b.pool
	if err := b.pools.Report(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) state() allocation.State {
	b.t.Helper()
	s, err := b.pools.State(b.t.Context(), b.pool)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) list() []allocation.Endpoint {
	b.t.Helper()
	l, err := b.pools.List(b.t.Context(), b.pool)
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (b *bench) endpoint(id string) allocation.Endpoint {
	b.t.Helper()
	l := b.list()
	i := slices.IndexFunc(l, func(e allocation.Endpoint) bool { return e.ID == id })
	if i < 0 {
		b.t.Fatalf("no endpoint %q in %v", id, l)
	}
	return l[i]
}

// must fails the test on an error.
func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

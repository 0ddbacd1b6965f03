package probe

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"feedwarden/allocation"
	"feedwarden/internal/faultkit"
	"feedwarden/internal/testredis"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("feedwarden/internal/testredis.(*Server).start.func1"),
		goleak.IgnoreTopFunction("os/exec.(*Cmd).Wait"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).Close"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/maintnotifications.(*CircuitBreakerManager).cleanupLoop"),
	)
}

func authority(t *testing.T) *faultkit.Authority {
	t.Helper()
	a, err := faultkit.NewAuthority("of the test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// judgeAt starts a judge over http and https.
func judgeAt(t *testing.T, a *faultkit.Authority, h http.HandlerFunc) *faultkit.Target {
	t.Helper()
	if h == nil {
		h = Judge
	}
	tg, err := faultkit.StartTarget(context.WithoutCancel(t.Context()), a, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	})
	return tg
}

func proxy(t *testing.T, scheme string, o faultkit.Options) *faultkit.Proxy {
	t.Helper()
	p, err := faultkit.Start(context.WithoutCancel(t.Context()), scheme, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func checker(t *testing.T, c Config) *Checker {
	t.Helper()
	ch := NewChecker(c)
	t.Cleanup(ch.Close)
	return ch
}

// pools are real pools that ask for checks, on a real Redis.
func pools(t *testing.T, name string, r *allocation.Require) (*allocation.Pools, *redis.Client) {
	t.Helper()
	rdb := testredis.Client(t)
	p, err := allocation.New(rdb, []allocation.Config{{Name: name, AllowPrivate: true, Require: r}})
	if err != nil {
		t.Fatal(err)
	}
	return p, rdb
}

func fill(t *testing.T, p *allocation.Pools, pool string, urls ...string) {
	t.Helper()
	res, err := p.Import(t.Context(), pool, strings.NewReader(strings.Join(urls, "\n")), func(line int, err error) { t.Errorf("line %d: %v", line, err) })
	if err != nil || res.Accepted != len(urls) {
		t.Fatalf("import: %+v %v", res, err)
	}
}

// check runs a whole check and gives its results by endpoint.
func check(t *testing.T, c *Checker, p *allocation.Pools, pool string) (map[string]Result, Summary) {
	t.Helper()
	plan, err := c.Plan(t.Context(), p, pool)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := map[string]Result{}
	sum, err := c.Run(t.Context(), p, plan, func(r Result) {
		mu.Lock()
		defer mu.Unlock()
		got[r.ID] = r
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, sum
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// serving is a file server whose answer a test changes.
type serving struct {
	mu     sync.Mutex
	answer http.HandlerFunc
}

func (s *serving) set(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

func (s *serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.answer
	s.mu.Unlock()
	h(w, r)
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

const soon = 700 * time.Millisecond // the time limit of a check that is to run out

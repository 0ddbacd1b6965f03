package feed

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/internal/luarun"
	"feedwarden/internal/testredis"
)

// A server that is away is told of once, however often it is asked meanwhile.
func TestAnOutageOfMessagesIsLoggedOnce(t *testing.T) {
	t.Parallel()
	srv := testredis.Own(t)
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, luarun.NewDesk(rdb))
	put(t, s, "f", 0, content("a"), 3)
	var out lockedText
	c := copiesOf(t, s, CopiesConfig{Safety: time.Hour, Log: slog.New(slog.NewTextHandler(&out, nil))})
	hearing(t, c, "f")
	told := func() int { return strings.Count(out.String(), "until its messages are heard again") }
	for outage := 1; outage <= 2; outage++ {
		srv.Stop()
		soon(t, "it is told", func() bool { return told() == outage })
		tries := c.terms.Load()
		soon(t, "it is tried again, twice", func() bool { return c.terms.Load() >= tries+2 })
		srv.Start(t)
		soon(t, "messages are heard again", func() bool { return c.live.Load() != 0 })
		if n := told(); n != outage {
			t.Errorf("outage %d: told %d times", outage, n)
		}
	}
}

type lockedText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

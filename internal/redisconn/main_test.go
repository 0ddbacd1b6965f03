package redisconn

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		childMain(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// logged is a log that a test reads back.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// mustOpen opens, and closes with the test.
func mustOpen(t *testing.T, cfg Config) *Conn {
	t.Helper()
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// eventually polls ok until it holds.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func set(t *testing.T, c *Conn, key, value string) {
	t.Helper()
	if err := c.Client().Set(context.Background(), key, value, 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, c *Conn, key, want string) {
	t.Helper()
	if got, err := c.Client().Get(context.Background(), key).Result(); got != want {
		t.Fatalf("%s = %q (%v), want %q", key, got, err, want)
	}
}

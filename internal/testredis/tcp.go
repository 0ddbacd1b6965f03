package testredis

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TCP starts a server of its own that listens on a loopback port too.
func TCP(t testing.TB, args ...string) *Server {
	t.Helper()
	return listening(t, args)
}

// ACL starts a TCP server with one more user, name, who has the given rules
// (such as "~*", "&*", "+@all", "-config"). The default user is switched off.
func ACL(t testing.TB, name, password string, rules ...string) *Server {
	t.Helper()
	s := TCP(t)
	rdb := s.Client()
	defer rdb.Close()
	user := []any{"ACL", "SETUSER", name, "on", ">" + password}
	for _, rule := range rules {
		user = append(user, rule)
	}
	ctx := context.Background()
	if err := rdb.Do(ctx, user...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Do(ctx, "ACL", "SETUSER", "default", "off").Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// listening starts a server on a free port, with further arguments and
// environment variables.
func listening(t testing.TB, args []string, env ...string) *Server {
	t.Helper()
	return onPort(t, func(port string) []string {
		return append([]string{"--bind", "127.0.0.1", "--port", port}, args...)
	}, env...)
}

// onPort starts a server on a free port, whose arguments are made from it.
func onPort(t testing.TB, args func(port string) []string, env ...string) *Server {
	t.Helper()
	dir := serverDir(t)
	var err error
	for range 5 {
		port := freePort(t)
		s := &Server{dir: dir, addr: net.JoinHostPort("127.0.0.1", port), args: args(port), env: env}
		if err = s.start(); err == nil {
			t.Cleanup(s.Kill)
			return s
		}
		s.Kill()
	}
	t.Fatal(err)
	return nil
}

// serverDir makes a short directory that goes with the test: a unix socket's
// path has room for about 100 bytes, which t.TempDir can pass.
func serverDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fwredis")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// write puts text into a file of the server's directory and gives its path.
func (s *Server) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// until polls ok, and fails the test with what when it stays false.
func until(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("testredis: not within %s: %s", limit, what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

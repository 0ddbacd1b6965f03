package testredis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is one redis-server process on a unix socket and, where Addr says so,
// on a TCP port too.
type Server struct {
	dir   string
	addr  string // host:port, "" when only the socket is served
	conf  string // a Sentinel's configuration file, "" for all others
	args  []string
	env   []string // beside this process's own
	clock string   // the file that says how far its clock is off, "" for none
	cmd   *exec.Cmd
	done  chan struct{}
}

// Socket is the server's unix socket; the path stays the same over restarts.
func (s *Server) Socket() string { return filepath.Join(s.dir, "redis.sock") }

// Dir is the server's working directory.
func (s *Server) Dir() string { return s.dir }

// Addr is the server's host:port, "" for a server that has only its socket.
func (s *Server) Addr() string { return s.addr }

// PID is the server's process; it changes when the server is started again.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Client opens a client of its own, with no user and no password.
func (s *Server) Client() *redis.Client {
	if s.conf != "" {
		return redis.NewClient(&redis.Options{Addr: s.addr})
	}
	return redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket(), PoolSize: 64})
}

func (s *Server) start() error {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is needed by this test and is not on PATH: %w", err)
	}
	args := append([]string{"--port", "0", "--unixsocket", s.Socket(), "--dir", s.dir, "--daemonize", "no"}, s.args...)
	if s.conf != "" {
		args = []string{s.conf, "--sentinel"}
	}
	started := make(chan error, 1)
	s.done = make(chan struct{})
	go func() {
		// The parent-death signal follows the thread that forked, so the thread is kept until the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		s.cmd = exec.Command(bin, args...)
		s.cmd.SysProcAttr = dieWithParent()
		s.cmd.Env = append(os.Environ(), s.env...)
		log, err := os.OpenFile(filepath.Join(s.dir, "redis.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			started <- err
			return
		}
		defer log.Close()
		s.cmd.Stdout, s.cmd.Stderr = log, log
		err = s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return err
	}
	rdb := s.Client()
	defer rdb.Close()
	deadline := time.Now().Add(15 * time.Second)
	for {
		err := rdb.Ping(context.Background()).Err()
		if answered(err) {
			return nil
		}
		select {
		case <-s.done:
			out, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			return fmt.Errorf("redis-server ended at once: %s", out)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
}

// answered says that a server is up: it replied, and is not loading its data.
// A server that asks for a password has replied.
func answered(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply) && !redis.IsLoadingError(err)
}

// Kill ends the server with SIGKILL and waits for it.
func (s *Server) Kill() { s.signal(syscall.SIGKILL) }

// Stop ends the server with SIGTERM and waits for it.
func (s *Server) Stop() { s.signal(syscall.SIGTERM) }

func (s *Server) signal(sig syscall.Signal) {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(sig)
		<-s.done
	}
}

// Start starts the server again, on the same socket and directory.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Own starts a server for this test alone, with further redis-server
// arguments, and ends it with the test.
func Own(t testing.TB, args ...string) *Server {
	t.Helper()
	// A unix socket's path has room for about 100 bytes, which t.TempDir can pass.
	dir, err := os.MkdirTemp("", "fwredis")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{dir: dir, args: args}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	s.Start(t)
	return s
}

// sweep removes the directories that shared servers of earlier test processes
// have left: such a server ends with its process, and nobody is left to clean up.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "fwredis*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < 10*time.Minute {
			continue
		}
		if c, err := net.Dial("unix", filepath.Join(dir, "redis.sock")); err == nil {
			_ = c.Close()
			continue
		}
		_ = os.RemoveAll(dir)
	}
}

var shared struct {
	once sync.Once
	srv  *Server
	err  error
}

// Client gives a client of a server that all tests of this process share.
// Tests run in parallel on it, so each takes names from Name.
func Client(t testing.TB) *redis.Client {
	t.Helper()
	shared.once.Do(func() {
		sweep()
		dir, err := os.MkdirTemp("", "fwredis")
		if err != nil {
			shared.err = err
			return
		}
		shared.srv = &Server{dir: dir, args: []string{"--save", "", "--appendonly", "no"}}
		shared.err = shared.srv.start()
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	rdb := shared.srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Name gives a name that no other test uses: prefix and eight random hex digits.
func Name(prefix string) string {
	b := make([]byte, 4)
	_, _ = rand.Read(b)
	return strings.ToLower(prefix) + "-" + hex.EncodeToString(b)
}

package faultkit

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// T is what is asked of a test; *testing.T is one.
type T interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
	TempDir() string
	Context() context.Context
}

// Tinyproxy starts Debian's tinyproxy for a test, with a login or without, and
// answers its URL.
func Tinyproxy(t T, login *url.Userinfo) *url.URL {
	t.Helper()
	dir := t.TempDir()
	addr := process(t, func(port int) []string {
		conf := fmt.Sprintf("Port %d\nListen 127.0.0.1\nTimeout 20\nMaxClients 40\nAllow 127.0.0.1\nLogFile %q\nPidFile %q\n",
			port, filepath.Join(dir, "log"), filepath.Join(dir, "pid"))
		if login != nil {
			password, _ := login.Password()
			conf += "BasicAuth " + login.Username() + " " + password + "\n"
		}
		file := filepath.Join(dir, "tinyproxy.conf")
		if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"tinyproxy", "-d", "-c", file}
	})
	return &url.URL{Scheme: "http", Host: addr, User: login}
}

// Microsocks starts Debian's microsocks for a test, with a login or without,
// and answers its URL.
func Microsocks(t T, login *url.Userinfo) *url.URL {
	t.Helper()
	addr := process(t, func(port int) []string {
		args := []string{"microsocks", "-i", "127.0.0.1", "-p", strconv.Itoa(port)}
		if login != nil {
			password, _ := login.Password()
			args = append(args, "-u", login.Username(), "-P", password)
		}
		return args
	})
	return &url.URL{Scheme: "socks5", Host: addr, User: login}
}

// process starts a program that listens on a port of its own, and waits for it.
// Another program may take the port first; then it tries another.
func process(t T, args func(port int) []string) string {
	t.Helper()
	for range 5 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		line := args(port)
		bin, err := exec.LookPath(line[0])
		if err != nil {
			t.Fatal(fmt.Sprintf("%s is needed by this test and is not on PATH: %v", line[0], err))
		}
		cmd := exec.Command(bin, line[1:]...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		if answers(t.Context(), addr, ended) {
			return addr
		}
	}
	t.Fatal("the program did not start to listen")
	return ""
}

func answers(ctx context.Context, addr string, ended <-chan struct{}) bool {
	var d net.Dialer
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-tick.C {
		select {
		case <-ended:
			return false
		default:
		}
		if c, err := d.DialContext(ctx, "tcp", addr); err == nil {
			_ = c.Close()
			return true
		}
	}
	return false
}

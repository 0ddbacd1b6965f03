package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"feedwarden/internal/demo"
	"feedwarden/internal/faultkit"
	"feedwarden/internal/testredis"
)

// binary is the program under test, built once with the race detector.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fwbin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "feedwarden")
	if out, err := exec.Command("go", "build", "-race", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is one running program of the test.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	out  *lockedBuffer
	err  *lockedBuffer
	done chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a program until the test ends.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return startEnv(t, os.Environ(), name, args...)
}

func startEnv(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: filepath.Base(name), cmd: exec.Command(name, args...), out: &lockedBuffer{}, err: &lockedBuffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = p.out, p.err, env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s %v said:\n%s%s", p.name, args, last(p.out.String()), last(p.err.String()))
		}
		if strings.Contains(p.err.String(), "DATA RACE") {
			t.Errorf("%s %v: a data race:\n%s", p.name, args, p.err.String())
		}
	})
	return p
}

func last(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// terminate sends SIGTERM and answers the exit code.
func (p *process) terminate() int {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait(40 * time.Second)
}

func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.t.Fatalf("%s does not end within %s", p.name, limit)
	}
	return -1
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

var listening = regexp.MustCompile(`msg="web server listens" address=(\S+)`)

// url waits until the process's web server listens.
func (p *process) url() string {
	p.t.Helper()
	var found string
	eventually(p.t, 60*time.Second, func() string {
		if m := listening.FindStringSubmatch(p.err.String()); m != nil {
			found = "http://" + m[1]
			return ""
		}
		return p.name + " does not listen"
	})
	return found
}

// eventually polls until f answers "", its complaint otherwise.
func eventually(t *testing.T, limit time.Duration, f func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		why := f()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, why)
		}
		<-tick.C
	}
}

// command runs feedwarden to its end.
func command(t *testing.T, in string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &o, &e
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatalf("feedwarden %v: %v", args, err)
	}
	if strings.Contains(e.String(), "DATA RACE") {
		t.Errorf("feedwarden %v: a data race:\n%s", args, e.String())
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// get reads JSON from a web server.
func get(t *testing.T, url string, into any) (status int, header http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("GET %s: %d %s: %v", url, resp.StatusCode, body, err)
		}
	}
	return resp.StatusCode, resp.Header
}

// objects reads JSON lines.
func objects(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("not a JSON object: %q", line)
		}
		all = append(all, o)
	}
	return all
}

// place is a directory with a config, a redis-server and an upstream.
type place struct {
	t        *testing.T
	dir      string
	config   string
	redis    *testredis.Server
	upstream *demo.Upstream
}

func newPlace(t *testing.T, o demo.Options) *place {
	t.Helper()
	up, err := demo.StartUpstream(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Close() })
	p := &place{t: t, dir: t.TempDir(), redis: testredis.Own(t), upstream: up}
	p.config = filepath.Join(p.dir, "feedwarden.yaml")
	return p
}

// write fills in what the config needs of the place: REDIS, BASE, FEED.
func (p *place) write(config string) {
	p.t.Helper()
	text := strings.NewReplacer("REDIS", "unix://"+p.redis.Socket(), "BASE", p.upstream.BaseURL(), "FEED", p.upstream.FeedURL()).Replace(config)
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) run(in string, args ...string) (string, string, int) {
	p.t.Helper()
	return command(p.t, in, append([]string{"--config", p.config}, args...)...)
}

func (p *place) start(args ...string) *process {
	p.t.Helper()
	return start(p.t, binary, append([]string{"--config", p.config}, args...)...)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// tinyproxy starts Debian's, and answers its URL.
func tinyproxy(t *testing.T) string {
	t.Helper()
	return faultkit.Tinyproxy(t, nil).String()
}

// microsocks starts Debian's, with a password, and answers its URL.
func microsocks(t *testing.T) string {
	t.Helper()
	return faultkit.Microsocks(t, url.UserPassword("user", "canary-proxy-pass")).String()
}

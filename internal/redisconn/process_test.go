package redisconn

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	childEnv       = "REDISCONN_TEST_DATA"
	childServerEnv = "REDISCONN_TEST_SERVER"
)

// childMain is another process on an embedded directory: it answers each line
// of its input with one line, until the input ends.
func childMain(dir string) {
	signal.Notify(make(chan os.Signal, 8), syscall.SIGINT) // it is to outlive Ctrl-C
	ctx := context.Background()
	c, err := Open(ctx, Config{
		URL: "embedded", Data: dir, Server: os.Getenv(childServerEnv),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.Mode())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		word := strings.Fields(in.Text())
		switch word[0] {
		case "set":
			fmt.Println(c.Client().Set(ctx, word[1], word[2], 0).Result())
		case "get":
			fmt.Println(c.Client().Get(ctx, word[1]).Result())
		case "run":
			info, err := c.Info(ctx)
			fmt.Println(info.RunID, err)
		}
	}
	if err := c.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// process is a childMain in a process group of its own.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startProcess(t *testing.T, dir, server string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childEnv+"="+dir, childServerEnv+"="+server)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if got := p.read(t); got != "embedded "+server {
		t.Fatalf("the process says %q", got)
	}
	return p
}

func (p *process) read(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the process ended: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *process) ask(t *testing.T, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		t.Fatal(err)
	}
	return p.read(t)
}

func (p *process) want(t *testing.T, line, answer string) {
	t.Helper()
	if got := p.ask(t, line); got != answer {
		t.Fatalf("%s: %q, want %q", line, got, answer)
	}
}

// kill ends the process and nothing else with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// servers lists the redis-server processes whose socket lies in dir.
func servers(t *testing.T, dir string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatal("no /proc to look at")
	}
	for _, file := range lines {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), dir) {
			found = append(found, string(text))
		}
	}
	return found
}

func TestProcessesShareOneServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := startProcess(t, dir, redisServer)
	joiner := startProcess(t, dir, redisServer)
	if n := len(servers(t, dir)); n != 1 {
		t.Fatalf("%d servers, want 1", n)
	}
	joiner.want(t, "set a 1", "OK <nil>")
	owner.want(t, "get a", "1 <nil>")

	// Ctrl-C reaches the owner's whole process group; the server is not in it.
	before := owner.ask(t, "run")
	if err := syscall.Kill(-owner.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	owner.want(t, "run", before)

	// kill -9 of the owner: the joiner takes over, with the data.
	owner.kill()
	joiner.want(t, "get a", "1 <nil>")
	eventually(t, 30*time.Second, "another server answers", func() bool {
		after := joiner.ask(t, "run")
		return after != before && strings.HasSuffix(after, "<nil>")
	})
	joiner.want(t, "get a", "1 <nil>")
	joiner.want(t, "set b 2", "OK <nil>")
	eventually(t, 30*time.Second, "one server is left", func() bool { return len(servers(t, dir)) == 1 })

	// kill -9 of the last: nothing is left but the data.
	joiner.kill()
	eventually(t, 30*time.Second, "no server is left", func() bool { return len(servers(t, dir)) == 0 })
	c := mustOpen(t, Config{URL: "embedded", Data: dir})
	wantValue(t, c, "a", "1")
	wantValue(t, c, "b", "2")
}

func TestKilledOwnerBlocksNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 {
		p := startProcess(t, dir, redisServer)
		p.want(t, "set a "+fmt.Sprint(i), "OK <nil>")
		p.kill()
		next := startProcess(t, dir, redisServer) // while the old server is still ending
		next.want(t, "get a", fmt.Sprint(i)+" <nil>")
		next.kill()
	}
	eventually(t, 30*time.Second, "no server is left", func() bool { return len(servers(t, dir)) == 0 })
}

func TestProcessesShareMiniredis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := startProcess(t, dir, miniredisServer)
	joiner := startProcess(t, dir, miniredisServer)
	joiner.want(t, "set a 1", "OK <nil>")
	owner.want(t, "get a", "1 <nil>")
	owner.kill()
	joiner.want(t, "set a 2", "OK <nil>")
	joiner.want(t, "get a", "2 <nil>")
}

// Ten processes started at once agree on one owner.
func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	type opened struct {
		c   *Conn
		err error
	}
	all := make(chan opened)
	const n = 10
	for range n {
		go func() {
			c, err := Open(context.Background(), Config{URL: "embedded", Data: dir})
			all <- opened{c, err}
		}()
	}
	var conns []*Conn
	for range n {
		o := <-all
		if o.err != nil {
			t.Error(o.err)
			continue
		}
		conns = append(conns, o.c)
	}
	if got := len(servers(t, dir)); got != 1 {
		t.Errorf("%d servers, want 1", got)
	}
	for i, c := range conns {
		set(t, c, "last", fmt.Sprint(i)) // through a takeover after each close of an owner
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := len(servers(t, dir)); got != 0 {
		t.Errorf("%d servers are left", got)
	}
}

//go:build unix

package redisconn

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	logName    = "redis.log"
	logLimit   = 1 << 20          // bytes; a longer log is put aside at the next start
	childWait  = 15 * time.Second // until a child opens its socket
	stopWait   = 8 * time.Second  // for a child to write its data and go
	socketName = "redis.sock"
	socketMax  = 100 // bytes of a unix socket's path that every system takes
)

// child is a redis-server process of ours.
type child struct {
	bin  string
	cmd  *exec.Cmd
	rec  joinRecord
	log  string
	done chan struct{}
	near string   // a short directory for the socket, removed at the end; "" if it is in the data directory
	pipe *os.File // our end of the guard's pipe; nil without a guard
}

// findServer looks for the program on PATH.
func findServer() (string, error) {
	for _, name := range []string{redisServer, "valkey-server"} {
		if bin, err := exec.LookPath(name); err == nil {
			return filepath.Abs(bin)
		}
	}
	return "", errNoServer
}

// startChild starts bin on the data directory and waits until it answers, if
// only to say that it is loading. last is the join file of an earlier server.
func startChild(ctx context.Context, bin, dir string, last joinRecord, guarded bool) (_ server, err error) {
	home := filepath.Join(dir, "redis")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	// The directory's mode is what protects the socket and the data.
	if err := os.Chmod(home, 0o700); err != nil { //nolint:gosec // a directory
		return nil, err
	}
	hold, err := oust(ctx, filepath.Join(dir, "server.lock"), last)
	if err != nil {
		return nil, err
	}
	defer hold.release() // the child keeps it
	removeNear(last)
	c := &child{bin: bin, log: filepath.Join(home, logName), done: make(chan struct{})}
	socket, err := c.place(home)
	if err != nil {
		return nil, err
	}
	c.rec = newJoinRecord(redisServer, "unix", socket)
	c.cmd = exec.CommandContext(context.WithoutCancel(ctx), bin, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
		"--dir", home, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
		"--maxmemory-policy", "noeviction", "--daemonize", "no")
	c.cmd.Dir = home
	c.cmd.ExtraFiles = []*os.File{hold.file}
	if err := c.launch(guarded); err != nil {
		c.clean()
		return nil, err
	}
	if err := c.answer(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// launch starts the process in a group of its own, so that Ctrl-C reaches its
// owner alone, and from a thread that is kept: the kernel's parent-death
// signal comes when the thread ends that forked.
func (c *child) launch(guarded bool) error {
	out, err := openLog(c.log)
	if err != nil {
		return err
	}
	defer out.Close()
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(c.cmd.SysProcAttr)
	if guarded {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return err
		}
		defer theirs.Close()
		c.pipe = ours
		guard(c.cmd, theirs)
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait()
		}
		close(c.done)
	}()
	if err := <-started; err != nil {
		return err
	}
	c.rec.PID = c.cmd.Process.Pid
	return nil
}

// answer waits until the server's socket answers.
func (c *child) answer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, childWait)
	defer cancel()
	for {
		err := c.rec.alive(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			return fmt.Errorf("%s ended at once: %s", c.bin, c.why())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", c.bin, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// place finds a path for the socket: in home, or where that is too long in a
// directory of its own that is short.
func (c *child) place(home string) (string, error) {
	if socket := filepath.Join(home, socketName); len(socket) <= socketMax {
		return socket, nil
	}
	for _, base := range []string{os.TempDir(), "/tmp"} {
		near, err := os.MkdirTemp(base, nearPrefix) // mode 0700
		if err != nil {
			continue
		}
		if socket := filepath.Join(near, socketName); len(socket) <= socketMax {
			c.near = near
			return socket, nil
		}
		_ = os.Remove(near)
	}
	return "", fmt.Errorf("the path of %s is too long for a unix socket, and %s is no place for one; set redis.data to a shorter path", home, os.TempDir())
}

const nearPrefix = "feedwarden-"

// removeNear removes the short directory of a server that could not do it itself.
func removeNear(last joinRecord) {
	dir, file := filepath.Split(last.Address)
	if file == socketName && len(filepath.Base(dir)) > len(nearPrefix) && filepath.Base(dir)[:len(nearPrefix)] == nearPrefix {
		_ = os.Remove(last.Address)
		_ = os.Remove(dir) // only when nothing else is in it
	}
}

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func (c *child) record() joinRecord     { return c.rec }
func (c *child) ended() <-chan struct{} { return c.done }

// why is the end of the server's log.
func (c *child) why() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-3):], []byte(" / ")))
}

// stop lets the server write its data and go, and makes it go when it does not.
func (c *child) stop() {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(stopWait):
		c.signal(syscall.SIGKILL)
		<-c.done
	}
	c.clean()
}

// signal reaches the child's whole group: a guard and a server's own forks too.
func (c *child) signal(sig syscall.Signal) {
	select {
	case <-c.done: // its number may be another's by now
	default:
		_ = syscall.Kill(-c.cmd.Process.Pid, sig)
	}
}

func (c *child) clean() {
	if c.pipe != nil {
		_ = c.pipe.Close()
	}
	if c.near != "" {
		_ = os.RemoveAll(c.near)
	}
}

//go:build unix

package redisconn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const ( // what an earlier server is given, one after the other
	ownEnd    = 1 * time.Second // to end by itself, as it does when its owner was killed
	askedEnd  = 2 * time.Second // after SHUTDOWN, whose end has been waited for already
	killedEnd = 3 * time.Second // after SIGKILL
)

// oust takes the lock that a running redis-server holds, and sees to it that
// none runs on this data any more. Two on one append-only file would destroy it.
func oust(ctx context.Context, path string, last joinRecord) (*fileLock, error) {
	steps := []struct {
		wait time.Duration
		then func()
	}{
		{ownEnd, func() { shutdown(ctx, last) }},
		{askedEnd, func() { killServer(ctx, last) }},
		{killedEnd, func() {}},
	}
	for _, step := range steps {
		lock, err := waitLock(ctx, path, step.wait)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		step.then()
	}
	return nil, fmt.Errorf("an earlier redis-server (pid %d) still uses this directory and does not end; end it by hand", last.PID)
}

func waitLock(ctx context.Context, path string, limit time.Duration) (*fileLock, error) {
	deadline := time.Now().Add(limit)
	for {
		lock, err := tryLock(path)
		if !errors.Is(err, errLocked) || time.Now().After(deadline) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// shutdown asks the server at the join file's socket to write its data and go.
func shutdown(ctx context.Context, last joinRecord) {
	if last.Server != redisServer {
		return
	}
	conn, err := last.dial(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = exchange(ctx, conn, "SHUTDOWN") // no reply when it goes
}

// killServer kills the join file's server, if its process is still that one:
// redis-server shows its socket in its command line.
func killServer(ctx context.Context, last joinRecord) {
	if last.Server == redisServer && last.PID > 1 && last.Address != "" && strings.Contains(commandLine(ctx, last.PID), last.Address) {
		_ = syscall.Kill(-last.PID, syscall.SIGKILL)
	}
}

func commandLine(ctx context.Context, pid int) string {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		return string(text)
	}
	text, _ := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return string(text)
}

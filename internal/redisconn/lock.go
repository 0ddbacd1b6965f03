package redisconn

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// fileLock is an exclusive lock that the system drops when its last holder
// ends, however it ends. Its file is never removed: a lock on a file that is
// no longer there would let two owners in.
type fileLock struct{ file *os.File }

var errLocked = errors.New("locked by another process")

// tryLock takes the lock of path, or says errLocked.
func tryLock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &fileLock{f}, nil
}

// sign writes our PID into the file, for people.
func (l *fileLock) sign() {
	_ = l.file.Truncate(0)
	_, _ = l.file.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
}

// release closes our end. Where a child inherited the file, the lock stays with it.
func (l *fileLock) release() { _ = l.file.Close() }

// signedBy reads the PID that a lock's owner wrote; 0 if none can be read.
func signedBy(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

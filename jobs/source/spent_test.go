package source

import (
	"syscall"
	"testing"
	"time"
)

// spent is the processor's time that f takes, whatever else the machine does.
func spent(t *testing.T, f func()) time.Duration {
	t.Helper()
	now := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := now()
	f()
	return now() - before
}

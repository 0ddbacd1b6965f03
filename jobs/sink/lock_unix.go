//go:build unix

package sink

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a file for its holder alone, until it is closed or its process ends.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errBusy
		}
		return err
	}
}

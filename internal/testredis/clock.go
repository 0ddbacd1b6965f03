package testredis

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// OffClock starts a TCP server whose wall clock is off by so much: behind where
// the offset is negative. It needs a C compiler.
func OffClock(t testing.TB, offset time.Duration, args ...string) *Server {
	t.Helper()
	library := preload(t)
	file := filepath.Join(filepath.Dir(library), "offset")
	if err := os.WriteFile(file, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	setClock(t, file, offset)
	s := listening(t, args, "LD_PRELOAD="+library, "TESTREDIS_CLOCK="+file)
	s.clock = file
	return s
}

// SetClock steps the wall clock of a server that OffClock started, while it runs.
func (s *Server) SetClock(t testing.TB, offset time.Duration) {
	t.Helper()
	setClock(t, s.clock, offset)
}

func setClock(t testing.TB, file string, offset time.Duration) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(offset.Nanoseconds())), 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// preload compiles the library that stands before a server's clock.
func preload(t testing.TB) string {
	t.Helper()
	dir := serverDir(t)
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("testredis: a server with another clock needs cc: %v\n%s", err, out)
	}
	return library
}

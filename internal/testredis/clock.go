package testredis

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// OffClock starts a TCP server whose wall clock is off by so much: behind where
// the offset is negative. It needs a C compiler.
func OffClock(t testing.TB, offset time.Duration, args ...string) *Server {
	t.Helper()
	return listening(t, args, "LD_PRELOAD="+preload(t), "TESTREDIS_CLOCK_NS="+strconv.FormatInt(offset.Nanoseconds(), 10))
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

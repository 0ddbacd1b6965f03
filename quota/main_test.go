package quota_test

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// quiet drops what the client says of the connections that tests break.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// The model tests run so many schedules unless RAPID_CHECKS or the command line
// says otherwise,
// and leave no files behind. Tests that mostly wait share the time with those that
// mostly reckon. A process of the storm runs no tests.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	if text := os.Getenv(stormEnv); text != "" {
		if err := stormProcess(text); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	flags := map[string]string{"test.parallel": "8", "rapid.checks": "150", "rapid.nofailfile": "true", "rapid.shrinktime": "10s"}
	if n := os.Getenv("RAPID_CHECKS"); n != "" {
		flags["rapid.checks"] = n
	}
	for name, value := range flags {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}

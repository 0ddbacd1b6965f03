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

// The model tests run so many schedules unless the command line says otherwise,
// and leave no files behind.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	for name, value := range map[string]string{"rapid.checks": "150", "rapid.nofailfile": "true", "rapid.shrinktime": "10s"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}

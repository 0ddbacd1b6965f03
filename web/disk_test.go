package web

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
)

func TestARedisThatCannotSaveIsToldFromOneThatIsAway(t *testing.T) {
	t.Parallel()
	rdb := testredis.TCP(t, "--dir", "/proc", "--save", "900 1", "--appendonly", "no").Client()
	defer rdb.Close()
	var err error
	for deadline := time.Now().Add(30 * time.Second); !redis.HasErrorPrefix(err, diskFault); {
		if time.Now().After(deadline) {
			t.Fatalf("a write goes through: %v", err)
		}
		rdb.BgSave(t.Context())
		<-time.After(20 * time.Millisecond)
		err = rdb.Set(t.Context(), "k", "v", 0).Err()
	}
	if p := problemOf(err); p.Status != 503 || p.Code != "redis-away" || p.Detail != cannotSave {
		t.Errorf("%+v", p)
	}
}

package redisconn

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
)

// A server whose disk is full refuses even PING; it is joined all the same, since
// it can be read and a restart would not help it.
func TestAServerThatCannotSaveIsAlive(t *testing.T) {
	t.Parallel()
	srv := testredis.TCP(t, "--dir", "/proc", "--save", "900 1", "--appendonly", "no")
	rdb := srv.Client()
	defer rdb.Close()
	for deadline := time.Now().Add(30 * time.Second); ; {
		rdb.BgSave(t.Context())
		err := rdb.Ping(t.Context()).Err()
		if redis.HasErrorPrefix(err, "MISCONF") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("PING is answered: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if err := (joinRecord{Network: "tcp", Address: srv.Addr()}).alive(t.Context()); err != nil {
		t.Error(err)
	}
}

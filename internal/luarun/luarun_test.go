package luarun

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"feedwarden/internal/testredis"
)

var addScript = redis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)

func TestBatchRunsScriptsAndCommandsThoughTheCacheWasFlushed(t *testing.T) {
	t.Parallel()
	rdb := testredis.Own(t).Client()
	defer rdb.Close()
	for round := range 3 {
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint("round-", round)
		var b Batch
		one, two := b.Script(addScript, []string{key}, 1), b.Script(addScript, []string{key}, 10)
		var missing *redis.StringCmd
		b.Plain(func(p redis.Pipeliner) {
			missing = p.Get(t.Context(), "nothing")
			p.Incr(t.Context(), key+"-plain")
		})
		cmds, err := NewDesk(rdb).Do(t.Context(), &b)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := cmds[one].Val(), cmds[two].Val(); a != int64(1) || b != int64(11) || missing.Err() != redis.Nil {
			t.Errorf("%s: %v %v %v", key, a, b, missing.Err())
		}
		if n, _ := rdb.Get(t.Context(), key+"-plain").Int(); n != 1 {
			t.Errorf("%s: the plain command ran %d times", key, n)
		}
	}
}

func TestDeskGivesEachCallerItsOwnReply(t *testing.T) {
	rdb := testredis.Own(t).Client()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := NewDesk(rdb)
	var wg sync.WaitGroup
	for caller := range 50 {
		wg.Go(func() {
			key := fmt.Sprint("caller-", caller)
			for i := range 100 {
				if n, err := d.Run(t.Context(), addScript, []string{key}, 1).Int(); err != nil || n != i+1 {
					t.Errorf("caller %d: %d %v, want %d", caller, n, err, i+1)
					return
				}
			}
		})
	}
	wg.Wait()
	_ = rdb.Close()
}

func TestErrorsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	rdb := testredis.Own(t).Client()
	defer rdb.Close()
	d := NewDesk(rdb)
	if err := rdb.Set(t.Context(), "text", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var bad, good Batch
	bad.Script(addScript, []string{"text"}, 1)
	good.Script(addScript, []string{"fine"}, 1)
	if cmds, err := d.Do(t.Context(), &bad); err != nil || cmds[0].Err() == nil {
		t.Errorf("%v %v", cmds, err)
	}
	if cmds, err := d.Do(t.Context(), &good); err != nil || cmds[0].Err() != nil {
		t.Errorf("%v %v", cmds, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Run(ctx, addScript, []string{"never"}, 1).Err(); err == nil {
		t.Error("a call with an ended context runs")
	}
	_ = rdb.Close()
	if err := d.Run(t.Context(), addScript, []string{"fine"}, 1).Err(); err == nil {
		t.Error("a closed client answers")
	}
}

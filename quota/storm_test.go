package quota_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/faultnet"
	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

// Sixty-four callers in four processes, whose clocks differ by ten minutes, for half
// a minute in which replies are lost, scripts forgotten and Redis killed, over a
// midnight. What is left in Redis then is the proof.
func TestFourProcessesInAStorm(t *testing.T) {
	t.Parallel()
	srv := testredis.TCP(t, "--appendonly", "yes", "--appendfsync", "always", "--save", "")
	wire := faultnet.New(t)
	addr, err := wire.Listen("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	rdb := srv.Client()
	defer rdb.Close()
	const length = 30 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), length+60*time.Second)
	defer cancel()

	o := orders{Redis: addr, Trailing: "trailing", Daily: "daily", Midnight: time.Now().Add(2 * length / 3).Truncate(time.Second), Callers: 16, For: length}
	began := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []said
	for p, clock := range []time.Duration{0, 5 * time.Minute, -5 * time.Minute, 0} {
		o := o
		o.Process, o.Clock = p, clock
		wg.Go(func() {
			heard, err := runProcess(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, heard...)
			if err != nil {
				t.Errorf("process %d: %v", p, err)
			}
		})
	}

	wire.LoseEvery(23, "evalsha")
	restarted := int64(0)
	for i := range 10 {
		pause(ctx, time.Until(began.Add(time.Duration(i+1)*length/12)))
		switch {
		case i == 5:
			srv.Kill()
			srv.Start(t)
			restarted = time.Now().UnixMicro()
		case i%2 == 0:
			if err := rdb.ScriptFlush(ctx).Err(); err != nil {
				t.Error(err)
			}
		default:
			wire.Break()
		}
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	t.Logf("%d charges, %d replies lost", len(all), wire.Lost())
	if wire.Lost() < 20 {
		t.Errorf("only %d replies were lost", wire.Lost())
	}
	for _, c := range o.configs() {
		weigh(t, rdb, c, all, restarted)
	}
	// Before midnight and after it, each day gave what it had, and no more.
	log, _, err := readBack(ctx, rdb, o.Daily)
	if err != nil {
		t.Fatal(err)
	}
	days := map[string]int64{}
	for _, e := range log {
		if !e.refunded {
			days[dateOf(e.stamp, o.configs()[1].Windows[0])] += e.cost
		}
	}
	if len(days) != 2 {
		t.Errorf("units by day: %v", days)
	}
	for date, sum := range days {
		if sum > 200 || sum < 50 {
			t.Errorf("%d units on %s", sum, date)
		}
	}
}

// weigh reads a quota's log back, and holds it against what the processes were told.
func weigh(t *testing.T, rdb redis.UniversalClient, c quota.Config, all []said, restarted int64) {
	t.Helper()
	log, ids, err := readBack(t.Context(), rdb, c.Name)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	if what := broken(log, c); what != "" {
		t.Errorf("%s: %s", c.Name, what)
	}
	entries := map[int64]entry{} // by stamp, each of which is there once
	before := 0
	for _, e := range log {
		entries[e.stamp] = e
		if e.stamp < restarted {
			before++
		}
	}
	told, unknown := map[string]bool{}, 0
	for _, s := range all {
		if s.Quota != c.Name {
			continue
		}
		if told[s.ID] {
			t.Fatalf("%s: %s was told twice", c.Name, s.ID)
		}
		told[s.ID] = true
		e, kept := ids[s.ID]
		switch {
		case s.Granted && s.Refunded:
			if got := entries[s.Stamp]; kept || !got.refunded || got.cost != s.Cost {
				t.Errorf("%s: refunded: %+v, in the log %+v, remembered %t", c.Name, s, got, kept)
			}
		case s.Granted:
			if got := entries[s.Stamp]; !kept || e.stamp != s.Stamp || got.id != s.ID || got.cost != s.Cost || got.refunded {
				t.Errorf("%s: granted: %+v, in the log %+v, remembered %+v", c.Name, s, got, e)
			}
		case s.Left:
			if kept {
				t.Errorf("%s: cancelled: %+v, remembered %+v", c.Name, s, e)
			}
		case kept:
			unknown++ // charged, and the end came before its caller heard
		}
	}
	refunds := 0
	for _, e := range log {
		if e.refunded {
			refunds++
		} else if !told[e.id] {
			t.Errorf("%s: nobody asked for %+v", c.Name, e)
		}
	}
	if len(log) != len(ids)+refunds {
		t.Errorf("%s: %d entries for %d IDs and %d refunds", c.Name, len(log), len(ids), refunds)
	}
	if before == 0 || before == len(log) {
		t.Errorf("%s: %d of %d grants before the restart", c.Name, before, len(log))
	}
	t.Logf("%s: %d grants, %d refunded, %d before the restart, %d that no caller heard of", c.Name, len(log), refunds, before, unknown)
}

// runProcess runs this test's program as another process, and gives what it was told.
func runProcess(ctx context.Context, o orders) ([]said, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), stormEnv+"="+string(text))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var all []said
	var faults []error
	in := bufio.NewScanner(out)
	for in.Scan() {
		var s said
		faults = append(faults, json.Unmarshal(in.Bytes(), &s))
		all = append(all, s)
	}
	if err := cmd.Wait(); err != nil {
		faults = append(faults, fmt.Errorf("%w: %s", err, stderr.String()))
	}
	return all, errors.Join(faults...)
}

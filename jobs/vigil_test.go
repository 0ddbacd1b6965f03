package jobs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/jobs/feed"
)

func TestTheClaimOfADeadOwnerEndsByItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _ := w.client.Feed("news")
	// Its owner died between the claim and the enqueuing: the job never was.
	if _, err := w.store.Claim(t.Context(), feed.Head{Key: "news"}, "dead", "", 700*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if job, err := w.client.Refresh(t.Context(), f, nil, feed.Head{Key: "news"}); err != nil || job != "dead" {
		t.Fatalf("%s %v", job, err)
	}
	w.work()
	w.eventually(30*time.Second, func() string {
		job, err := w.client.Refresh(t.Context(), f, nil, feed.Head{Key: "news"})
		if err != nil || job == "dead" {
			return fmt.Sprint(job, err)
		}
		return ""
	})
	if r, err := w.client.Read(t.Context(), "news", nil, 20*time.Second); err != nil || r.Version.Version != 1 {
		t.Errorf("%v %v", r.Version.Version, err)
	}
}

// Those who wait when messages cannot be heard find the version by looking.
func TestWaitingReadersOutliveALostSubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := make(chan error, 20)
	for range cap(done) {
		go func() {
			_, err := w.client.Read(t.Context(), "news", nil, 30*time.Second)
			done <- err
		}()
	}
	w.eventually(30*time.Second, func() string {
		n, err := w.rdb.PubSubNumSub(t.Context(), "fw:{feed:news}:events").Result()
		if err != nil || n["fw:{feed:news}:events"] != 1 {
			return fmt.Sprint(n, err)
		}
		return ""
	})
	if err := w.rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	w.work()
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := w.upstream.count(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestAReaderWhoLeavesLeavesTheOthersWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := w.client.Read(ctx, "news", nil, 30*time.Second); left <- err }()
	go func() { _, err := w.client.Read(t.Context(), "news", nil, 30*time.Second); stayed <- err }()
	w.eventually(30*time.Second, func() string {
		if n := waiting(w.client, "news"); n != 2 {
			return fmt.Sprint(n, " wait")
		}
		return ""
	})
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	w.work()
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	if n := waiting(w.client, "news"); n != 0 {
		t.Errorf("%d wait", n)
	}
}

package testredis_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/testredis"
)

func TestTCPSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := testredis.TCP(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	ctx := context.Background()
	if err := rdb.Set(ctx, "a", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Start(t)
	if got := rdb.Get(ctx, "a").Val(); got != "1" {
		t.Fatalf("after a restart a = %q, want 1", got)
	}
}

func TestAClockThatIsBehindAndSteps(t *testing.T) {
	t.Parallel()
	s := testredis.OffClock(t, -5*time.Second)
	rdb := s.Client()
	defer rdb.Close()
	ctx := context.Background()
	for _, offset := range []time.Duration{-5 * time.Second, 5 * time.Minute, 0} {
		s.SetClock(t, offset)
		sent := time.Now()
		told, err := rdb.Eval(ctx, "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)", nil).Int64()
		if err != nil {
			t.Fatal(err)
		}
		got, late := time.UnixMilli(told).Add(-offset), time.Now()
		if got.Before(sent.Add(-time.Second)) || got.After(late.Add(time.Second)) {
			t.Errorf("%s off it says %s, between %s and %s", offset, got, sent, late)
		}
	}
}

func TestACLKnowsItsUserAlone(t *testing.T) {
	t.Parallel()
	s := testredis.ACL(t, "app", "secret", "~*", "&*", "+@all", "-config")
	ctx := context.Background()
	app := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "app", Password: "secret"})
	defer app.Close()
	if err := app.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if err := app.ConfigGet(ctx, "*").Err(); err == nil {
		t.Error("CONFIG is allowed, want it forbidden")
	}
	other := s.Client()
	defer other.Close()
	if err := other.Ping(ctx).Err(); err == nil {
		t.Error("the default user is let in, want it off")
	}
}

func TestTLSSpeaksTLSAlone(t *testing.T) {
	t.Parallel()
	s, certs := testredis.TLS(t, false)
	pem, err := os.ReadFile(certs.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), TLSConfig: &tls.Config{RootCAs: roots}})
	defer rdb.Close()
	if err := rdb.Ping(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestSentinelsKnowThePrimary(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.SentinelOptions{})
	for _, w := range set.Watch {
		c := set.AskSentinel(w)
		defer c.Close()
		addr, err := c.GetMasterAddrByName(context.Background(), set.Name).Result()
		if err != nil || addr[0]+":"+addr[1] != set.Primary.Addr() {
			t.Fatalf("primary = %v, %v, want %s", addr, err, set.Primary.Addr())
		}
	}
}

func TestClusterServesEverySlot(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()[:1]})
	defer rdb.Close()
	ctx := context.Background()
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := rdb.Set(ctx, key, "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

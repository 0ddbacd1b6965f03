package sink

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"feedwarden/internal/testredis"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

func TestStreamIsReadBack(t *testing.T) {
	t.Parallel()
	rdb, stream := testredis.Client(t), testredis.Name("stream")
	o := outlet(t, rdb)
	for n := int64(1); n <= 3; n++ {
		deliver(t, o, Config{Stream: stream}, delivery("news", version(n, 4, 30)))
	}
	deliver(t, o, Config{Stream: stream}, delivery("news", version(4, 10, streamInline/9)))
	entries, err := rdb.XRange(t.Context(), stream, "-", "+").Result()
	if err != nil || len(entries) != 4 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	var items []source.Item
	e := entries[1].Values
	if err := json.Unmarshal([]byte(e["items"].(string)), &items); err != nil || len(items) != 4 || items[0].ID != "item-2-0" {
		t.Errorf("%v %+v", err, items)
	}
	if e["key"] != "news@2" || e["feed"] != "news" || e["version"] != "2" || e["count"] != "4" {
		t.Errorf("%v", e)
	}
	if e := entries[3].Values; e["items"] != nil || e["omitted"] != "1" || e["key"] != "news@4" {
		t.Errorf("what is too large: %v", e["key"])
	}
}

func TestStreamHasABound(t *testing.T) {
	t.Parallel()
	rdb, stream := testredis.Client(t), testredis.Name("stream")
	o := outlet(t, rdb)
	for n := int64(1); n <= 2*streamKept; n++ {
		deliver(t, o, Config{Stream: stream}, delivery("news", version(n, 1, 10)))
	}
	if n := rdb.XLen(t.Context(), stream).Val(); n < streamKept || n > streamKept+200 {
		t.Errorf("%d entries", n)
	}
}

func TestKeyThatIsNoStreamIsAFailureForGood(t *testing.T) {
	t.Parallel()
	rdb, key := testredis.Client(t), testredis.Name("stream")
	if err := rdb.Set(t.Context(), key, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var se *Error
	if err := outlet(t, rdb).Deliver(t.Context(), Config{Stream: key}, delivery("news", version(1, 1, 1))); !errors.As(err, &se) || !se.Permanent {
		t.Errorf("%v", err)
	}
}

func TestLinesOfStandardOutputDoNotMix(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := outlet(t, nil)
	o.stdout = w
	var writers sync.WaitGroup
	for n := range 8 {
		writers.Go(func() {
			for i := range 20 {
				if err := o.Deliver(t.Context(), Config{Stdout: true}, delivery("news", version(int64(n*20+i), 20, 500))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { writers.Wait(); w.Close() }()
	in, seen := bufio.NewReader(r), map[string]bool{}
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			break
		}
		var doc Document
		if err := json.Unmarshal([]byte(line), &doc); err != nil || len(doc.Items) != 20 || len(line) < 4096 {
			t.Fatalf("%v in a line of %d bytes", err, len(line))
		}
		seen[doc.Key] = true
	}
	if len(seen) != 160 {
		t.Errorf("%d versions", len(seen))
	}
}

// store is a real S3 server in this process, reached over a socket.
func store(t *testing.T) *httptest.Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("feeds"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(srv.Close)
	return srv
}

func TestObjectIsReadBackFromTheStore(t *testing.T) {
	t.Parallel()
	srv := store(t)
	c := Config{S3: srv.URL + "/feeds/in/{feed}/{date}/{version}.ndjson.zst", S3Key: "key", S3Secret: "canary-secret"}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		deliver(t, outlet(t, nil), c, delivery("news", version(9, 100, 50)))
	}
	reader, err := minio.New(strings.TrimPrefix(srv.URL, "http://"), &minio.Options{Creds: credentials.NewStaticV4("key", "canary-secret", ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	obj, err := reader.GetObject(t.Context(), "feeds", "in/news/2026-04-01/9.ndjson.zst", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(obj)
	if err != nil {
		t.Fatal(err)
	}
	name := t.TempDir() + "/x.zst"
	if err := os.WriteFile(name, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(unpack(t, name)), "\n"); n != 100 {
		t.Errorf("%d lines", n)
	}
	info, err := obj.Stat()
	if err != nil || info.UserMetadata["Version-Key"] != "news@9" {
		t.Errorf("%v %v", info.UserMetadata, err)
	}
	count := 0
	for range reader.ListObjects(t.Context(), "feeds", minio.ListObjectsOptions{Recursive: true}) {
		count++
	}
	if count != 1 {
		t.Errorf("%d objects of one version that was delivered twice", count)
	}
}

func TestStoreThatRefusesOrIsAwayIsAnErrorWithoutSecrets(t *testing.T) {
	t.Parallel()
	srv := store(t)
	denies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>canary</Message></Error>`)
	}))
	defer denies.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := "http://" + l.Addr().String()
	l.Close()
	for name, c := range map[string]struct {
		base      string
		cfg       fetch.Config
		permanent bool
	}{
		"no such bucket": {srv.URL + "/other", fetch.Config{AllowPrivate: true}, false},
		"denied":         {denies.URL + "/feeds", fetch.Config{AllowPrivate: true}, false},
		"away":           {away + "/feeds", fetch.Config{AllowPrivate: true}, false},
		"private":        {srv.URL + "/feeds", fetch.Config{}, true},
	} {
		var se *Error
		err := guarded(t, nil, c.cfg).Deliver(t.Context(), Config{S3: c.base + "/{feed}/{version}.json", S3Key: "canary-key", S3Secret: "canary-secret"}, delivery("news", version(1, 1, 1)))
		if !errors.As(err, &se) || se.Permanent != c.permanent || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesOfSinksAreTheirPlacesOwnAndGiveNothingAway(t *testing.T) {
	t.Parallel()
	a := Config{Webhook: "https://user:pass@example.org/hook?token=a", Secret: "s"}
	b := Config{Webhook: "https://user:word@example.org/hook?token=b", Secret: "t"}
	other := Config{Webhook: "https://example.org/other"}
	if a.Name() != b.Name() || a.Name() == other.Name() || !strings.HasPrefix(a.Name(), "webhook-") {
		t.Errorf("%s %s %s", a.Name(), b.Name(), other.Name())
	}
	if (Config{Stdout: true}).Name() != "stdout" || (Config{File: "x"}).Name() == (Config{Stream: "x"}).Name() {
		t.Error("kinds are not kept apart")
	}
}

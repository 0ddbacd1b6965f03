package probe

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/jobs/fetch"
)

// List is a pool's list at a web address.
type List struct {
	URL   string        // may hold a user, a password, a key: it is never shown whole
	Every time.Duration // how often it is fetched
}

// maxList bounds a list's bytes.
const maxList = 8 << 20

// mostTold bounds the rejected lines that one fetch logs.
const mostTold = 20

// listLife is how long the answer of a list that nobody fetches any more is kept.
const listLife = 60 * 24 * time.Hour

// ListSource names the list of the config to a pool, be it a file or an address.
// It is the same wherever that is, so that a new one takes the place of the old.
const ListSource = "list"

func listKey(pool string) string { return "fw:{list:" + pool + "}:fetched" }

// Syncer is what a list asks of allocation.
type Syncer interface {
	Sync(ctx context.Context, pool, source string, r io.Reader, reject func(line int, err error)) (allocation.SyncResult, error)
}

// Lists fetches lists and brings their pools in line with them.
type Lists struct {
	lists  atomic.Pointer[map[string]List]
	client *fetch.Client
	rdb    redis.UniversalClient
	pools  Syncer
	log    *slog.Logger
}

// NewLists makes a fetcher of lists; it does no I/O. reach is the policy on
// targets, as for feeds.
func NewLists(lists map[string]List, reach fetch.Config, rdb redis.UniversalClient, pools Syncer, log *slog.Logger) *Lists {
	reach.MaxBody = maxList
	l := &Lists{client: fetch.New(reach), rdb: rdb, pools: pools, log: log}
	l.Reload(lists)
	return l
}

// Reload replaces the lists; a fetch that is under way ends as it began.
func (l *Lists) Reload(lists map[string]List) { l.lists.Store(&lists) }

func (l *Lists) list(pool string) (List, error) {
	list, ok := (*l.lists.Load())[pool]
	if !ok {
		return List{}, fmt.Errorf("probe: list of %q: %w", pool, ErrNoList)
	}
	return list, nil
}

// Close drops kept connections.
func (l *Lists) Close() { l.client.Close() }

// Names are the pools that have such a list, sorted.
func (l *Lists) Names() []string { return slices.Sorted(maps.Keys(*l.lists.Load())) }

// ErrNoList: the pool has no list at a web address.
var ErrNoList = errors.New("its list is at no web address")

// ListState is how a pool's list stands.
type ListState struct {
	Source    string    // the URL without what may be secret in it
	Tried     time.Time // zero: never
	Succeeded time.Time // zero: never
	Error     string    // of the last fetch; "" when it succeeded
}

// State reads how a pool's list stands.
func (l *Lists) State(ctx context.Context, pool string) (ListState, error) {
	list, err := l.list(pool)
	if err != nil {
		return ListState{}, err
	}
	m, err := l.rdb.HGetAll(ctx, listKey(pool)).Result()
	if err != nil {
		return ListState{}, fmt.Errorf("probe: list of %q: %w", pool, err)
	}
	s := ListState{Source: source(list.URL)}
	if m["url"] == fingerprint(list.URL) { // else it is of another address
		s.Tried, s.Succeeded, s.Error = instant(m["tried_ms"]), instant(m["ok_ms"]), m["error"]
	}
	return s, nil
}

// Due says that a list was never fetched, or not within its interval.
func (l *Lists) Due(ctx context.Context, pool string, now time.Time) (bool, error) {
	list, err := l.list(pool)
	if err != nil {
		return false, err
	}
	s, err := l.State(ctx, pool)
	return err == nil && now.Sub(s.Tried) >= list.Every, err
}

// Refreshed is what a fetch of a list brought.
type Refreshed struct {
	allocation.SyncResult
	Unchanged bool // the server said so, and the pool was not touched
}

// Refresh fetches a pool's list and brings the pool in line with it. After any
// error the pool is as it was, and State says why.
func (l *Lists) Refresh(ctx context.Context, pool string) (Refreshed, error) {
	list, err := l.list(pool)
	if err != nil {
		return Refreshed{}, err
	}
	had, err := l.rdb.HGetAll(ctx, listKey(pool)).Result()
	if err != nil {
		return Refreshed{}, fmt.Errorf("probe: list of %q: %w", pool, err)
	}
	if had["url"] != fingerprint(list.URL) {
		had = nil
	}
	res, header, err := l.refresh(ctx, pool, list, had)
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	fields := map[string]any{"v": 1, "url": fingerprint(list.URL), "tried_ms": now, "error": ""}
	switch {
	case ctx.Err() != nil && err != nil:
		return res, err
	case err != nil:
		fields["error"] = clip(err.Error(), 300)
	default:
		fields["ok_ms"] = now
		if !res.Unchanged {
			fields["etag"], fields["modified"] = header.Get("ETag"), header.Get("Last-Modified")
		}
	}
	pipe := l.rdb.TxPipeline()
	if had == nil {
		pipe.Del(ctx, listKey(pool))
	}
	pipe.HSet(ctx, listKey(pool), fields)
	pipe.Expire(ctx, listKey(pool), listLife)
	if _, werr := pipe.Exec(ctx); werr != nil {
		err = errors.Join(err, werr)
	}
	if err != nil {
		return res, fmt.Errorf("probe: list of %q: %w", pool, err)
	}
	return res, nil
}

func (l *Lists) refresh(ctx context.Context, pool string, list List, had map[string]string) (Refreshed, http.Header, error) {
	// Keyed: an address of one's own may hold a key anywhere, so it is given to its own origin alone.
	req := fetch.Request{URL: list.URL, Header: http.Header{}, Keyed: true}
	if had["etag"] != "" {
		req.Header.Set("If-None-Match", had["etag"])
	}
	if had["modified"] != "" {
		req.Header.Set("If-Modified-Since", had["modified"])
	}
	resp, err := l.client.Do(ctx, req, fetch.Via{})
	switch {
	case err != nil:
		return Refreshed{}, nil, err
	case resp.Status == http.StatusNotModified && len(req.Header) > 0:
		return Refreshed{Unchanged: true}, resp.Header, nil
	case resp.Status != http.StatusOK:
		return Refreshed{}, nil, fmt.Errorf("%s answers %d", fetch.Redact(resp.URL), resp.Status)
	}
	told := 0
	res, err := l.pools.Sync(ctx, pool, ListSource, bytes.NewReader(resp.Body), func(line int, err error) {
		// A page of text in place of a list is one fault, not thousands.
		if told++; told <= mostTold {
			l.log.Warn("a line of a proxy list was rejected", "pool", pool, "list", source(list.URL), "line", line, "error", err)
		}
	})
	if err == nil && res.Accepted+res.Duplicates == 0 {
		err = fmt.Errorf("%s has no endpoint in it (%d lines that are none)", fetch.Redact(resp.URL), res.Rejected)
	}
	return Refreshed{SyncResult: res}, resp.Header, err
}

// source is a list's URL without what may be secret in it.
func source(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "a list at a web address"
	}
	return fetch.Redact(u)
}

// fingerprint tells two addresses apart without keeping either.
func fingerprint(raw string) string {
	sum := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(sum[:12])
}

func instant(ms string) time.Time {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

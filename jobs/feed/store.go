package feed

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/source"
)

// ErrNoVersion is the answer for a version that is not, or no longer, kept.
var ErrNoVersion = errors.New("feed: no such version")

// ErrMoved says that another version is the newest than the one to follow.
var ErrMoved = errors.New("feed: another version is the newest")

//go:embed store.lua
var storeSource string

//go:embed newest.lua
var newestSource string

//go:embed claim.lua
var claimSource string

//go:embed release.lua
var releaseSource string

var (
	storeScript   = redis.NewScript(storeSource)
	newestScript  = redis.NewScript(newestSource)
	claimScript   = redis.NewScript(claimSource)
	releaseScript = redis.NewScript(releaseSource)
)

// paramLife is how long a key with parameters of its own lives after its last version.
const paramLife = 24 * time.Hour

// Store is the feed cache in Redis.
type Store struct {
	rdb  redis.UniversalClient
	desk *luarun.Desk
}

// New makes a store; it does no I/O.
func New(rdb redis.UniversalClient, desk *luarun.Desk) *Store { return &Store{rdb: rdb, desk: desk} }

// Heads reads the heads of many feeds in one round trip, in the order of keys.
func (s *Store) Heads(ctx context.Context, keys []string) ([]Head, error) {
	pipe := s.rdb.Pipeline()
	heads := make([]*redis.MapStringStringCmd, len(keys))
	claims := make([]*redis.StringCmd, len(keys))
	ticks := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		heads[i] = pipe.HGetAll(ctx, headKey(key))
		claims[i] = pipe.Get(ctx, refreshKey(key))
		ticks[i] = pipe.Get(ctx, tickKey(key))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("feed: read heads: %w", err)
	}
	out := make([]Head, len(keys))
	for i, key := range keys {
		out[i] = ParseHead(key, heads[i].Val())
		out[i].Refreshing = claims[i].Val()
		out[i].LastTickJob = ticks[i].Val()
	}
	return out, nil
}

// Head reads one feed's head.
func (s *Store) Head(ctx context.Context, key string) (Head, error) {
	h, err := s.Heads(ctx, []string{key})
	if err != nil {
		return Head{}, err
	}
	return h[0], nil
}

// HeadInto adds the read of a head to a batch that somebody else sends.
func (s *Store) HeadInto(ctx context.Context, b *luarun.Batch, key string) func() Head {
	var cmd *redis.MapStringStringCmd
	var claim *redis.StringCmd
	b.Plain(func(p redis.Pipeliner) {
		cmd = p.HGetAll(ctx, headKey(key))
		claim = p.Get(ctx, refreshKey(key))
	})
	return func() Head {
		h := ParseHead(key, cmd.Val())
		h.Refreshing = claim.Val()
		return h
	}
}

// ParseHead reads a head's hash; unknown fields, those of a newer binary, are left alone.
func ParseHead(key string, m map[string]string) Head {
	ms := func(f string) time.Time {
		n, err := strconv.ParseInt(m[f], 10, 64)
		if err != nil || n == 0 {
			return time.Time{}
		}
		return time.UnixMilli(n).UTC()
	}
	version, _ := strconv.ParseInt(m["version"], 10, 64)
	items, _ := strconv.Atoi(m["items"])
	return Head{
		Key: key, Version: version, Items: items, StoredAt: ms("stored_ms"), FetchedAt: ms("fetched_ms"), Hash: m["hash"],
		ETag: m["etag"], LastModified: m["last_modified"], Asked: m["asked"], LastError: m["last_error"], LastErrorAt: ms("last_error_ms"),
	}
}

// Stored is the outcome of Put and Renew.
type Stored struct {
	Version int64
	New     bool // a new version
	Older   bool // the fetch began before the one that made the newest version: nothing was changed

	moved bool // the newest version was another than the caller thought
}

// Put stores content that a fetch begun at began brought. head is the feed's
// as the caller read it last: it saves a read, and need not be the newest.
// keep is the number of versions that stay.
func (s *Store) Put(ctx context.Context, head Head, began, now time.Time, c Content, keep int) (Stored, error) {
	return s.put(ctx, head, false, began, now, c, keep)
}

// PutOnto is Put where head is the newest version, and ErrMoved where it is not.
func (s *Store) PutOnto(ctx context.Context, head Head, began, now time.Time, c Content, keep int) (Stored, error) {
	return s.put(ctx, head, true, began, now, c, keep)
}

func (s *Store) put(ctx context.Context, head Head, onto bool, began, now time.Time, c Content, keep int) (Stored, error) {
	follows := head.Version
	hash, err := contentHash(c.Items)
	if err != nil {
		return Stored{}, err
	}
	for range 10 {
		var v version
		if head.Hash != hash {
			before, err := s.items(ctx, head)
			if err != nil {
				return Stored{}, err
			}
			carryOver(c.Items, before, now)
			if v, err = encode(head.Key, hash, now, c); err != nil {
				return Stored{}, err
			}
		}
		st, err := s.store(ctx, head, began, now, hash, v, keep, c)
		if err != nil || !st.moved {
			if onto && err == nil && !st.New && st.Version != follows {
				err = ErrMoved
			}
			return st, err
		}
		if head, err = s.Head(ctx, head.Key); err != nil {
			return Stored{}, err
		}
		if onto && head.Version != follows {
			return Stored{}, ErrMoved
		}
	}
	return Stored{}, fmt.Errorf("feed: store %q: others store versions faster than this one can follow", head.Key)
}

// DropValidators makes the next fetch of a feed an unconditional one.
func (s *Store) DropValidators(ctx context.Context, key string) error {
	if err := s.rdb.HDel(ctx, headKey(key), "etag", "last_modified").Err(); err != nil {
		return fmt.Errorf("feed: forget the validators of %q: %w", key, err)
	}
	return nil
}

// items are those of a head's version; none where it is not kept.
func (s *Store) items(ctx context.Context, h Head) (items []source.Item, err error) {
	if h.Empty() {
		return nil, nil
	}
	text, err := s.rdb.HGet(ctx, dataKey(h.Key), "items:"+strconv.FormatInt(h.Version, 10)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err == nil {
		items, err = source.ReadItems(text)
	}
	if err != nil {
		return nil, fmt.Errorf("feed: items of %q version %d: %w", h.Key, h.Version, err)
	}
	return items, nil
}

// version is a version's texts, as the script stores them.
type version struct{ items, raw, meta []byte }

func encode(key, hash string, now time.Time, c Content) (v version, err error) {
	if c.Items == nil {
		c.Items = []source.Item{} // an empty list, not null
	}
	if v.items, err = json.Marshal(c.Items); err != nil {
		return v, fmt.Errorf("feed: items of %q: %w", key, err)
	}
	m := Meta{Schema: 1, FetchedAt: now, ContentHash: hash, ContentType: c.ContentType, Items: len(c.Items), Lossy: c.Lossy, Job: c.Job}
	for _, p := range c.Raw {
		m.Pages = append(m.Pages, len(p))
	}
	if v.meta, err = json.Marshal(m); err != nil {
		return v, fmt.Errorf("feed: meta of %q: %w", key, err)
	}
	v.raw = bytes.Join(c.Raw, nil)
	return v, nil
}

// Renew says that the newest version is still the truth (a 304).
func (s *Store) Renew(ctx context.Context, key string, began, now time.Time) (Stored, error) {
	return s.store(ctx, Head{Key: key}, began, now, "", version{}, 1, Content{})
}

func (s *Store) store(ctx context.Context, head Head, began, now time.Time, hash string, v version, keep int, c Content) (Stored, error) {
	key := head.Key
	life := time.Duration(0)
	if key != Name(key) {
		life = paramLife
	}
	reply, err := s.desk.Run(ctx, storeScript, []string{headKey(key), dataKey(key)},
		eventChannel(key), began.UnixMicro(), now.UnixMilli(), hash, v.items, v.raw, v.meta, max(keep, 1), c.ETag, c.LastModified, life.Milliseconds(), len(c.Items), head.Version, c.Asked).Int64Slice()
	if err != nil {
		return Stored{}, fmt.Errorf("feed: store %q: %w", key, err)
	}
	if len(reply) != 2 {
		return Stored{}, fmt.Errorf("feed: store %q: unexpected reply %v", key, reply)
	}
	return Stored{Version: reply[0], New: reply[1] == 1, Older: reply[1] == -1, moved: reply[1] == -2}, nil
}

// Fail records why the last fetch brought nothing; the versions stay as they are.
func (s *Store) Fail(ctx context.Context, key, job, reason string, now time.Time) error {
	pipe := s.rdb.Pipeline()
	pipe.HSet(ctx, headKey(key), "last_error", reason, "last_error_ms", now.UnixMilli())
	if key != Name(key) {
		pipe.PExpire(ctx, headKey(key), paramLife)
		pipe.PExpire(ctx, dataKey(key), paramLife)
	}
	pipe.Publish(ctx, eventChannel(key), "failed "+job)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("feed: record failure of %q: %w", key, err)
	}
	return nil
}

// FailUnknown tells those who wait that the job failed, and keeps nothing: of a feed
// that is not known, and has no version, nobody would ever drop it.
func (s *Store) FailUnknown(ctx context.Context, key, job string) error {
	if err := s.rdb.Publish(ctx, eventChannel(key), "failed "+job).Err(); err != nil {
		return fmt.Errorf("feed: tell the failure of %q: %w", key, err)
	}
	return nil
}

// Get reads one version whole; 0 is the newest. ErrNoVersion where it is not kept.
func (s *Store) Get(ctx context.Context, key string, version int64) (Version, error) {
	if version > 0 {
		return s.numbered(ctx, key, version)
	}
	reply, err := s.desk.Run(ctx, newestScript, []string{headKey(key), dataKey(key)}).Slice()
	if err != nil {
		return Version{}, fmt.Errorf("feed: read %q: %w", key, err)
	}
	if n, ok := first(reply); ok && len(reply) == 4 {
		return decode(key, n, reply[1:])
	} else if ok && n > 0 {
		return Version{}, fmt.Errorf("%w: %q lost its newest version", ErrNoVersion, key)
	}
	return Version{}, fmt.Errorf("%w: %q has none yet", ErrNoVersion, key)
}

func first(reply []any) (int64, bool) {
	if len(reply) == 0 {
		return 0, false
	}
	n, ok := reply[0].(int64)
	return n, ok
}

func (s *Store) numbered(ctx context.Context, key string, want int64) (Version, error) {
	n := strconv.FormatInt(want, 10)
	vals, err := s.rdb.HMGet(ctx, dataKey(key), "meta:"+n, "items:"+n, "raw:"+n).Result()
	if err != nil {
		return Version{}, fmt.Errorf("feed: read %q version %d: %w", key, want, err)
	}
	if vals[0] == nil {
		return Version{}, fmt.Errorf("%w: %q version %d", ErrNoVersion, key, want)
	}
	return decode(key, want, vals)
}

func decode(key string, n int64, vals []any) (Version, error) {
	text := func(i int) string { s, _ := vals[i].(string); return s }
	var v Version
	if err := json.Unmarshal([]byte(text(0)), &v.Meta); err != nil {
		return Version{}, fmt.Errorf("feed: meta of %q version %d: %w", key, n, err)
	}
	v.Version = n
	var err error
	if v.Items, err = source.ReadItems([]byte(text(1))); err != nil {
		return Version{}, fmt.Errorf("feed: items of %q version %d: %w", key, n, err)
	}
	v.Raw = []byte(text(2))
	return v, nil
}

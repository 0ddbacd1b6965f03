package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Meta reads what is known of one version beside its content.
func (s *Store) Meta(ctx context.Context, key string, version int64) (Meta, error) {
	text, err := s.rdb.HGet(ctx, dataKey(key), "meta:"+strconv.FormatInt(version, 10)).Bytes()
	if errors.Is(err, redis.Nil) {
		return Meta{}, fmt.Errorf("%w: %q version %d", ErrNoVersion, key, version)
	}
	var m Meta
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return Meta{}, fmt.Errorf("feed: meta of %q version %d: %w", key, version, err)
	}
	m.Version = version
	return m, nil
}

// Page is one page of the raw answer, 1 the first; nil where there is none.
func (v Version) Page(n int) []byte {
	from := 0
	for i, size := range v.Pages {
		if from+size > len(v.Raw) {
			return nil
		}
		if i+1 == n {
			return v.Raw[from : from+size]
		}
		from += size
	}
	return nil
}

// Versions lists what is kept, newest first.
func (s *Store) Versions(ctx context.Context, key string) ([]Meta, error) {
	m, err := s.rdb.HMGet(ctx, headKey(key), "version", "oldest").Result()
	if err != nil {
		return nil, fmt.Errorf("feed: versions of %q: %w", key, err)
	}
	newest := number(m[0], 0)
	oldest := max(number(m[1], 1), newest-1000)
	if newest == 0 {
		return nil, nil
	}
	var fields []string
	for n := newest; n >= oldest; n-- {
		fields = append(fields, "meta:"+strconv.FormatInt(n, 10))
	}
	vals, err := s.rdb.HMGet(ctx, dataKey(key), fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("feed: versions of %q: %w", key, err)
	}
	var out []Meta
	for i, v := range vals {
		text, ok := v.(string)
		if !ok {
			continue
		}
		var meta Meta
		if err := json.Unmarshal([]byte(text), &meta); err != nil {
			return nil, fmt.Errorf("feed: meta of %q: %w", key, err)
		}
		meta.Version = newest - int64(i)
		out = append(out, meta)
	}
	return out, nil
}

func number(v any, other int64) int64 {
	text, _ := v.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return other
	}
	return n
}

// Pair reads two versions to compare. to 0 is the newest, from 0 the one kept
// before to. ErrNoVersion where there are not two.
func (s *Store) Pair(ctx context.Context, key string, from, to int64) (Version, Version, error) {
	if from == 0 || to == 0 {
		all, err := s.Versions(ctx, key)
		if err != nil {
			return Version{}, Version{}, err
		}
		if to == 0 && len(all) > 0 {
			to = all[0].Version
		}
		for _, m := range all {
			if from == 0 && m.Version < to {
				from = m.Version
			}
		}
		if from == 0 || to == 0 {
			return Version{}, Version{}, fmt.Errorf("%w: %q has not two versions to compare", ErrNoVersion, key)
		}
	}
	a, err := s.Get(ctx, key, from)
	if err != nil {
		return Version{}, Version{}, err
	}
	b, err := s.Get(ctx, key, to)
	return a, b, err
}

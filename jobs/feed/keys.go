package feed

import (
	"net/url"
	"strings"
)

// Key names a feed's place in the cache: its name, and for a job with
// parameters of its own those as well, sorted.
func Key(name string, params map[string]string) string {
	if len(params) == 0 {
		return name
	}
	q := url.Values{}
	for k, v := range params {
		q.Set(k, v)
	}
	return name + "?" + q.Encode()
}

// Name is the feed's name within a key.
func Name(key string) string {
	name, _, _ := strings.Cut(key, "?")
	return name
}

// A brace in a key would move its hash tag; only parameters can hold one, and
// Encode has escaped it there.
func prefix(key string) string          { return "fw:{feed:" + key + "}:" }
func headKey(key string) string         { return prefix(key) + "head" }
func dataKey(key string) string         { return prefix(key) + "data" }
func refreshKey(key string) string      { return prefix(key) + "refresh" }
func partialKey(key, job string) string { return prefix(key) + "partial:" + job }
func tickKey(key string) string         { return prefix(key) + "tick" }
func eventChannel(key string) string    { return prefix(key) + "events" }
func asideKey(key string) string        { return prefix(key) + "aside" }

package allocation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
)

// SyncResult is an ImportResult, and what left the pool.
type SyncResult struct {
	ImportResult
	Retired int // they came from this list earlier and are gone from it
}

// An EmptyListError is a list without a single endpoint where there were some:
// more likely a fault than a wish. Retire is the way to say that it is meant.
type EmptyListError struct {
	Had      int64 // endpoints that the list has in the pool
	Rejected int   // lines that were no endpoints
}

func (e *EmptyListError) Error() string {
	return fmt.Sprintf("the list has no endpoint (%d lines were rejected) and had %d: nothing was retired; remove them by hand if it is meant", e.Rejected, e.Had)
}

// Sync makes a pool follow a list: it adds the list's endpoints as Import does,
// and retires those that came from the same source earlier and are gone from it.
// Source is any name that stays the same for the list; a pool may follow several,
// and an endpoint leaves with the last that has it. Retired endpoints are out of
// the pool as after Remove; their counts are kept for their return. Endpoints that
// came by Import, once, stay.
//
// The list is read to its end before anything changes: one that cannot be read
// changes nothing, and one without any endpoint is an *EmptyListError where there
// were some. Of two readings at the same time the later one holds; the earlier may
// say that it was overtaken.
func (p *Pools) Sync(ctx context.Context, pool, source string, r io.Reader, reject func(line int, err error)) (SyncResult, error) {
	result, err := p.sync(ctx, pool, source, r, reject)
	if err != nil {
		return result, failed("sync", pool, err)
	}
	return result, nil
}

// ErrSource: Sync or Retire without the name of a source.
var ErrSource = errors.New("a list that is followed needs a name")

func (p *Pools) sync(ctx context.Context, pool, source string, r io.Reader, reject func(line int, err error)) (SyncResult, error) {
	var result SyncResult
	c, err := p.pool(pool)
	if err != nil {
		return result, err
	}
	if source == "" {
		return result, ErrSource
	}
	var found []any // id, url, id, url, …
	var none error
	err = ParseList(stopper{ctx, r, &none}, ListOptions{Format: c.Format, AllowPrivate: c.AllowPrivate}, func(line int, u *url.URL, fault error) {
		if fault == nil {
			found = append(found, ID(u), u.String())
			return
		}
		result.Rejected++
		if reject != nil {
			reject(line, fault)
		}
	})
	if err != nil {
		return result, err
	}
	list := digest(source)
	reading, had, err := p.beginReading(ctx, pool, list)
	if err != nil {
		return result, err
	}
	if len(found) == 0 && had > 0 {
		return result, &EmptyListError{Had: had, Rejected: result.Rejected}
	}
	for chunk := range slices.Chunk(found, 2*importChunk) {
		if err := p.importChunk(ctx, keysOf(pool).imports(list), append(c.importing(list, reading), chunk...), &result.ImportResult); err != nil {
			return result, err
		}
	}
	result.Retired, err = p.sweep(ctx, c, list, reading)
	return result, err
}

// Retire takes out all endpoints that came from a source alone, as if its list
// were empty and that were meant.
func (p *Pools) Retire(ctx context.Context, pool, source string) (retired int, err error) {
	c, err := p.pool(pool)
	if err != nil {
		return 0, failed("retire", pool, err)
	}
	if source == "" {
		return 0, failed("retire", pool, ErrSource)
	}
	list := digest(source)
	reading, _, err := p.beginReading(ctx, pool, list)
	if err == nil {
		retired, err = p.sweep(ctx, c, list, reading)
	}
	if err != nil {
		return retired, failed("retire", pool, err)
	}
	return retired, nil
}

func (p *Pools) beginReading(ctx context.Context, pool, list string) (reading, had int64, err error) {
	reply, err := p.run(ctx, sourceScript, []string{keysOf(pool).prefix + "source:" + list})
	if err != nil {
		return 0, 0, err
	}
	f, err := texts(reply, 2)
	if err != nil {
		return 0, 0, err
	}
	if reading, err = strconv.ParseInt(f[0], 10, 64); err == nil {
		had, err = strconv.ParseInt(f[1], 10, 64)
	}
	return reading, had, err
}

const (
	sweepChunk = 200   // endpoints of one script call
	sweepWork  = 10000 // endpoints × targets whose bans are lifted, of one script call
)

// sweep retires those that the reading did not see.
func (p *Pools) sweep(ctx context.Context, c *bound, list string, reading int64) (retired int, err error) {
	banned, err := p.targetKeys(ctx, c.Name)
	if err != nil {
		return 0, err
	}
	names := append(keysOf(c.Name).imports(list), banned...)
	limit := min(sweepChunk, max(1, sweepWork/(1+len(banned))))
	for {
		reply, err := p.run(ctx, sweepScript, names, c.start(), list, reading, limit)
		if err != nil {
			return retired, err
		}
		if reply == "overtaken" {
			return retired, ErrOvertaken
		}
		f, err := texts(reply, 2)
		if err != nil {
			return retired, err
		}
		looked, err := strconv.Atoi(f[0])
		if err != nil {
			return retired, err
		}
		gone, err := strconv.Atoi(f[1])
		if err != nil {
			return retired, err
		}
		retired += gone
		if looked < limit {
			return retired, nil
		}
	}
}

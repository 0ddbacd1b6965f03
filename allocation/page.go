package allocation

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// A Page says which part of a pool ListPage gives.
type Page struct {
	After string // the ID that the page comes after; "" for the first page
	Limit int    // endpoints at most; 100 when 0, 1,000 at most
	State string // only endpoints in this state; "" for all
}

// An EndpointPage is part of a pool in the order of IDs.
type EndpointPage struct {
	Endpoints []Endpoint
	Next      string // After of the next page; "" when there is none
}

const (
	pageLimit = 100
	pageMost  = 1000
)

// ListPage gives one page of a pool in the order of IDs, so that a page does not
// move while counts do. Its price is that of the page; with a State, that of the
// endpoints that are passed over too. State counts them all.
func (p *Pools) ListPage(ctx context.Context, pool string, o Page) (EndpointPage, error) {
	page, err := p.listPage(ctx, pool, o)
	if err != nil {
		return EndpointPage{}, failed("list page", pool, err)
	}
	return page, nil
}

// Endpoint gives one endpoint.
func (p *Pools) Endpoint(ctx context.Context, pool, id string) (Endpoint, error) {
	if _, err := p.pool(pool); err != nil {
		return Endpoint{}, failed("endpoint", pool, err)
	}
	e, err := p.endpoint(ctx, pool, id)
	if err != nil {
		return Endpoint{}, failed("endpoint", pool, err)
	}
	return e, nil
}

func (p *Pools) endpoint(ctx context.Context, pool, id string) (Endpoint, error) {
	list, err := p.read(ctx, pool, []string{id})
	if err != nil {
		return Endpoint{}, err
	}
	if len(list) == 0 {
		return Endpoint{}, unknownEndpoint(id)
	}
	return list[0], nil
}

func (p *Pools) listPage(ctx context.Context, pool string, o Page) (EndpointPage, error) {
	if _, err := p.pool(pool); err != nil {
		return EndpointPage{}, err
	}
	if o.State != "" && !slices.Contains(States, o.State) {
		return EndpointPage{}, fmt.Errorf("state %q is unknown: use one of %v", o.State, States)
	}
	if o.Limit <= 0 {
		o.Limit = pageLimit
	}
	o.Limit = min(o.Limit, pageMost)
	if err := p.index(ctx, pool); err != nil {
		return EndpointPage{}, err
	}
	page := EndpointPage{Endpoints: []Endpoint{}}
	after := o.After
	for {
		from := "-"
		if after != "" {
			from = "(" + after
		}
		// One more than is wanted tells whether there is a next page.
		ask := int64(o.Limit + 1)
		ids, err := p.rdb.ZRangeByLex(ctx, keysOf(pool).prefix+"names", &redis.ZRangeBy{Min: from, Max: "+", Count: ask}).Result()
		if err != nil {
			return EndpointPage{}, err
		}
		if len(ids) == 0 {
			return page, nil
		}
		list, err := p.read(ctx, pool, ids)
		if err != nil {
			return EndpointPage{}, err
		}
		for _, e := range list {
			if o.State != "" && e.State != o.State {
				continue
			}
			if len(page.Endpoints) == o.Limit {
				page.Next = page.Endpoints[o.Limit-1].ID
				return page, nil
			}
			page.Endpoints = append(page.Endpoints, e)
		}
		if int64(len(ids)) < ask {
			return page, nil
		}
		after = ids[len(ids)-1]
	}
}

// read reads endpoints; those that are gone are left out.
func (p *Pools) read(ctx context.Context, pool string, ids []string) ([]Endpoint, error) {
	now, err := p.now(ctx)
	if err != nil {
		return nil, err
	}
	bans, err := p.bans(ctx, pool, now)
	if err != nil {
		return nil, err
	}
	fields := make([]string, 0, len(ids)*len(storedKinds))
	for _, id := range ids {
		for _, kind := range storedKinds {
			fields = append(fields, kind+":"+id)
		}
	}
	values, err := p.rdb.HMGet(ctx, keysOf(pool).prefix+"endpoints", fields...).Result()
	if err != nil {
		return nil, err
	}
	leases, err := p.leases(ctx, pool, ids)
	if err != nil {
		return nil, err
	}
	out := make([]Endpoint, 0, len(ids))
	for i, id := range ids {
		var f stored
		for j, kind := range storedKinds {
			if text, ok := values[i*len(storedKinds)+j].(string); ok {
				f.set(kind, text)
			}
		}
		if f.url == "" {
			continue
		}
		f.leases = leases[id]
		e, err := f.endpoint(id, now)
		if err != nil {
			return nil, err
		}
		e.Bans = bans[id]
		out = append(out, e)
	}
	return out, nil
}

// index enters the endpoints that an older version brought in into the indexes
// that pages and checks go by. There are none, most often, and it costs one round trip to see that.
func (p *Pools) index(ctx context.Context, pool string) error {
	k := keysOf(pool).prefix
	sets := []string{"names", "ready", "parked", "held"}
	sizes := make([]*redis.IntCmd, len(sets))
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, set := range sets {
			sizes[i] = pipe.ZCard(ctx, k+set)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sizes[0].Val() >= sizes[1].Val()+sizes[2].Val()+sizes[3].Val() {
		return nil
	}
	all, err := p.scan(ctx, pool)
	if err != nil {
		return err
	}
	var args []any
	for id, f := range all {
		if f.url != "" {
			args = append(args, id)
		}
	}
	for chunk := range slices.Chunk(args, importChunk) {
		if _, err := p.run(ctx, indexScript, []string{k + "endpoints", k + "held", k + "checks", k + "names"}, chunk...); err != nil {
			return err
		}
	}
	return nil
}

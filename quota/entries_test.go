package quota

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Kept is an entry of a log as it stands in Redis.
type Kept struct {
	Place, Stamp, Cost, Total int64
	Refunded                  bool
}

// ReadLog reads a log back: its entries in order, the state's tail too, and the
// place that is remembered for each ID. It knows the keys' form.
func ReadLog(ctx context.Context, rdb redis.UniversalClient, name string) (log []Kept, places map[string]int64, err error) {
	k := keys("fw:", name)
	pipe := rdb.Pipeline()
	get, meta := pipe.Get(ctx, k[0]), pipe.HGetAll(ctx, k[1])
	logs := []*redis.MapStringStringCmd{pipe.HGetAll(ctx, k[2]), pipe.HGetAll(ctx, k[3])}
	_, _ = pipe.Exec(ctx)
	places = map[string]int64{}
	if get.Err() == redis.Nil { //nolint:errorlint // as it comes from the client
		return nil, places, nil
	}
	for _, cmd := range []redis.Cmder{get, meta, logs[0], logs[1]} {
		if cmd.Err() != nil {
			return nil, nil, cmd.Err()
		}
	}
	state := unpacked(get.Val())
	n, edge, gen, first, begun, old, base, given := state[2], state[3], state[6], state[7], state[8], state[9], state[10], state[13]
	tail := state[14+4*given:]
	kept := n - int64(len(tail)/2)
	for _, g := range []struct {
		at               int64 // which of the two
		from, to, before int64
	}{{1 - gen, old, first, base}, {gen, first, kept, begun}} {
		fields := logs[g.at].Val()
		hole := func(i int64) int64 { // what was refunded of the places up to i
			units, _ := strconv.ParseInt(meta.Val()[fmt.Sprintf("gone%d", g.at+1)], 10, 64)
			top, _ := strconv.ParseInt(meta.Val()[fmt.Sprintf("cap%d", g.at+1)], 10, 64)
			if i >= top || units == 0 {
				return units
			}
			units = 0
			for ; i > 0; i -= i & -i {
				v, _ := strconv.ParseInt(fields[fmt.Sprintf("\r%d", i)], 10, 64)
				units += v
			}
			return units
		}
		add := func(place, stamp, total, before int64) error {
			e := Kept{Place: place, Stamp: stamp, Total: total, Cost: total - before}
			if gone := hole(place-g.from) - hole(place-g.from-1); gone != 0 {
				if e.Refunded = true; gone != e.Cost {
					return fmt.Errorf("entry %d of %d units has a hole of %d", place, e.Cost, gone)
				}
			}
			log = append(log, e)
			return nil
		}
		for p := g.from + 1; p <= g.to; p++ {
			i := p - g.from - 1
			chunk := unpacked(fields["\t"+strconv.FormatInt(i/8, 10)])
			if at := 1 + 2*(i%8); at+1 < int64(len(chunk)) {
				if err := add(p, chunk[at], chunk[at+1], chunk[at-1]); err != nil {
					return nil, nil, err
				}
			}
		}
		for id, text := range fields {
			if id[0] < ' ' {
				continue
			}
			p, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("ID %s: %q: %w", id, text, err)
			}
			places[id] = max(p, places[id])
		}
		if g.at == gen {
			for i := 0; i < len(tail); i += 2 {
				if err := add(kept+int64(i/2)+1, tail[i], tail[i+1], edge); err != nil {
					return nil, nil, err
				}
				edge = tail[i+1]
			}
		}
	}
	return log, places, nil
}

// RaiseTotals makes a log as it would be after so many more units.
func RaiseTotals(ctx context.Context, rdb redis.UniversalClient, name string, by int64) error {
	k := keys("fw:", name)
	for _, log := range k[2:4] {
		for field, chunk := range rdb.HGetAll(ctx, log).Val() {
			if field[0] != '\t' {
				continue
			}
			numbers := unpacked(chunk)
			for i := 0; i < len(numbers); i += 2 {
				numbers[i] += by
			}
			if err := rdb.HSet(ctx, log, field, packed(nil, numbers...)).Err(); err != nil {
				return err
			}
		}
	}
	state := unpacked(rdb.Get(ctx, k[0]).Val())
	given := int(state[13])
	raise := []int{0, 3, 8, 10}
	for w := range given {
		raise = append(raise, 14+4*w+2)
	}
	for i := 14 + 4*given + 1; i < len(state); i += 2 {
		raise = append(raise, i)
	}
	for _, i := range raise {
		state[i] += by
	}
	return rdb.Set(ctx, k[0], packed(nil, state...), 0).Err()
}

func unpacked(s string) []int64 {
	all := make([]int64, len(s)/8)
	for i := range all {
		all[i] = int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[8*i : 8*i+8]))))
	}
	return all
}

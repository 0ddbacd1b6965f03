package scheduler

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// store is the state in Redis. now is "" for the server's clock, or a test's
// Unix milliseconds.
type store struct {
	rdb   redis.UniversalClient
	owner string
	now   func() string
}

// leaseMS is how long a claim keeps others away. What a dispatcher does under
// a claim ends within half of it.
const leaseMS = 5000

// goneMS is after how long without a beat a dispatcher counts as gone.
const goneMS = 3000

// keep is for how long a state is kept, in ms: to its next tick after now, and
// 35 days on. A schedule that comes back later is seen for the first time.
func (p *planned) keep(now int64) int64 {
	ttl := int64(35 * day * 1000)
	if next, ok := p.after(now); ok {
		ttl += next - now
	}
	return ttl
}

func revisionText(r uint64) string { return strconv.FormatUint(r, 16) }

// load takes schedules up, and gives the instants they are settled up to.
func (s *store) load(ctx context.Context, items []*item, about int64) (now int64, last []int64, err error) {
	keys, args := make([]string, len(items)), []any{s.now()}
	for i, it := range items {
		keys[i] = stateKey(it.plan.Name)
		args = append(args, revisionText(it.plan.revision), it.plan.keep(about))
	}
	reply, err := run(ctx, loadScript, s.rdb, keys, args)
	if err != nil {
		return 0, nil, fmt.Errorf("load schedules: %w", err)
	}
	out, err := integers(reply, len(items)+1)
	if err != nil {
		return 0, nil, fmt.Errorf("load schedules: %w", err)
	}
	return out[0], out[1:], nil
}

type claimCode int64

const (
	claimed claimCode = iota
	moved
	taken
	early
)

// claim is the answer about one schedule; times in Unix ms.
type claim struct {
	code                               claimCode
	last, wait                         int64
	gapFrom, gapTo, pauseFrom, pauseTo int64
}

func (s *store) claim(ctx context.Context, items []*item, since func(*item) int64) (now int64, claims []claim, err error) {
	keys, args := make([]string, len(items)), []any{s.now(), s.owner, leaseMS}
	for i, it := range items {
		keys[i] = stateKey(it.plan.Name)
		args = append(args, revisionText(it.plan.revision), it.last, it.fire, since(it))
	}
	reply, err := run(ctx, claimScript, s.rdb, keys, args)
	if err != nil {
		return 0, nil, fmt.Errorf("claim ticks: %w", err)
	}
	if len(reply) != len(items)+1 {
		return 0, nil, fmt.Errorf("claim ticks: %d answers to %d schedules", len(reply)-1, len(items))
	}
	now, ok := reply[0].(int64)
	if !ok {
		return 0, nil, fmt.Errorf("claim ticks: the clock reads %v", reply[0])
	}
	claims = make([]claim, len(items))
	for i, r := range reply[1:] {
		v, err := integers(r, 7)
		if err != nil {
			return 0, nil, fmt.Errorf("claim ticks: %w", err)
		}
		claims[i] = claim{claimCode(v[0]), v[1], v[2], v[3], v[4], v[5], v[6]}
	}
	return now, claims, nil
}

// advance settles what was done under claims; done[i] is false where another
// one had settled it before.
func (s *store) advance(ctx context.Context, steps []*step) (done []bool, err error) {
	keys, args := make([]string, len(steps)), []any{s.now(), s.owner}
	for i, st := range steps {
		keys[i] = stateKey(st.item.plan.Name)
		instant := ""
		if st.dispatched > 0 {
			instant = strconv.FormatInt(st.instant, 10)
		}
		args = append(args, revisionText(st.item.plan.revision), st.from, st.to, st.dispatched, st.skipped, st.missed, st.late,
			instant, st.lateness, st.hold, st.rest, st.ttl)
	}
	reply, err := run(ctx, advanceScript, s.rdb, keys, args)
	if err != nil {
		return nil, fmt.Errorf("settle ticks: %w", err)
	}
	codes, err := integers(reply, len(steps))
	if err != nil {
		return nil, fmt.Errorf("settle ticks: %w", err)
	}
	done = make([]bool, len(steps))
	for i, c := range codes {
		done[i] = c == 1
	}
	return done, nil
}

// beat says that this dispatcher lives. live holds all that do, sorted.
func (s *store) beat(ctx context.Context) (now, requests int64, live []string, err error) {
	reply, err := run(ctx, beatScript, s.rdb, []string{liveKey, manualKey}, []any{s.now(), s.owner, goneMS})
	if err != nil {
		return 0, 0, nil, fmt.Errorf("beat: %w", err)
	}
	if len(reply) < 2 {
		return 0, 0, nil, fmt.Errorf("beat: the answer has %d parts", len(reply))
	}
	head, err := integers(reply[:2], 2)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("beat: %w", err)
	}
	for _, r := range reply[2:] {
		name, ok := r.(string)
		if !ok {
			return 0, 0, nil, fmt.Errorf("beat: a dispatcher is called %v", r)
		}
		live = append(live, name)
	}
	return head[0], head[1], live, nil
}

// leave takes this dispatcher out of the living.
func (s *store) leave(ctx context.Context) error {
	return s.rdb.ZRem(ctx, liveKey, s.owner).Err()
}

func run(ctx context.Context, script *redis.Script, rdb redis.UniversalClient, keys []string, args []any) ([]any, error) {
	return script.Run(ctx, rdb, keys, args...).Slice()
}

// integers reads an answer of n whole numbers.
func integers(reply any, n int) ([]int64, error) {
	values, ok := reply.([]any)
	if !ok || len(values) != n {
		return nil, fmt.Errorf("%d numbers were expected, the answer is %v", n, reply)
	}
	out := make([]int64, n)
	for i, v := range values {
		if out[i], ok = v.(int64); !ok {
			return nil, fmt.Errorf("%d numbers were expected, the answer is %v", n, reply)
		}
	}
	return out, nil
}

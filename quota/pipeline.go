package quota

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Answer is the answer to one request of many.
type Answer struct {
	Decision
	Err error
}

// batch is how many requests of one quota one run of the script answers at most:
// a full one holds Redis for a millisecond or two.
const batch = 64

// part is the requests, with their places among all, that one run of the script answers.
type part struct {
	bound    *bound
	requests []Request
	index    []int
	cmd      *redis.Cmd
}

// ChargeAll asks for many charges in one round trip, each answered as Charge
// would; those of one quota in order, by one run of the script for 64 of them, and a
// further round trip for each further 64. One that fails says so in its own Err.
func (l *Limiter) ChargeAll(ctx context.Context, requests []Request) []Answer {
	answers := make([]Answer, len(requests))
	if len(requests) == 1 {
		answers[0] = l.answer(ctx, requests[0])
		return answers
	}
	from := 0
	for i, r := range requests {
		if l.never(r) {
			// It leaves the line in its turn: what was asked before goes first.
			l.chargeAll(ctx, requests[from:i], answers[from:i])
			l.hopeless(ctx, r)
			from = i
		}
	}
	l.chargeAll(ctx, requests[from:], answers[from:])
	return answers
}

// answer is ChargeAll of one, where there is nothing to sort.
func (l *Limiter) answer(ctx context.Context, r Request) (a Answer) {
	b, err := l.find(r.Quota)
	if err == nil {
		err = r.check(b.Config)
	}
	if isImpossible(err) {
		l.hopeless(ctx, r)
	}
	if err == nil {
		a.Decision, err = l.chargeOne(ctx, b, r)
	}
	if err != nil {
		a.Err = fmt.Errorf("quota: charge %q: %w", r.Quota, err)
	}
	return a
}

func (l *Limiter) chargeAll(ctx context.Context, requests []Request, answers []Answer) {
	for parts := l.parts(requests, answers); len(parts) > 0; {
		if len(parts) == 1 {
			l.ask(ctx, parts, answers)
			return
		}
		var round, rest []*part
		asked := map[string]bool{}
		for _, p := range parts {
			if !asked[p.bound.Name] {
				asked[p.bound.Name] = true
				round = append(round, p)
			} else {
				rest = append(rest, p)
			}
		}
		l.ask(ctx, round, answers)
		parts = rest
	}
}

// ask makes one round trip for parts of different quotas. Two of one quota could
// change places: of those that a server which forgot the script has refused, the
// second may come after another process has brought that back.
func (l *Limiter) ask(ctx context.Context, parts []*part, answers []Answer) {
	if len(parts) == 1 {
		p := parts[0]
		p.cmd = l.run(ctx, p.bound, p.bound.charge, p.requests...)
		p.read(answers)
		return
	}
	pipe := l.rdb.Pipeline()
	for _, p := range parts {
		p.cmd = l.command(ctx, p.bound, p.bound.charge, p.requests...)
		_ = pipe.Process(ctx, p.cmd)
	}
	_, _ = pipe.Exec(ctx) // each command carries its own error
	for _, p := range parts {
		if redis.HasErrorPrefix(p.cmd.Err(), "NOSCRIPT") {
			// The server forgot the script. The first that is run alone brings it back.
			p.cmd = l.run(ctx, p.bound, p.bound.charge, p.requests...)
		}
		p.read(answers)
	}
}

// never says whether a request is one that can never be granted.
func (l *Limiter) never(r Request) bool {
	b, err := l.find(r.Quota)
	return err == nil && isImpossible(r.check(b.Config))
}

// answered is what a run of charge.lua answered.
func answered(b *bound, cmd *redis.Cmd, requests ...Request) ([]Decision, error) {
	reply, err := cmd.Result()
	if err != nil {
		return nil, scriptError(err)
	}
	return decisions(b.Config, reply, requests...)
}

// read puts the script's answers where they belong.
func (p *part) read(answers []Answer) {
	ds, err := answered(p.bound, p.cmd, p.requests...)
	for k, i := range p.index {
		if err != nil {
			answers[i].Err = fmt.Errorf("quota: charge %q: %w", p.bound.Name, err)
		} else {
			answers[i].Decision = ds[k]
		}
	}
}

// parts sorts the requests by quota. Those that need no Redis are answered.
func (l *Limiter) parts(requests []Request, answers []Answer) []*part {
	var parts []*part
	open := map[string]*part{}
	for i, r := range requests {
		b, err := l.find(r.Quota)
		if err == nil {
			err = r.check(b.Config)
		}
		if err != nil {
			answers[i].Err = fmt.Errorf("quota: charge %q: %w", r.Quota, err)
			continue
		}
		p := open[r.Quota]
		if p == nil || len(p.index) == batch {
			p = &part{bound: b}
			open[r.Quota] = p
			parts = append(parts, p)
		}
		p.requests, p.index = append(p.requests, r), append(p.index, i)
	}
	return parts
}

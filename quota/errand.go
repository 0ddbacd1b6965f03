package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// What lease.lua can be asked for.
const (
	opAcquire = "acquire"
	opExtend  = "extend"
	opRelease = "release"
	opYield   = "yield"
	opLeave   = "leave"
)

// leaseGrace is how long a place in a running limit's line is held after its turn.
const leaseGrace = 30 * time.Second

// errand is what one holder wants of one or several limits.
type errand struct {
	op     string
	holder string
	ttl    time.Duration
	limits []Running
}

// outcome is how an errand ended, limit by limit.
type outcome struct {
	turns []turn
	next  []string
	err   error
}

// turn is one limit's answer.
type turn struct {
	done     bool
	since    int64 // instant of first asking, µs
	wait     int64 // µs
	position int64
	reason   string
}

// refused is the first limit that did not do what was asked, or -1.
func (o outcome) refused() int {
	return slices.IndexFunc(o.turns, func(t turn) bool { return !t.done })
}

// rounds gathers errands by limit, since each limit has a slot of its own: one run of the
// script for each, all of them in one round trip.
type rounds struct {
	runs []*run
	open map[string]*run
}

type run struct {
	name  string
	args  []any
	sinks []sink
	cmd   *redis.Cmd
}

// sink is where one errand's answer from one limit goes; turn may be nil.
type sink struct {
	outcome *outcome
	turn    *turn
}

// add puts an errand's part at one limit into the round; a and b are what the script takes.
func (s *rounds) add(name, op, holder string, a, b any, to sink) {
	r := s.open[name]
	if r == nil {
		r = &run{name: name}
		if s.open == nil {
			s.open = map[string]*run{}
		}
		s.open[name] = r
		s.runs = append(s.runs, r)
	}
	r.args = append(r.args, op, holder, a, b)
	r.sinks = append(r.sinks, to)
}

// send does errands in two round trips at most. Limits may live in different
// slots of a Cluster, so no script sees all of them: each takes its own, and what
// was taken is given back when another refused.
func (l *Leases) send(ctx context.Context, errands []errand) []outcome {
	outcomes := make([]outcome, len(errands))
	var ask, back rounds
	for i, e := range errands {
		o := &outcomes[i]
		o.turns = make([]turn, len(e.limits))
		for k, r := range e.limits {
			var a, b any = "", ""
			switch e.op {
			case opAcquire:
				a, b = e.ttl.Microseconds(), r.Limit
			case opExtend:
				a = e.ttl.Microseconds()
			}
			ask.add(r.Name, e.op, e.holder, a, b, sink{o, &o.turns[k]})
		}
	}
	l.exec(ctx, ask)
	for i, e := range errands {
		if e.op == opAcquire {
			giveBack(&back, e, &outcomes[i])
		}
	}
	l.exec(ctx, back)
	for i, e := range errands {
		outcomes[i].next = without(outcomes[i].next, e.holder)
	}
	return outcomes
}

// giveBack asks the limits that would not be needed to take back what they gave: a lease,
// or a second place in line. The place itself is kept for as long as the holder waits elsewhere.
func giveBack(back *rounds, e errand, o *outcome) {
	refused := o.refused()
	for k, r := range e.limits {
		switch {
		case o.err != nil && !o.turns[k].done:
			// Nothing is known of it. What it gave ends by itself, or is found again by the same holder.
		case o.err != nil:
			back.add(r.Name, opRelease, e.holder, "", "", sink{outcome: o})
		case refused >= 0 && k != refused && r.Name != e.limits[refused].Name:
			keep := o.turns[refused].wait + leaseGrace.Microseconds()
			back.add(r.Name, opYield, e.holder, o.turns[k].since, keep, sink{outcome: o})
		}
	}
}

// exec makes one round trip. Errors go to the outcomes.
func (l *Leases) exec(ctx context.Context, s rounds) {
	if len(s.runs) == 0 {
		return
	}
	pipe := l.rdb.Pipeline()
	for _, r := range s.runs {
		r.args = append([]any{l.instant(), leaseGrace.Microseconds()}, r.args...)
		r.cmd = leaseScript.EvalSha(ctx, pipe, runningKeys(l.prefix, r.name), r.args...)
	}
	_, _ = pipe.Exec(ctx) // each command carries its own error
	for _, r := range s.runs {
		if redis.HasErrorPrefix(r.cmd.Err(), "NOSCRIPT") {
			r.cmd = leaseScript.Run(ctx, l.rdb, runningKeys(l.prefix, r.name), r.args...)
		}
		if err := r.read(); err != nil {
			for _, to := range r.sinks {
				to.outcome.err = errors.Join(to.outcome.err, fmt.Errorf("%q: %w", r.name, err))
			}
		}
	}
}

// read takes the script's reply apart. On an error no outcome has changed for the better.
func (r *run) read() error {
	reply, err := r.cmd.Slice()
	if err != nil {
		return err
	}
	all := reader{rest: reply}
	for _, to := range r.sinks {
		one := all.array()
		t := turn{done: one.int() == 1, since: one.int(), wait: one.int(), position: one.int(), reason: one.text()}
		next := one.array()
		for len(next.rest) > 0 {
			if h := next.text(); next.err == nil {
				to.outcome.next = append(to.outcome.next, h)
			}
		}
		if err := errors.Join(one.done(), next.err); err != nil {
			return err
		}
		if to.turn != nil {
			*to.turn = t
		}
	}
	return all.done()
}

// without gives the names once each, in order, but for one.
func without(names []string, one string) []string {
	var kept []string
	for _, n := range names {
		if n != one && !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	return kept
}

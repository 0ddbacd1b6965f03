package quota

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// opening is a script of charges, and the part of its command that all charges of a
// quota have: so what is made for each is little.
type opening struct {
	script *redis.Script
	keys   []string
	args   []any // name, hash, keys, and what every script takes
	shared int   // how many the last are
}

func openingOf(script *redis.Script, keys []string, shared []any) opening {
	o := opening{script: script, keys: keys, args: []any{"evalsha", script.Hash(), len(keys)}, shared: len(shared)}
	for _, k := range keys {
		o.args = append(o.args, k)
	}
	o.args = append(o.args, shared...)
	return o
}

// command is a run of a script that charges.
func (l *Limiter) command(ctx context.Context, b *bound, o opening, requests ...Request) *redis.Cmd {
	args := append(make([]any, 0, len(o.args)+3*len(requests)+1), o.args...)
	l.present(b, args[len(args)-o.shared:])
	labels := ""
	for i, r := range requests {
		class := int(r.Priority) + 1
		if r.NoLine {
			class += 2
		}
		args = append(args, r.ID, r.Cost, class)
		if r.Label != "" {
			labels += text(int64(i+1)) + " " + r.Label + "\n"
		}
	}
	if labels != "" {
		args = append(args, labels)
	}
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// run runs a script by itself. If the server has forgotten it, it is sent along.
func (l *Limiter) run(ctx context.Context, b *bound, o opening, requests ...Request) *redis.Cmd {
	cmd := l.command(ctx, b, o, requests...)
	_ = l.rdb.Process(ctx, cmd) // it carries its own error
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		return o.script.Eval(ctx, l.rdb, o.keys, cmd.Args()[len(o.args)-o.shared:]...)
	}
	return cmd
}

// chargeOne tries the shortest way first.
func (l *Limiter) chargeOne(ctx context.Context, b *bound, r Request) (Decision, error) {
	if b.haste.tries() {
		reply, err := l.run(ctx, b, b.hot, r).Result()
		if err != nil {
			return Decision{}, scriptError(err)
		}
		b.haste.tried(reply != "")
		if reply != "" {
			return hotGrant(b.Config, reply, r)
		}
	}
	one, err := answered(b, l.run(ctx, b, b.charge, r), r)
	if err != nil {
		return Decision{}, err
	}
	return one[0], nil
}

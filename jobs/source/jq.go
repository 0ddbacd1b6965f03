package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/itchyny/gojq"
)

// jqTime bounds all programs over one answer.
const jqTime = 5 * time.Second

// program is a compiled jq expression. It sees its input alone: no environment,
// no further inputs, no modules.
type program struct {
	name string
	code *gojq.Code
}

// compile reads an expression; name is its place in the config.
func compile(name, expr string) (*program, error) {
	q, err := gojq.Parse(expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a jq expression: %w", name, clip(expr), err)
	}
	code, err := gojq.Compile(q)
	if err != nil {
		return nil, fmt.Errorf("%s: %q cannot be used: %w", name, clip(expr), err)
	}
	return &program{name, code}, nil
}

var errJQTime = fmt.Errorf("the jq expressions took longer than %s", jqTime)

// each calls yield for every value that the program gives, until it says stop.
func (p *program) each(ctx context.Context, in any, yield func(any) bool) error {
	iter := p.code.RunWithContext(ctx, in)
	for {
		v, ok := iter.Next()
		if !ok {
			return nil
		}
		if err, isErr := v.(error); isErr {
			var halt *gojq.HaltError
			switch {
			case errors.As(err, &halt) && halt.Value() == nil:
				return nil
			case ctx.Err() != nil:
				return fmt.Errorf("%s: %w", p.name, errJQTime)
			}
			return fmt.Errorf("%s: %s", p.name, snippet(err.Error()))
		}
		if !yield(v) {
			return nil
		}
	}
}

// jqWeight bounds what the programs make of one answer, or four times the answer where
// that is more. Values that share their parts are small as long as they are in memory,
// and not when they are written: each item may hold the whole answer.
const jqWeight = 64 << 20

// heft is about how long a value is as JSON; with a value heavier than most it
// stops at more than that.
func heft(v any, most int64) int64 {
	const least = 4
	switch x := v.(type) {
	case string:
		return least + int64(len(x))
	case []any:
		sum := int64(least)
		for _, e := range x {
			if sum > most {
				break
			}
			sum += heft(e, most-sum)
		}
		return sum
	case map[string]any:
		sum := int64(least)
		for k, e := range x {
			if sum > most {
				break
			}
			sum += least + int64(len(k)) + heft(e, most-sum)
		}
		return sum
	}
	return least
}

// first is the first value that the program gives, or nil.
func (p *program) first(ctx context.Context, in any) (out any, err error) {
	err = p.each(ctx, in, func(v any) bool { out = v; return false })
	return out, err
}

package quota

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// scriptError puts our own errors in the place of those that scripts raise.
func scriptError(err error) error {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "COST "):
		return ErrCost
	case strings.HasPrefix(text, "CALENDAR "):
		return ErrClock
	}
	return err
}

var errReply = errors.New("a script's reply has another form than this version knows")

// reader takes a script's flat reply apart. After a value of the wrong kind all
// that follows is zero, and err says so.
type reader struct {
	rest []any
	err  error
}

func (r *reader) next() any {
	if len(r.rest) == 0 {
		r.err = fmt.Errorf("%w: it is too short", errReply)
		return nil
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *reader) int() int64 {
	v := r.next()
	n, ok := v.(int64)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: %T where a number was due", errReply, v)
	}
	return n
}

func (r *reader) text() string {
	v := r.next()
	s, ok := v.(string)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: %T where a text was due", errReply, v)
	}
	return s
}

// time reads an instant in µs; 0 is the zero time.
func (r *reader) time() time.Time {
	n := r.int()
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// uses makes the windows' uses from each one's used, and the spans.
func uses(c Config, used, spans []int64) []Use {
	all := make([]Use, len(c.Windows))
	for i, w := range c.Windows {
		all[i] = Use{Limit: w.Limit, Used: used[i], Per: time.Duration(spans[i]) * time.Microsecond, Calendar: w.Calendar}
	}
	return all
}

func (r *reader) ints(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = r.int()
	}
	return all
}

func (r *reader) array() reader {
	v := r.next()
	a, ok := v.([]any)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: %T where an array was due", errReply, v)
	}
	return reader{rest: a, err: r.err}
}

func (r *reader) done() error {
	if r.err == nil && len(r.rest) > 0 {
		return fmt.Errorf("%w: it is too long", errReply)
	}
	return r.err
}

// decisions reads charge.lua's reply to these requests.
func decisions(c Config, reply []any, requests ...Request) ([]Decision, error) {
	r := reader{rest: reply}
	spans := r.ints(len(c.Windows))
	all := make([]Decision, len(requests))
	for i, q := range requests {
		one := r.array()
		d := Decision{ID: q.ID, Granted: one.int() == 1, Cost: one.int(), At: one.time()}
		d.RetryAfter = wholeMillis(one.int())
		d.Position, d.Reason = one.int(), one.text()
		d.Windows = uses(c, one.ints(len(c.Windows)), spans)
		if err := one.done(); err != nil {
			return nil, err
		}
		all[i] = d
	}
	return all, r.done()
}

// wholeMillis rounds µs up to milliseconds: who comes back then is not early.
func wholeMillis(micros int64) time.Duration {
	return time.Duration((micros+999)/1000) * time.Millisecond
}

package quota

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
		all[i] = w.use(used[i], spans[i])
	}
	return all
}

func (w Window) use(used, span int64) Use {
	return Use{Limit: w.Limit, Used: used, Per: time.Duration(span) * time.Microsecond, Calendar: w.Calendar, Location: w.Location}
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

// numbers are n numbers that a script packed in a text, as doubles.
func numbers(v any, n int) ([]int64, error) {
	s, ok := v.(string)
	if !ok || len(s) != 8*n {
		return nil, fmt.Errorf("%w: %T of %d bytes where %d numbers were due", errReply, v, len(s), n)
	}
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[8*i : 8*i+8]))))
	}
	return all, nil
}

// packed is numbers as scripts take them.
func packed(to []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		to = binary.LittleEndian.AppendUint64(to, math.Float64bits(float64(n)))
	}
	return to
}

// decisions reads charge.lua's reply to these requests.
func decisions(c Config, reply any, requests ...Request) ([]Decision, error) {
	n := len(c.Windows)
	answers, ok := reply.([]any)
	if !ok || len(answers) != 1+len(requests) {
		return nil, fmt.Errorf("%w: %T for %d requests", errReply, reply, len(requests))
	}
	spans, err := numbers(answers[0], n)
	if err != nil {
		return nil, err
	}
	all := make([]Decision, len(requests))
	for i, q := range requests {
		if _, granted := answers[i+1].(string); granted {
			grant, err := numbers(answers[i+1], 2+n)
			if err != nil {
				return nil, err
			}
			all[i] = grantOf(c, q, grant, spans)
			continue
		}
		one := (&reader{rest: answers[i+1 : i+2]}).array()
		d := Decision{ID: q.ID, Cost: one.int(), At: one.time(), RetryAfter: wholeMillis(one.int()), Position: one.int(), Reason: one.text()}
		d.Windows = uses(c, one.ints(n), spans)
		if err := one.done(); err != nil {
			return nil, err
		}
		all[i] = d
	}
	return all, nil
}

// hotGrant reads hot.lua's reply.
func hotGrant(c Config, reply any, r Request) (Decision, error) {
	n, err := numbers(reply, 2+2*len(c.Windows))
	if err != nil {
		return Decision{}, err
	}
	d := Decision{ID: r.ID, Granted: true, Cost: n[0], At: time.UnixMicro(n[1]).UTC(), Windows: make([]Use, len(c.Windows))}
	for i, w := range c.Windows {
		d.Windows[i] = w.use(n[3+2*i], n[2+2*i])
	}
	return d, nil
}

// grantOf is a grant from cost, instant and each window's use.
func grantOf(c Config, r Request, n, spans []int64) Decision {
	return Decision{ID: r.ID, Granted: true, Cost: n[0], At: time.UnixMicro(n[1]).UTC(), Windows: uses(c, n[2:], spans)}
}

// wholeMillis rounds µs up to milliseconds: who comes back then is not early.
func wholeMillis(micros int64) time.Duration {
	return time.Duration((micros+999)/1000) * time.Millisecond
}

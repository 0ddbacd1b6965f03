package quota

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Option changes a Limiter or Leases.
type Option func(*settings)

// settings are what the options set.
type settings struct {
	prefix string
	clock  func() time.Time // nil: Redis's
	host   func() time.Time // this process's, to know which days to give
}

// WithClock gives the scripts a time other than Redis's own. For tests.
func WithClock(now func() time.Time) Option {
	return func(s *settings) { s.clock, s.host = now, now }
}

// WithPrefix replaces the "fw:" with which every key begins.
func WithPrefix(prefix string) Option { return func(s *settings) { s.prefix = prefix } }

func settle(opts []Option) settings {
	s := settings{prefix: "fw:", host: time.Now}
	for _, o := range opts {
		o(&s)
	}
	return s
}

func (s settings) fault() error {
	if strings.ContainsAny(s.prefix, "{}") {
		return fmt.Errorf("quota: prefix %q: braces would break the hash tag; leave them out", s.prefix)
	}
	return nil
}

// instant is the time as scripts take it: µs, or "" for Redis's own.
func (s settings) instant() any {
	if s.clock == nil {
		return ""
	}
	return s.clock().UnixMicro()
}

// ErrSpan is returned for a block that would last for too short or too long.
var ErrSpan = errors.New("a block lasts from 1µs to ten years")

func errBlock(d time.Duration) error { return fmt.Errorf("for %s: %w", d, ErrSpan) }

// shortReason is a block's reason as it is kept: 200 bytes at most.
func shortReason(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), 200)], "")
}

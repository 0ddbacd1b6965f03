package main

import (
	"fmt"
	"io"
	"log/slog"
)

// String says what may be shown of it; every way of printing does, for it holds
// secrets in its parts in clear.
func (s settings) String() string {
	return fmt.Sprintf("redis %s, %d quotas, %d pools, %d feeds", s.redis, len(s.quotas), len(s.pools), len(s.jobs.Feeds))
}

// Format gives String for every verb.
func (s settings) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue gives String to slog.
func (s settings) LogValue() slog.Value { return slog.StringValue(s.String()) }

package redisconn

import (
	"fmt"
	"io"
	"log/slog"
)

// String says what may be shown of it; every way of printing does, for it holds
// the password in clear.
func (c Config) String() string {
	t, err := parseURL(c.URL)
	switch {
	case err != nil:
		return "a redis.url that cannot be read"
	case t.kind == kindEmbedded:
		return "embedded in " + c.Data
	}
	return t.String()
}

// Format gives String for every verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue gives String to slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText gives String to encoders.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

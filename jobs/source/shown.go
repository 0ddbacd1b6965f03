package source

import (
	"fmt"
	"io"
	"log/slog"
)

// String says what may be shown of it; every way of printing does, for it holds
// keys and headers in clear.
func (c Config) String() string { return "source " + c.Kind }

// Format gives String for every verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue gives String to slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText gives String to encoders.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

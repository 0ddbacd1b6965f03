package probe

import (
	"fmt"
	"io"
	"log/slog"
)

// String says what may be shown of it; every way of printing does, for it holds
// a password or a key in clear.
func (l List) String() string { return "list at " + source(l.URL) }

// Format gives String for every verb.
func (l List) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, l.String()) }

// LogValue gives String to slog.
func (l List) LogValue() slog.Value { return slog.StringValue(l.String()) }

// MarshalText gives String to encoders.
func (l List) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

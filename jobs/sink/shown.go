package sink

import (
	"fmt"
	"io"
	"log/slog"
)

// String says what may be shown of it; every way of printing does, for it holds
// secrets of webhooks and buckets in clear.
func (c Config) String() string {
	switch {
	case c.File != "":
		return "sink file"
	case c.Webhook != "":
		return "sink webhook"
	case c.Stream != "":
		return "sink stream " + c.Stream
	case c.S3 != "":
		return "sink s3"
	}
	return "sink stdout"
}

// Format gives String for every verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue gives String to slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText gives String to encoders.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

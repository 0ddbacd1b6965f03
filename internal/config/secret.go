package config

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

const redacted = "[redacted]"

// Secret is text that no form of printing shows: only Reveal gives it.
type Secret string

// Reveal is the secret itself, for the one place that sends or compares it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret; an empty one is shown as empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format hides the secret from every verb, those that do not fit a string too.
func (s Secret) Format(f fmt.State, verb rune) { show(f, verb, s.String()) }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the secret from encoders, as a map's key too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the secret from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, s.String()), nil }

// MarshalYAML hides the secret from YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// Value is text that may hold a secret in a part of it: a URL with a password,
// a header with a token from the environment. Printed, it is as the file has
// it: ${NAME} where the environment filled in, [redacted] for a password.
type Value struct {
	text  *string // by pointer: fmt follows none to a text, whatever it is told
	shown string
}

// NewValue is a value that prints as shown.
func NewValue(text, shown string) Value { return Value{&text, shown} }

// Reveal is the whole text, for the place that sends it.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// String is the text as it may be shown.
func (v Value) String() string { return v.shown }

// Format shows the safe form under every verb.
func (v Value) Format(f fmt.State, verb rune) { show(f, verb, v.String()) }

// LogValue shows the safe form to slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalText shows the safe form to encoders, JSON's too.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalYAML shows the safe form to YAML.
func (v Value) MarshalYAML() (any, error) { return v.String(), nil }

// RevealAll is a map of values as the text that is sent.
func RevealAll(m map[string]Value) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v.Reveal()
	}
	return out
}

// show writes a safe text: quoted where a quoted form was asked for.
func show(f fmt.State, verb rune, text string) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text)
}

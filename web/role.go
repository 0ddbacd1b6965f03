package web

import "log/slog"

// Role is what a token may do. Each may do what the one before it may.
type Role string

// The roles.
const (
	Read  Role = "read"  // look
	Write Role = "write" // enqueue, cancel, charge, pause
	Admin Role = "admin" // change queues through asynqmon
)

// rank orders the roles; 0 is none.
func (r Role) rank() int {
	switch r {
	case Read:
		return 1
	case Write:
		return 2
	case Admin:
		return 3
	}
	return 0
}

// Token lets a person or a program in. The server keeps the SHA-256 of Token,
// not Token.
type Token struct {
	Name  string
	Token string
	Role  Role
}

const redacted = "[redacted]"

// String hides the token; so do the log and JSON.
func (t Token) String() string { return t.Name + " (" + string(t.Role) + ") " + redacted }

// GoString hides the token from %#v.
func (t Token) GoString() string { return "web.Token{" + t.String() + "}" }

// LogValue hides the token from the log.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText hides the token from JSON.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"feedwarden/internal/object"
	"feedwarden/internal/units"
)

// Request is a job as a script asks for it: the body of POST /v1/jobs, a line
// of `enqueue -`, the flags of `enqueue`.
type Request struct {
	Feed     string `json:"feed"`
	Params   Params `json:"params"`
	Param    Params `json:"param"` // the flag's name; the same as Params
	Priority string `json:"priority"`
	In       string `json:"in"`
	At       string `json:"at"`
	Expires  string `json:"expires"`
	ID       string `json:"id"`
}

// Params are a source's parameters. In JSON a value may be a text, a number or
// true and false; what is sent is its text.
type Params map[string]string

// UnmarshalJSON reads an object of plain values.
func (p *Params) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return errParams
	}
	out := make(Params, len(raw))
	for k, v := range raw {
		var text string
		switch {
		case json.Unmarshal(v, &text) == nil && string(v) != "null":
			out[k] = text
		case v[0] == '{' || v[0] == '[' || v[0] == 'n':
			return errParams
		default:
			out[k] = string(v)
		}
	}
	*p = out
	return nil
}

var errParams = errors.New("params is an object of texts, numbers, true and false: {\"k\":\"v\"}")

// DecodeRequest reads one JSON object. A key that is not known is an error:
// a slip would change what the job does. Errors are *SpecError.
func DecodeRequest(b []byte) (Request, error) {
	var r Request
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, &SpecError{jsonProblem(err)}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, &SpecError{"something follows the JSON object: one object is wanted"}
	}
	if name := object.Twice(b); name != "" {
		return r, &SpecError{fmt.Sprintf("field %q stands twice: once is wanted", name)}
	}
	return r, nil
}

func jsonProblem(err error) string {
	var te *json.UnmarshalTypeError
	var se *json.SyntaxError
	switch {
	case errors.Is(err, errParams):
		return err.Error()
	case errors.As(err, &te) && te.Field != "":
		return fmt.Sprintf("%s is a JSON %s; %s is wanted", te.Field, te.Value, "a "+te.Type.String())
	case errors.As(err, &te):
		return fmt.Sprintf("a JSON %s; an object is wanted, such as {\"feed\":\"…\"}", te.Value)
	case errors.As(err, &se):
		return fmt.Sprintf("not JSON at byte %d: %v", se.Offset, se)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "not JSON: it ends too soon"
	case strings.Contains(err.Error(), "unknown field"):
		return strings.TrimPrefix(err.Error(), "json: ") + "; known are feed, params, priority, in, at, expires, id"
	}
	return "not JSON: " + err.Error()
}

func (r Request) params() map[string]string {
	if len(r.Params) == 0 {
		return r.Param
	}
	out := map[string]string{}
	maps.Copy(out, r.Param)
	maps.Copy(out, r.Params)
	return out
}

// Spec reads the request's texts. Errors are *SpecError.
func (r Request) Spec() (Spec, error) {
	s := Spec{Feed: r.Feed, Params: r.params(), Priority: Priority(r.Priority), ID: r.ID}
	if r.Feed == "" {
		return s, &SpecError{"no feed is named"}
	}
	if r.In != "" && r.At != "" {
		return s, &SpecError{"both in and at: one of them says when"}
	}
	if r.In != "" {
		d, err := units.ParseDuration(r.In)
		if err != nil || d < 0 {
			return s, &SpecError{fmt.Sprintf("in %q: a duration such as 90s, 15m or 1d is wanted", r.In)}
		}
		s.In = d
	}
	if r.At != "" {
		t, err := time.Parse(time.RFC3339, r.At)
		if err != nil {
			return s, &SpecError{fmt.Sprintf("at %q: an instant of RFC 3339 is wanted, such as 2026-11-30T08:00:00Z", r.At)}
		}
		s.At = t
	}
	if r.Expires != "" {
		d, err := units.ParseDuration(r.Expires)
		if err != nil || d <= 0 {
			return s, &SpecError{fmt.Sprintf("expires %q: a duration such as 90s, 15m or 1d is wanted", r.Expires)}
		}
		s.Expires = d
	}
	return s, nil
}
